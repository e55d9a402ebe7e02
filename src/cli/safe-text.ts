// Owns how text from models, sessions and other people gets onto a terminal.
// ST1: nothing that is shown can move the cursor, change colours, set a title or hide other text: control
//      characters and characters that reverse or hide text are written out as escapes.
// ST2: escaping the beginning of a text gives the beginning of the escaped text, so that text can be shown
//      as it grows.

/**
 * C0 without tab and newline, DEL, C1 (where terminals read 0x9B as an escape sequence), and what reorders
 * or hides text.
 */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not reach a
  // terminal.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function escaped(char: string): string {
  const code = char.charCodeAt(0);
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}

/**
 * Text of several lines, safe to show. Carriage returns are dropped: they would overwrite what stands
 * before them.
 */
export function safeText(text: string): string {
  return text.replaceAll("\r", "").replace(UNSAFE, escaped);
}

/** The same on one line: keys, labels, cells of a table. */
export function safeLine(text: string): string {
  return safeText(text).replaceAll("\n", "\\n").replaceAll("\t", " ");
}

/**
 * One JSON document. JSON leaves some characters as they are that a terminal obeys; escaped, they are still
 * JSON.
 */
export function safeJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(UNSAFE, (char) =>
    char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Text as it may be shown while it is still growing: half a character at its end is held back. */
export function growingText(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return safeText(last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text);
}
