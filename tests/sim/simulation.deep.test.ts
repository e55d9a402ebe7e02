// Plays random stories of whole gateways. A story is one simulated history, generated from a seed. I1-I14
// must hold, whatever people, models, channels and disks do, and wherever a process crashes. A failure prints
// its seed: `npm run sim -- --seed X` repeats the story with its trace.

import { beforeAll, expect, test } from "vitest";
import { temporaryFolder } from "../kit/engine/engine.ts";
import type { TellingLine } from "./checks/telling-line.ts";
import { tellAll } from "./workers.ts";

const STORIES = 500;
const WORKERS = 2;
/** Number of stories that are played twice. Together they use every feature, including a real disk. */
const TOLD_TWICE = 25;
/** Time limit, which is much longer than the stories need. */
const PATIENCE_MS = 1_500_000;

const told = new Map<number, TellingLine>();
let wrong: TellingLine | undefined;

beforeAll(async () => {
  const hear = (line: TellingLine): void => void told.set(line.seed, line);
  const cacheDir = temporaryFolder();
  wrong = await tellAll({ from: 1, count: STORIES, workers: WORKERS, cacheDir }, hear);
}, PATIENCE_MS);

test(`I1-I14 hold in ${STORIES} stories`, () => {
  expect(wrong, `SEED=${wrong?.seed}: npm run sim -- --seed ${wrong?.seed}`).toBeUndefined();
  const runs = [...told.values()].reduce((sum, line) => sum + line.runs, 0);
  expect(runs, "the stories have runs").toBeGreaterThan(STORIES * 5);
});

test("a seed always gives the same story, whatever stories were played before", {
  timeout: PATIENCE_MS,
}, async () => {
  const tell = async (from: number, count: number): Promise<(readonly [number, string])[]> => {
    const marks: (readonly [number, string])[] = [];
    await tellAll({ from, count }, ({ seed, mark }) => marks.push([seed, mark]));
    return marks;
  };
  // In the first round, two workers played every second story each. Now one worker plays all of them.
  const first = Array.from({ length: TOLD_TWICE }, (_, at) => [at + 1, told.get(at + 1)?.mark]);
  expect(await tell(1, TOLD_TWICE)).toEqual(first);
  expect(await tell(TOLD_TWICE, 1)).toEqual(first.slice(-1));
});
