// The first stories of sub-agents. spawn-random.deep.test.ts plays more.

import { expect, test } from "vitest";
import { playStories } from "./spawn-stories.ts";

/** The last one has attachments. */
const SEEDS = 10;

test("I2, I4: every job of a sub-agent ends once, is announced once and leaves nothing behind, in random stories", async () => {
  expect(await playStories(SEEDS), "the stories have jobs").toBeGreaterThan(SEEDS);
}, 120_000);
