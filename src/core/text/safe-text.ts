// Makes untrusted text safe to show: on a terminal, as a name on the web page, and as a quotation for a
// model.
// ST1: shown text cannot move the cursor, change colours, set a title or hide other text. Control characters,
//      and characters that reverse or hide text, are escaped.
// ST2: the escaped form of a prefix is a prefix of the escaped text, so a growing text can be shown piece by
//      piece.

import { withoutHalf } from "./cut.ts";

/**
 * Matches control characters except tab and newline, and characters that reorder or hide text. Joiners are
 * allowed, because some scripts and many emoji need them.
 */
const UNSAFE = /[^\P{Cc}\t\n]|(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Matches every character that a reader may interpret as the end of a line. */
export const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;
/** Matches the position after a line break. A text that is split there can be joined again without loss. */
export const LINE_BREAK_AFTER = /(?<=[\n\v\f\u0085\u2028\u2029]|\r(?!\n))/;

/** Prefix of each line of a quotation. */
export const QUOTE_MARK = "| ";

/**
 * Quotes a text by another author for a model. Every line is marked, so that no line can end the quotation.
 */
export function quoteLines(text: string): string[] {
  return text.split(LINE_BREAK).map((line) => `${QUOTE_MARK}${line}`);
}

/** Cleans a name for a label in brackets, so that it can't close the label or begin another line. */
export function plainName(name: string): string {
  return name.replace(/[[\]\p{Cc}\u2028\u2029]+/gu, " ").trim();
}

function escapeChar(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/**
 * Escapes a text with several lines. Removes carriage returns, because text after them would overwrite the
 * line.
 */
export function safeText(text: string): string {
  return text.toWellFormed().replaceAll("\r", "").replace(UNSAFE, escapeChar);
}

/**
 * Matches what a reader does not see, or takes for something else: control characters, characters without a
 * shape or a meaning, line and paragraph separators, and blanks that are no spaces.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{DI}\u2800]|(?! )\p{Zs}/gu;
const MARKED: ReadonlyMap<string, string> = new Map([
  ["\n", "⏎\n"],
  ["\t", "⇥\t"],
]);

/**
 * Shows a text, for example a command that somebody has to approve, so that all of it can be seen: marks line
 * breaks and tabs, and escapes everything else that has no shape. Unlike `safeText`, removes nothing.
 */
export function visibleText(text: string): string {
  return text.toWellFormed().replace(UNSEEN, (char) => MARKED.get(char) ?? escapeChar(char));
}

/** Quotes a visible text of several lines in Markdown. Escapes all punctuation, because agents write it. */
export function markdownQuote(text: string): string {
  const escapedText = text.replaceAll(/[!-/:-@[-`{-~]/g, "\\$&");
  return escapedText.replaceAll(/^/gm, "┃ ");
}

/**
 * Escapes a text that is shown in one line, for example a key, a label or a table cell. The marks of
 * `visibleText` stand for their line breaks.
 */
export function safeLine(text: string): string {
  return safeText(text).replaceAll("⏎\n", "⏎ ").replaceAll("\n", "\\n").replaceAll("\t", " ");
}

/** Escapes a text that is shown as words in one line of Markdown, for example in a message to a chat. */
export function markdownLine(text: string): string {
  return safeLine(text).replaceAll(/[`*_~[\]<>@#|\\]/g, "\\$&");
}

/**
 * Formats a value as JSON. Also escapes characters that JSON does not escape but that control a terminal. The
 * result is still valid JSON.
 */
export function safeJson(value: unknown): string {
  return harmlessJson(JSON.stringify(value, undefined, 2));
}

/** Escapes a JSON text in the same way as `safeJson`. */
export function harmlessJson(json: string): string {
  return json.replace(UNSAFE, (char) => {
    const units = char.split("").map((unit) => unit.charCodeAt(0).toString(16).padStart(4, "0"));
    return units.map((digits) => `\\u${digits}`).join("");
  });
}

/** Returns the part of a growing text that can be shown. Holds back half a surrogate pair at the end. */
export function growingText(text: string): string {
  return safeText(withoutHalf(text));
}
