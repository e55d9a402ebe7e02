// The first randomized tests of sub-agents. spawn-random.deep.test.ts has more.

import { expect, test } from "vitest";
import { playStories } from "./spawn-stories.ts";

/** Large enough to include stories with attachments. */
const SEEDS = 5;

test("I2, I4: with random actions every sub-agent's job ends once, is announced once and leaves nothing behind", async () => {
  expect(await playStories(SEEDS), "the stories have jobs").toBeGreaterThan(SEEDS);
});
