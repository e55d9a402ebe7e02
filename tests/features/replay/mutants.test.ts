// Checks that each mutant still fits the source.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { REPLAY_MUTANTS } from "./mutants.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

test("each mutant of replays has a unique name, and its text occurs once in the source", () => {
  expect(new Set(REPLAY_MUTANTS.map(({ name }) => name)).size).toBe(REPLAY_MUTANTS.length);
  for (const { name, file, from, to } of REPLAY_MUTANTS) {
    const times = readFileSync(ROOT + file, "utf8").split(from).length - 1;
    expect({ name, times, isChanged: from !== to }).toEqual({ name, times: 1, isChanged: true });
  }
});
