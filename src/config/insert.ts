// Adds a value to the text of a configuration file and keeps the rest unchanged, including comments and
// blanks.
// IN1: the new text is parsed again and must equal the old tree plus the addition; otherwise the addition
// fails.
// IN2: existing values never change; a list only gets new items.

import { isDeepStrictEqual } from "node:util";
import JSON5 from "json5";
import { isObject } from "../core/json.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { showPath } from "../core/text/value-path.ts";
import { parseText, type Tree } from "./source.ts";

const INDENT = "  ";

/** Format of the inserted text. `json`: with quoted names and without trailing commas. */
export type InsertFormat = "json5" | "json";
const BLANK = /[\s\uFEFF]/;

/** Returns the first position at or after `from` that is not in white space or a comment. */
export function pastBlanks(text: string, from: number): number {
  let at = from;
  for (;;) {
    if (BLANK.test(text[at] ?? "x")) at += 1;
    else if (text.startsWith("//", at)) at = ends(text, /[\n\r\u2028\u2029]/g, at);
    else if (text.startsWith("/*", at)) at = ends(text, /\*\//g, at + 2);
    else return at;
  }
}

/** Returns the end of the pattern's next match, or the end of the text. */
function ends(text: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text) === null ? text.length : pattern.lastIndex;
}

/** Returns the position after the quoted text that begins here. */
function pastQuoted(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== text[from]) at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** Returns the end of the value that begins here: the position of the next comma or closing bracket. */
function pastValue(text: string, from: number): number {
  let depth = 0;
  let at = pastBlanks(text, from);
  while (at < text.length) {
    const char = text[at] ?? "";
    if (char === '"' || char === "'") {
      at = pastQuoted(text, at);
    } else if ("{[".includes(char)) {
      depth += 1;
      at += 1;
    } else if ("}]".includes(char)) {
      if (depth === 0) return at;
      depth -= 1;
      at += 1;
    } else if (char === "," && depth === 0) {
      return at;
    } else {
      const next = pastBlanks(text, at);
      at = next === at ? at + 1 : next;
    }
  }
  return at;
}

/**
 * Returns the position after the opening bracket of the object or list at `key`. `from`: where the content of
 * the object that contains `key` starts.
 */
function insideOf(text: string, from: number, key: string): number | undefined {
  let at = pastBlanks(text, from);
  while (at < text.length && text[at] !== "}") {
    const quoted = text[at] === '"' || text[at] === "'";
    const end = quoted ? pastQuoted(text, at) : ends(text, /[\w$\u0080-\uFFFF\\]+/g, at);
    const name = quoted ? String(JSON5.parse(text.slice(at, end))) : text.slice(at, end);
    const colon = pastBlanks(text, end);
    if (text[colon] !== ":") return undefined;
    const value = pastBlanks(text, colon + 1);
    if (name === key) return "{[".includes(text[value] ?? "x") ? value + 1 : undefined;
    const behind = pastBlanks(text, pastValue(text, value));
    at = text[behind] === "," ? pastBlanks(text, behind + 1) : behind;
  }
  return undefined;
}

function withAdded(tree: Tree, [first = "", ...rest]: readonly string[], value: unknown): Tree {
  const inner = tree[first];
  if (rest.length === 0 && Array.isArray(inner) && Array.isArray(value))
    return { ...tree, [first]: [...value, ...inner] };
  const put = rest.length === 0 ? value : withAdded(isObject(inner) ? inner : {}, rest, value);
  return { ...tree, [first]: put };
}

/** Formats the content of an object or list, without its brackets. */
function contentText(value: Tree | readonly unknown[], depth: number, format: InsertFormat): string {
  const json5 = { space: INDENT, quote: '"' };
  const shown = format === "json5" ? JSON5.stringify(value, json5) : JSON.stringify(value, null, INDENT);
  // Removes the lines with the outer brackets.
  const lines = shown.split("\n").slice(1, -1);
  return lines
    .map((line) => INDENT.repeat(depth) + line)
    .join("\n")
    .replace(/,$/, "");
}

/** Returns nested objects, one for each part of `path`, with `value` at the end. */
function nested(path: readonly string[], value: unknown): Tree {
  return path.reduceRight((below, name) => ({ [name]: below }), value as Tree);
}

/** The position of new content: after the opening bracket of the deepest existing part of the path. */
interface InsertionPoint {
  readonly inside: number;
  readonly depth: number;
  readonly content: Tree | readonly unknown[];
}

