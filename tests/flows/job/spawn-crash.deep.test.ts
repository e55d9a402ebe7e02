// Crashes before and after every commit of a task that is spread over several sub-agents. Each result still
// arrives once (I2, I4).

import { describe, expect, test } from "vitest";
import { crashAtEach } from "../../kit/engine/engine.ts";
import { crashIn } from "../../kit/engine/spawn-app.ts";
import { fanOut } from "./fan-out-story.ts";

const COMMITS_MAX = 200;

describe.each(["before", "after"] as const)("a crash %s any commit of a fan-out", (when) => {
  test("I2, I4: every job runs once and is announced once", async () => {
    expect(await crashAtEach(when, COMMITS_MAX, (point) => crashIn(fanOut, point))).toBeGreaterThan(15);
  });
});
