// Checks that each mutant still fits the source. mutants.deep.test.ts and cluster.deep.test.ts check that the
// simulation finds it, ordinary.deep.test.ts that its test fails.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { FOUND_AT } from "./mutants/found-at.ts";
import { TESTED_MUTANTS } from "./mutants/ordinary/list.ts";
import { CLUSTER_MUTANTS, MUTANTS } from "./mutants.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test.each([
  ["of the simulation", MUTANTS],
  ["of the cluster", CLUSTER_MUTANTS],
  ["of ordinary tests", TESTED_MUTANTS],
])("each mutant %s has a unique name, and its text occurs once in the source", (_, mutants) => {
  expect(new Set(mutants.map((mutant) => mutant.name)).size).toBe(mutants.length);
  const places = mutants.map(({ name, file, from, to }) => {
    return [name, readFileSync(ROOT + file, "utf8").split(from).length - 1, from !== to];
  });
  expect(places).toEqual(mutants.map(({ name }) => [name, 1, true]));
});

test("the seeds that found a mutant are those of existing mutants", () => {
  expect(Object.keys(FOUND_AT).filter((name) => !MUTANTS.some((mutant) => mutant.name === name))).toEqual([]);
});