function insertionPoint(
  text: string,
  tree: Tree,
  path: readonly string[],
  value: unknown,
): Result<InsertionPoint> {
  let inside = pastBlanks(text, 0) + 1;
  let depth = 0;
  let below: unknown = tree;
  while (isObject(below) && Object.hasOwn(below, path[depth] ?? "")) {
    const key = path[depth] ?? "";
    const next = insideOf(text, inside, key);
    const isLast = depth === path.length - 1;
    below = below[key];
    depth += 1;
    const shown = showPath(path.slice(0, depth));
    if (isLast && !(Array.isArray(below) && Array.isArray(value)))
      return fail("invalid_config", `${shown} already exists`);
    if (next === undefined || (!isLast && !isObject(below)))
      return fail("invalid_config", `${shown} is not an object`);
    inside = next;
    if (isLast) return ok({ inside, depth, content: value as readonly unknown[] });
  }
  return ok({ inside, depth, content: nested(path.slice(depth), value) });
}

/**
 * Returns the text with `value` added at `path`. Nothing may exist there, unless both values are lists: then
 * the new items are put first. An empty text counts as an empty file.
 */
export function insertAt(
  text: string,
  path: readonly string[],
  value: unknown,
  format: InsertFormat = "json5",
  file = "the configuration file",
): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const comma = format === "json5" ? "," : "";
  const start = pastBlanks(text, 0);
  if (start >= text.length) {
    const content = contentText(nested(path, value), 0, format);
    return ok(`${text}${text.trim() === "" ? "" : "\n"}{\n${content}${comma}\n}\n`);
  }
  const found = insertionPoint(text, before.value, path, value);
  if (!found.ok) return found;
  const { inside, depth, content } = found.value;
  const closes = "}]".includes(text[pastBlanks(text, inside)] ?? "x");
  const member = contentText(content, depth, format);
  const after = closes ? `\n${member}${comma}\n${INDENT.repeat(depth)}` : `\n${member},`;
  const changed = text.slice(0, inside) + after + text.slice(inside);
  const read = parseText(changed, file);
  if (read.ok && isDeepStrictEqual(read.value, withAdded(before.value, path, value))) return ok(changed);
  return fail("invalid_config", `${file} cannot be changed safely. Add the setting by hand.`);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

interface Member extends Span {
  readonly value: unknown;
}

/** Returns the position of a member of an object, or of the list item that equals `wanted`. */
function memberAt(
  text: string,
  inside: number,
  wanted: { key: string } | { item: unknown },
): Member | undefined {
  let at = pastBlanks(text, inside);
  while (at < text.length && !"}]".includes(text[at] ?? "}")) {
    const start = at;
    let value = at;
    let key: string | undefined;
    if ("key" in wanted) {
      const quoted = text[at] === '"' || text[at] === "'";
      const end = quoted ? pastQuoted(text, at) : ends(text, /[\w$\u0080-\uFFFF\\]+/g, at);
      key = quoted ? String(JSON5.parse(text.slice(at, end))) : text.slice(at, end);
      const colon = pastBlanks(text, end);
      if (text[colon] !== ":") return undefined;
      value = pastBlanks(text, colon + 1);
    }
    const end = pastValue(text, value);
    const parsed: unknown = JSON5.parse(text.slice(value, end));
    if ("key" in wanted ? key === wanted.key : isDeepStrictEqual(parsed, wanted.item))
      return { start, end, value: parsed };
    const behind = pastBlanks(text, end);
    at = text[behind] === "," ? pastBlanks(text, behind + 1) : behind;
  }
  return undefined;
}

/** Returns the text without a member, its comma and the white space before it. */
export function without(text: string, { start, end }: Span): string {
  const from = text.slice(0, start).trimEnd().length;
  const behind = pastBlanks(text, end);
  if (text[behind] === ",") return text.slice(0, from) + text.slice(behind + 1);
  const before = text.slice(0, from);
  return (before.endsWith(",") ? before.slice(0, -1) : before) + text.slice(end);
}

/**
 * Returns the text without the value that `insertAt` added at `path`. Fails if the value was changed since.
 * Objects on the path stay, even if they become empty.
 */
export function removeAt(
  text: string,
  path: readonly string[],
  value: unknown,
  file: string,
): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const changed = fail(
    "invalid_config",
    `${showPath(path)} of ${file} was changed since. Remove it by hand.`,
  );
  const items = Array.isArray(value) ? value : undefined;
  let inside: number | undefined = pastBlanks(text, 0) + 1;
  for (const key of items === undefined ? path.slice(0, -1) : path) {
    inside = insideOf(text, inside, key);
    if (inside === undefined) return changed;
  }
  if (items === undefined) {
    const found = memberAt(text, inside, { key: path.at(-1) ?? "" });
    return found !== undefined && isDeepStrictEqual(found.value, value) ? ok(without(text, found)) : changed;
  }
  let left = text;
  for (const item of items) {
    const found = memberAt(left, inside, { item });
    if (found === undefined) return changed;
    left = without(left, found);
  }
  return parseText(left, file).ok ? ok(left) : changed;
}
