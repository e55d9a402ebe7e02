// Owns how much of a text fits into what is drawn in the flow view.

import { safeLine } from "../../../src/core/safe-text.ts";

/** About the width of a character of the pictures' text, CSS pixels. */
const CHAR_WIDTH = 6.3;
/** Those of these scripts are about twice as wide. */
const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe4f\\uff00-\\uff60]" +
    "|\\p{Extended_Pictographic}",
  "u",
);

/** As much of a text, made safe, as about fits in `width`. */
export function fitted(text: string, width: number): string {
  let room = width / CHAR_WIDTH;
  let shown = "";
  for (const char of safeLine(text.slice(0, 1_000))) {
    room -= WIDE.test(char) ? 2 : 1;
    if (room < 1) return `${shown.trimEnd()}…`;
    shown += char;
  }
  return shown;
}
