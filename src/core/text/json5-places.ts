// Finds the parts of a JSON5 text: keys, values, comments, each with its position and its path. The text may
// be incomplete or invalid, because people edit it: a missing comma or quote affects only its own line.
// JP1: the work is linear in the length of the text, however deep it is nested.

import type { Path } from "./value-path.ts";

/** A part of the text. `text` is a quoted value, `word` any other value. */
export interface Json5Place {
  readonly kind: "key" | "text" | "word" | "comment" | "object" | "list";
  readonly start: number;
  /** The position after the part. Its quotes, brackets and comment marks belong to the part. */
  readonly end: number;
  /** The path of the value. The path of a key ends with the key. */
  readonly path: Path;
}

/**
 * Maximum depth of paths. A value that is nested more deeply gets the path of the object or list at this
 * depth that contains it.
 */
const DEPTH_MAX = 64;
const LINE_END = /[\n\r\u2028\u2029]/g;
const WORD_END = /[\s,:{}[\]"'\uFEFF]|\/[/*]/g;
const BLANKS = /[\s\uFEFF]*/y;

interface Open {
  readonly place: { kind: "object" | "list"; start: number; end: number; path: Path };
  /** The key that was read last in an object, or the position in a list. */
  at: string | number;
  /** Whether the next word or text is a key. */
  wantsKey: boolean;
}

/** Returns the first position from `from` at which the pattern matches, or the end of the text. */
function next(text: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}

/** Returns the end of a quoted text. If the closing quote is missing, this is the end of the line. */
function quotedEnd(text: string, from: number): number {
  const quote = text[from];
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === quote) return at + 1;
    if (text[at] === "\n" || text[at] === "\r") return at;
    if (text[at] === "\\") at += text.startsWith("\r\n", at + 1) ? 2 : 1;
  }
  return text.length;
}

function commentEnd(text: string, from: number): number {
  if (text[from + 1] === "/") return next(text, LINE_END, from);
  const close = text.indexOf("*/", from + 2);
  return close < 0 ? text.length : close + 2;
}

/** Returns the text with each escape sequence replaced by the character that it stands for. */
export function unescapeText(text: string): string {
  return text.replace(/\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|\r\n|([\s\S]))/gi, (_, wide, short, char = "") => {
    if (wide !== undefined || short !== undefined) return String.fromCharCode(parseInt(wide ?? short, 16));
    return char === "\n" ? "" : char;
  });
}

class Reader {
  readonly places: Json5Place[] = [];
  readonly #open: Open[] = [];

  /** Returns the path of a value at this position of the text. */
  #path(): Json5Place["path"] {
    const top = this.#open.at(-1);
    if (top === undefined) return [];
    return this.#open.length > DEPTH_MAX ? top.place.path : [...top.place.path, top.at];
  }

  open(kind: "object" | "list", start: number, end: number): void {
    const place = { kind, start, end, path: this.#path() };
    this.places.push(place);
    this.#open.push({ place, at: kind === "list" ? 0 : "", wantsKey: kind === "object" });
  }

  close(kind: "object" | "list", end: number): void {
    // A bracket of the other kind is a typing error: it closes nothing.
    const top = this.#open.at(-1);
    if (top?.place.kind !== kind) return;
    top.place.end = end;
    this.#open.pop();
    this.#valueRead();
  }

  #valueRead(): void {
    const top = this.#open.at(-1);
    if (top?.place.kind === "object") top.wantsKey = true;
  }

  mark(char: "," | ":"): void {
    const top = this.#open.at(-1);
    if (top === undefined) return;
    if (typeof top.at === "number") top.at += char === "," ? 1 : 0;
    else top.wantsKey = char === ",";
  }

  scalar(text: string, start: number, end: number): void {
    const top = this.#open.at(-1);
    const isQuoted = text[start] === '"' || text[start] === "'";
    if (top?.wantsKey === true) {
      const closed = isQuoted && end - start > 1 && text[end - 1] === text[start];
      top.at = unescapeText(text.slice(start + (isQuoted ? 1 : 0), end - (closed ? 1 : 0)));
      top.wantsKey = false;
      this.places.push({ kind: "key", start, end, path: this.#path() });
      return;
    }
    this.places.push({ kind: isQuoted ? "text" : "word", start, end, path: this.#path() });
    this.#valueRead();
  }
}

/** Returns the parts of the text, in the order of their starts. */
export function json5Places(text: string): Json5Place[] {
  const reader = new Reader();
  let at = 0;
  while (at < text.length) {
    BLANKS.lastIndex = at;
    at += BLANKS.exec(text)?.[0].length ?? 0;
    const char = text[at] ?? "";
    const start = at;
    if (char === "") break;
    if (text.startsWith("//", at) || text.startsWith("/*", at)) {
      at = commentEnd(text, at);
      reader.places.push({ kind: "comment", start, end: at, path: [] });
      continue;
    }
    at += 1;
    if (char === "{" || char === "[") reader.open(char === "{" ? "object" : "list", start, text.length);
    else if (char === "}" || char === "]") reader.close(char === "}" ? "object" : "list", at);
    else if (char === "," || char === ":") reader.mark(char);
    else {
      at = char === '"' || char === "'" ? quotedEnd(text, start) : next(text, WORD_END, at);
      reader.scalar(text, start, at);
    }
  }
  return reader.places;
}

/**
 * Returns the path at a position: the path of the key or value before it on the same line, or else of the
 * object or list around it.
 */
export function pathAt(text: string, places: readonly Json5Place[], caret: number): Json5Place["path"] {
  let around: Json5Place["path"] = [];
  let found: Json5Place | undefined;
  for (const place of places) {
    if (place.start > caret) break;
    if (place.kind === "comment") continue;
    const isBox = place.kind === "object" || place.kind === "list";
    if (isBox && place.end <= caret) continue;
    if (isBox) around = place.path;
    found = isBox ? undefined : place;
  }
  const isNear = found !== undefined && !/[\n}\]]/.test(text.slice(found.end, caret));
  return isNear ? (found?.path ?? around) : around;
}
