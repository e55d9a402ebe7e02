// Plays the first stories of a whole gateway, each of them twice. simulation.deep.test.ts plays many more.

import { expect, test } from "vitest";
import { CODE_CACHE } from "../kit/process/code-cache.ts";
import { tellAll } from "./workers.ts";

/** Number of stories; simulation.deep.test.ts plays 60 stories twice. */
const STORIES = 4;
const WORKERS = 2;
/** Time limit, which is much longer than the stories need. */
const PATIENCE_MS = 300_000;

test("I1-I14 hold in the first stories, and a seed always gives the same story, whatever stories were played before", {
  timeout: PATIENCE_MS,
}, async () => {
  let runs = 0;
  const tell = async (
    from: number,
    count: number,
    workers: number,
  ): Promise<(readonly [number, string])[]> => {
    const marks: (readonly [number, string])[] = [];
    const wrong = await tellAll({ from, count, workers, cacheDir: CODE_CACHE }, (line) => {
      marks.push([line.seed, line.mark]);
      runs += line.runs;
    });
    expect(wrong, `SEED=${wrong?.seed}: npm run sim -- --seed ${wrong?.seed}`).toBeUndefined();
    return marks.toSorted(([one], [other]) => one - other);
  };
  // Two workers play half of the stories each. Later one worker plays all of them.
  const first = await tell(1, STORIES, WORKERS);
  expect(runs, "the stories have runs").toBeGreaterThan(STORIES * 5);
  expect(await tell(1, STORIES, 1)).toEqual(first);
  expect(await tell(STORIES, 1, 1)).toEqual(first.slice(-1));
});
