// Checks that each mutant still fits the source. mutants.deep.test.ts and cluster.deep.test.ts check that the
// simulation finds it.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { FOUND_AT } from "./mutants/found-at.ts";
import { CLUSTER_MUTANTS, MUTANTS } from "./mutants.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

test("each mutant has a unique name, and its text occurs once in the source", () => {
  expect(new Set(MUTANTS.map((mutant) => mutant.name)).size).toBe(MUTANTS.length);
  const places = MUTANTS.map(({ name, file, from, to }) => {
    return [name, readFileSync(ROOT + file, "utf8").split(from).length - 1, from !== to];
  });
  expect(places).toEqual(MUTANTS.map(({ name }) => [name, 1, true]));
  expect(Object.keys(FOUND_AT).filter((name) => !MUTANTS.some((mutant) => mutant.name === name))).toEqual([]);
});

test("each mutant of the cluster has a unique name, and its text occurs once in the source", () => {
  expect(new Set(CLUSTER_MUTANTS.map((mutant) => mutant.name)).size).toBe(CLUSTER_MUTANTS.length);
  const places = CLUSTER_MUTANTS.map(({ name, file, from, to }) => {
    return [name, readFileSync(ROOT + file, "utf8").split(from).length - 1, from !== to];
  });
  expect(places).toEqual(CLUSTER_MUTANTS.map(({ name }) => [name, 1, true]));
});
