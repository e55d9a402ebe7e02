// Random stories of sub-agents.

import { expect, test } from "vitest";
import { playStories } from "./spawn-stories.ts";

/** Few: the simulation (`tests/sim`) covers far more, of whole gateways. These are about sub-agents only. */
const SEEDS = 30;

test("I2, I4: every job of a sub-agent ends once, is announced once and leaves nothing behind, in random stories", async () => {
  expect(await playStories(SEEDS), "the stories have jobs").toBeGreaterThan(SEEDS);
}, 240_000);
