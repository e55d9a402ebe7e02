// Decides which texts can be labels of sessions and names of nodes: one line without control characters.

import { fail, ok, type Result } from "../shapes/errors.ts";
import { head } from "./cut.ts";
import { safeLine } from "./safe-text.ts";

export const LABEL_CHARS_MAX = 200;
const UNFIT = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\s]+/gu;

/** Returns whether a text has neither control characters nor line breaks nor lone surrogates. */
export function isPlainLine(text: string): boolean {
  return !UNFIT.test(text);
}

/** Checks a label, or another name of the same kind. `what` is used in error texts. */
export function checkLabel(text: string, what = "label"): Result<string> {
  const label = text.trim();
  if (label === "") return fail("invalid_argument", `${what} must not be empty; null clears it`);
  if (label.length > LABEL_CHARS_MAX) {
    return fail(
      "invalid_argument",
      `${what} has ${label.length} characters; the maximum is ${LABEL_CHARS_MAX}`,
    );
  }
  if (isPlainLine(label)) return ok(label);
  return fail("invalid_argument", `${what} must be one line without control characters`);
}

/** Turns a name into a label: one line without hidden characters. Returns undefined if nothing is left. */
export function labelOf(name: string, charsMax = LABEL_CHARS_MAX): string | undefined {
  const label = head(name.replaceAll(UNSEEN, " ").trim(), charsMax).trim();
  return label === "" ? undefined : label;
}

/** Returns the text on one line of limited length, or `otherwise` if nothing is left. */
export function deviceText(text: string | undefined, charsMax: number, otherwise: string): string {
  const line = safeLine(head((text ?? "").trim(), charsMax));
  return line === "" ? otherwise : line.slice(0, 4 * charsMax);
}
