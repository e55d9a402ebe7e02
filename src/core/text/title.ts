// Turns a model's answer into the title of a session.

import { head } from "./cut.ts";
import { LINE_BREAK } from "./safe-text.ts";

export const TITLE_MAX_CHARS = 60;
const LINE_MAX_CHARS = 1_000;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;
const TAG = /<[^<>]*>/g;
const LINK = /!?\[([^\]]*)\]\([^()]*\)/g;
const MARKS = /[*`~]+|^[#>\s-]+/g;
const QUOTES = "\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d";
const AROUND = new RegExp(`^[${QUOTES}\\s]+|[${QUOTES}\\s.]+$`, "gu");

/** Returns the first line with text, without markup, control characters and quotation marks. */
export function titleIn(answer: string): string {
  for (const line of answer.split(LINE_BREAK)) {
    const seen = head(line, LINE_MAX_CHARS)
      .toWellFormed()
      .replace(UNSEEN, " ")
      .replace(TAG, "")
      .replace(LINK, "$1");
    const title = seen.replace(MARKS, "").replace(AROUND, "").replaceAll(/\s+/g, " ");
    if (title !== "") return title;
  }
  return "";
}
