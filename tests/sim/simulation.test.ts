// Stories of whole gateways, told from seeds: whatever people, models, channels, disks and crashes do, I1-I14 hold.
// A failure prints its seed: `npm run sim -- --seed X` tells the same story again, with all that happens in it.

import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/engine.ts";
import type { TellingLine } from "./telling-line.ts";
import { tellAll } from "./workers.ts";

const STORIES = 1_500;
const WORKERS = 2;
/** Enough to meet every feature, the ones on a real disk among them. */
const TOLD_TWICE = 60;
/** Far more than it takes. */
const PATIENCE_MS = 900_000;

test(`I1-I14 hold in ${STORIES} stories`, { timeout: PATIENCE_MS }, async () => {
  let runs = 0;
  const wrong = await tellAll(
    { from: 1, count: STORIES, workers: WORKERS, cacheDir: temporaryFolder() },
    (line) => {
      runs += line.runs;
    },
  );
  expect(wrong, `SEED=${wrong?.seed}: npm run sim -- --seed ${wrong?.seed}`).toBeUndefined();
  expect(runs, "the stories are about something").toBeGreaterThan(STORIES * 5);
});

test("a seed tells the same story every time, whatever was told before it", {
  timeout: PATIENCE_MS,
}, async () => {
  const tell = async (from: number, count: number): Promise<Map<number, string>> => {
    const marks = new Map<number, string>();
    await tellAll({ from, count }, (line: TellingLine) => marks.set(line.seed, line.mark));
    return marks;
  };
  const [first, again, alone] = [
    await tell(1, TOLD_TWICE),
    await tell(1, TOLD_TWICE),
    await tell(TOLD_TWICE, 1),
  ];
  expect(first.size).toBe(TOLD_TWICE);
  expect([...again]).toEqual([...first]);
  expect(alone.get(TOLD_TWICE)).toBe(first.get(TOLD_TWICE));
});
