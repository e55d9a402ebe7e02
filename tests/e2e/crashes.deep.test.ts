// Real processes under load, killed with SIGKILL at random moments. `npm run crashes` runs any number of
// rounds.

import { expect, test } from "vitest";
import { crashStory } from "../kit/crashes/story.ts";
import { clusterGround, EMBEDDED } from "../kit/process/grounds.ts";
import { serverUrl } from "../kit/store/postgres.ts";

const SEED = process.env.PARLEY_SEED ?? String(Date.now());
const ROUNDS = 4;

test.each([EMBEDDED, clusterGround(serverUrl)])(
  "I1, I2, I4: $name: after many kills under load no accepted message is lost, and no step is repeated",
  async (ground) => {
    const counts = await crashStory({ seed: SEED, rounds: ROUNDS, ground });
    console.log(`SEED=${SEED} ${ground.name}: ${JSON.stringify(counts)}`);
    expect(counts.kills).toBeGreaterThanOrEqual(ROUNDS);
    expect(counts.accepted).toBeGreaterThan(0);
    expect(counts.allowed + counts.denied).toBeGreaterThan(0);
  },
);
