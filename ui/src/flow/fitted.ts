// Shortens texts to the width that is available in the flow view.

import { head } from "../../../src/core/text/cut.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";

/** Minimum width at which a text may have two lines. */
const TWO_LINES_MIN = 80;
/** Approximate width of a character in the diagrams, in CSS pixels. */
const CHAR_WIDTH = 6.3;
/** Matches characters that are about twice as wide as a Latin letter. */
const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe4f\\uff00-\\uff60]" +
    "|\\p{Extended_Pictographic}",
  "u",
);

/** Returns the beginning of a text that fits into about `width`, made safe for display. */
export function fitted(text: string, width: number): string {
  const line = safeLine(head(text, 1_000));
  let room = width / CHAR_WIDTH;
  let end = 0;
  for (const char of line) {
    room -= WIDE.test(char) ? 2 : 1;
    if (room < 1) return `${head(line, end).trimEnd()}…`;
    end += char.length;
  }
  return line;
}

/** Returns whether a text needs a second line. Below `TWO_LINES_MIN` it always has one. */
export function isTooLong(text: string, width: number): boolean {
  if (width < TWO_LINES_MIN) return false;
  return text.length * CHAR_WIDTH >= width && !fitted(text, width).endsWith(text.slice(-4));
}

/** Returns a text on at most two lines of about this width, made safe for display. */
export function twoLines(text: string, width: number): readonly [string] | readonly [string, string] {
  const first = fitted(text, width);
  if (!first.endsWith("…") || !isTooLong(text, width)) return [first];
  const safe = safeLine(head(text, 1_000));
  const part = first.slice(0, -1);
  const space = part.lastIndexOf(" ");
  // Do not split a word, unless most of the line would stay empty.
  const cut = safe[part.length] !== " " && space > part.length / 2 ? space : part.length;
  return [part.slice(0, cut).trimEnd(), fitted(safe.slice(cut).trimStart(), width)];
}
