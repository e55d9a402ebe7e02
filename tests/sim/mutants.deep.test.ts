// Checks that the simulation finds bugs: it must find each mutant (a broken variant of the source) within a
// bounded number of stories.

import { expect, test } from "vitest";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { FOUND_AT } from "./mutants/found-at.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { MUTANTS } from "./mutants.ts";
import { tellAll } from "./workers.ts";

/** Maximum number of stories in the search for a mutant. */
const STORIES_MAX = 2_000;
/** Number of mutants that are searched for in parallel. */
const HUNTS = 2;
const PATIENCE_MS = 900_000;

/** Returns whether a story finds the mutant. Tries the seed that found it before, then all seeds. */
async function hunt({ name }: Mutant, cacheDir: string): Promise<boolean> {
  const known = FOUND_AT[name];
  const again = known && (await tellAll({ from: known, count: 1, mutant: name, cacheDir }));
  if (again) return true;
  const wrong = await tellAll({ from: 1, count: STORIES_MAX, mutant: name, cacheDir });
  if (wrong !== undefined) console.log(`found-at.ts, for minutes less: "${name}": ${wrong.seed},`);
  return wrong !== undefined;
}

test(`the stories find each mutant within ${STORIES_MAX} attempts`, { timeout: PATIENCE_MS }, async () => {
  const cacheDir = temporaryFolder();
  const left = [...MUTANTS];
  const missed: string[] = [];
  const hunter = async (): Promise<void> => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      if (!(await hunt(mutant, cacheDir))) missed.push(mutant.name);
    }
  };
  await Promise.all(Array.from({ length: HUNTS }, hunter));
  expect(missed).toEqual([]);
});
