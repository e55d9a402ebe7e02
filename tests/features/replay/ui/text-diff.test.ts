// The word-by-word comparison of two texts.

import fc from "fast-check";
import { expect, test } from "vitest";
import { partsOf, stepWords } from "../../../../ui/src/features/replay/text-diff.ts";

const [ONE, TWO] = ["01a21055-5d7a-7c49-8e3f-51d8036d0f5a", "01a21055-5d7a-7c49-8e3f-51d8036d0f5b"];

/** Shows changed parts in brackets. */
const shown = (text: string, other: string): string =>
  partsOf(text, other)
    .map((part) => (part.changed ? `[${part.text}]` : part.text))
    .join("");

test.each([
  ["the tides of Saturn", "the rings of Saturn", "the [tides] of Saturn"],
  ["same", "same", "same"],
  ["", "new", ""],
  ["all new words here", "", "[all new words here]"],
  ["keep this and add that", "keep this", "keep this[ and add that]"],
  ["a red fox", "a blue dog", "a [red fox]"],
  [`job ${ONE} ended`, `job ${TWO} ended`, `job ${ONE} ended`],
  ["naïve café", "naïve thé", "naïve [café]"],
])("words that differ are marked, and ids count as equal: %s / %s", (text, other, marked) => {
  expect(shown(text, other)).toBe(marked);
});

test("texts with many different words are compared by lines", () => {
  const words = (name: string): string => Array.from({ length: 900 }, (_, at) => `${name}${at}`).join(" ");
  expect(shown(`title\n${words("a")}\nend`, `title\n${words("b")}\nend`)).toBe(`title\n[${words("a")}\n]end`);
});

test("TD1: the parts of a text, joined, are the text", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", ONE, TWO, "é", "👍") });
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(
        partsOf(one, other)
          .map((part) => part.text)
          .join(""),
      ).toBe(one);
    }),
  );
});

test.each([
  [
    "call exec",
    '{"command":"ls\\nrm a"} -> {"status":"forbidden","code":"denied"}',
    "command: ls\nrm a\n→ status: forbidden, code: denied",
  ],
  ["call grep", '{"pattern":"a"} -> one -> two', "pattern: a\n→ one -> two"],
  ["call odd", '{"pattern":"} -> "} -> none', '{"pattern":"}\n→ "} -> none'],
  ["end", '{"state":"ok"}', "done"],
  ["message", '{"state":"ok"}', '{"state":"ok"}'],
])("a step of the kind %s is shown in words", (step, text, words) => {
  expect(stepWords(step, text)).toBe(words);
});
