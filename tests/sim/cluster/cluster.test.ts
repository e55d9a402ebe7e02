// Plays the first stories of several processes over one store, each of them twice. cluster.deep.test.ts plays
// more, and searches for mutants.

import { expect, test } from "vitest";
import { CODE_CACHE } from "../../kit/process/code-cache.ts";
import { tellAll } from "../workers.ts";

const STORIES = 3;
const PATIENCE_MS = 300_000;

test("CS1-CS5 hold in the first simulated stories of several processes on one store, and a seed repeats its story", {
  timeout: PATIENCE_MS,
}, async () => {
  const tell = async (workers: number): Promise<(readonly [number, string])[]> => {
    const marks: (readonly [number, string])[] = [];
    const order = { from: 1, count: STORIES, workers, cacheDir: CODE_CACHE, cluster: true };
    const wrong = await tellAll(order, (line) => marks.push([line.seed, line.mark]));
    expect(
      wrong,
      `SEED=${wrong?.seed}: node tests/sim/worker.ts --cluster --trace --from ${wrong?.seed}`,
    ).toBeUndefined();
    return marks.toSorted(([one], [other]) => one - other);
  };
  expect(await tell(1)).toEqual(await tell(2));
});
