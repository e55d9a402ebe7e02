// Plays many stories of several processes over one store. The stories must find every mutant of the lease
// code.

import { expect, test } from "vitest";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { CLUSTER_MUTANTS } from "../mutants.ts";
import { tellAll } from "../workers.ts";

const STORIES = 120;
const TOLD_TWICE = 10;
/** Maximum number of stories in the search for a mutant. */
const STORIES_MAX = 400;
const PATIENCE_MS = 900_000;

test(`CS1-CS5 hold in ${STORIES} stories of several processes on one store, and each seed repeats its story`, {
  timeout: PATIENCE_MS,
}, async () => {
  const order = { from: 1, cluster: true, cacheDir: temporaryFolder() };
  const told = new Map<number, string>();
  const again = new Map<number, string>();
  const wrong = await tellAll({ ...order, count: STORIES, workers: 2 }, (line) =>
    told.set(line.seed, line.mark),
  );
  expect(
    wrong,
    `SEED=${wrong?.seed}: node tests/sim/worker.ts --cluster --trace --from ${wrong?.seed}`,
  ).toBeUndefined();
  await tellAll({ ...order, count: TOLD_TWICE }, (line) => again.set(line.seed, line.mark));
  expect(again.size).toBe(TOLD_TWICE);
  for (const [seed, mark] of again) expect(told.get(seed), `seed ${seed}`).toBe(mark);
});

test(`the stories find each mutant of the cluster code within ${STORIES_MAX} attempts`, {
  timeout: PATIENCE_MS,
}, async () => {
  const cacheDir = temporaryFolder();
  const missed: string[] = [];
  for (const { name } of CLUSTER_MUTANTS) {
    const order = { from: 1, count: STORIES_MAX, workers: 2, cluster: true, mutant: name, cacheDir };
    if ((await tellAll(order)) === undefined) missed.push(name);
  }
  expect(missed).toEqual([]);
});
