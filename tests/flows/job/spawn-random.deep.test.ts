// Randomized tests of sub-agents.

import { expect, test } from "vitest";
import { playStories } from "./spawn-stories.ts";

/** Only a few seeds, because the simulation (`tests/sim`) plays far more stories of whole gateways. */
const SEEDS = 30;

test("I2, I4: with random actions every sub-agent's job ends once, is announced once and leaves nothing behind", async () => {
  expect(await playStories(SEEDS), "the stories have jobs").toBeGreaterThan(SEEDS);
});
