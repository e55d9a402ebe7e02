// The checks of a story search texts for its words, so no word may be part of another.

import { expect, test } from "vitest";
import { wordOf } from "./story.ts";

test("no word of a story is part of another", () => {
  const kinds = ["label", "run", "n", "w", "k"];
  const words = Array.from({ length: 2_000 }, (_, n) => wordOf(kinds[n % kinds.length] ?? "", n));
  const parts = words.filter((word) => words.some((other) => other !== word && other.includes(word)));
  expect(parts).toEqual([]);
});
