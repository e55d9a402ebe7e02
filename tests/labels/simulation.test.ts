// Plays a few random stories of labels in a real gateway, and checks that each mutant still fits the source.
// simulation.deep.test.ts plays many, and checks that the stories find the mutants.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { LABEL_MUTANTS } from "./mutants.ts";
import { playStory } from "./story.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const STORIES = 3;

test("I15, I16: labels follow text in a few random stories, and nothing leaves without consent", async () => {
  for (let seed = 1; seed <= STORIES; seed += 1)
    expect(await playStory(seed), `SEED=${seed}`).toBeUndefined();
});

test("each mutant of labels has a unique name, and its text occurs once in the source", () => {
  expect(new Set(LABEL_MUTANTS.map(({ name }) => name)).size).toBe(LABEL_MUTANTS.length);
  const places = LABEL_MUTANTS.map(({ name, file, from, to }) => [
    name,
    readFileSync(ROOT + file, "utf8").split(from).length - 1,
    from !== to,
  ]);
  expect(places).toEqual(LABEL_MUTANTS.map(({ name }) => [name, 1, true]));
});
