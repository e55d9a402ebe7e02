// The texts of a comparison: two of them compared word by word, and those of calls in words. Pure.
// TD1: the parts of a side, joined, are its text.

import { diffArrays } from "diff/lib/diff/array.js";
import { fieldsOf } from "../../../../src/core/json.ts";
import { isId, parsed, valueWords } from "../../conversation/work/calls.ts";
import { joinWords, outcomeWord } from "../../parts/words.ts";

/** A part of a text. `changed`: the other text does not have it. */
interface Part {
  readonly text: string;
  readonly changed: boolean;
}

/** Texts that differ in more words are compared by lines, and those that differ in more lines not at all. */
const EDITS_MAX = 1_000;

/** Matches an id, a word, white space, or one other character. */
const WORDS = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\p{L}\p{M}\p{N}_]+|\s+|./gsu;
const LINES = /[^\n]*\n|[^\n]+$/gu;

/** All ids are equal, like in the comparison of chains. */
const isEqual = (a: string, b: string): boolean => a === b || (isId(a) && isId(b));

export function partsOf(text: string, other: string): readonly Part[] {
  for (const pieces of [WORDS, LINES]) {
    const [a, b] = [text.match(pieces) ?? [], other.match(pieces) ?? []];
    // The result has the second text's version of equal pieces.
    const changes = diffArrays(b, a, { comparator: isEqual, maxEditLength: EDITS_MAX });
    if (changes === undefined) continue;
    const parts = changes
      .filter(({ removed }) => !removed)
      .map(({ value, added }) => ({ text: value.join(""), changed: added }));
    // Parts between which there is only white space are joined, because many small marks are hard to read.
    const all: Part[] = [];
    for (const [at, { text, changed }] of parts.entries()) {
      const isGap = parts[at - 1]?.changed === true && parts[at + 1]?.changed === true && text.trim() === "";
      const last = all.at(-1);
      if (last !== undefined && last.changed === (changed || isGap))
        all[all.length - 1] = { ...last, text: last.text + text };
      else all.push({ text, changed });
    }
    return all;
  }
  return [{ text, changed: true }];
}

/** Returns the text of a step in words, if it is JSON: that of a call with its result, or of an end. */
export function stepWords(step: string, text: string): string {
  if (!/^(call |end$)/.test(step)) return text;
  const { state, error, code } = step === "end" ? fieldsOf(parsed(text)) : {};
  if (typeof state === "string")
    return joinWords([outcomeWord(state), ...[error, code].map((one) => String(one ?? ""))], ": ");
  const end = text.indexOf("} -> ") + 1;
  const parts = end === 0 ? [text] : [text.slice(0, end), text.slice(end + " -> ".length)];
  return parts.map((part) => valueWords(parsed(part) ?? part)).join("\n→ ");
}
