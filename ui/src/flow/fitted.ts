// Shortens a text to the width that is available in the flow view.

import { head } from "../../../src/core/text/cut.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";

/** Approximate width of a character in the diagrams, in CSS pixels. */
const CHAR_WIDTH = 6.3;
/** Matches characters of scripts that are about twice as wide. */
const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe4f\\uff00-\\uff60]" +
    "|\\p{Extended_Pictographic}",
  "u",
);

/** Returns as much of a text as fits approximately into `width`, made safe for display. */
export function fitted(text: string, width: number): string {
  let room = width / CHAR_WIDTH;
  let shown = "";
  for (const char of safeLine(head(text, 1_000))) {
    room -= WIDE.test(char) ? 2 : 1;
    if (room < 1) return `${shown.trimEnd()}…`;
    shown += char;
  }
  return shown;
}
