// Owns how text from models, sessions and other people is shown: on a terminal, names on the web page, and
// quoted to a model.
// ST1: nothing that is shown can move the cursor, change colours, set a title or hide other text: control
//      characters and characters that reverse or hide text are written out as escapes.
// ST2: escaping the beginning of a text gives the beginning of the escaped text, so that text can be shown
//      as it grows.

/**
 * Control characters but for tab and newline, and what reorders or hides text. The joiners stay: letters of
 * some scripts and many emoji are made with them.
 */
const UNSAFE = /[^\P{Cc}\t\n]|(?![\u200c\u200d])[\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Whatever a reader may take for the end of a line. */
export const LINE_BREAK = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;
/** The place behind one: a text that is split there and joined again is the same. */
export const LINE_BREAK_AFTER = /(?<=[\n\v\f\u0085\u2028\u2029]|\r(?!\n))/;

/** How the lines begin that quote somebody else. */
export const QUOTE_MARK = "| ";

/** Words of somebody else, for a model: every line is marked, so that none can end the quotation. */
export function quoteLines(text: string): string[] {
  return text.split(LINE_BREAK).map((line) => `${QUOTE_MARK}${line}`);
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** `\u….` for each of the one or two units of a character. */
function jsonEscaped(char: string): string {
  return char
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

/** Text of several lines. Carriage returns are dropped: they would overwrite what stands before them. */
export function safeText(text: string): string {
  return text.toWellFormed().replaceAll("\r", "").replace(UNSAFE, escaped);
}

/** The same on one line: keys, labels, cells of a table. */
export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "\\n").replaceAll("\t", " ");
}

/**
 * One JSON document. JSON leaves characters as they are that a terminal obeys; escaped, they are still
 * JSON.
 */
export function safeJson(value: unknown): string {
  return harmlessJson(JSON.stringify(value, undefined, 2));
}

/** The same of a document that is text already. */
export function harmlessJson(json: string): string {
  return json.replace(UNSAFE, jsonEscaped);
}

/** Text as it may be shown while it is still growing: half a character at its end is held back. */
export function growingText(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return safeText(last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text);
}
