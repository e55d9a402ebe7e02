// Adds a value to the text of a configuration file and keeps the rest unchanged, including comments and
// blanks.
// IN1: the new text is parsed again and must equal the old tree plus the addition; otherwise the addition
// fails.
// IN2: existing values never change.

import { isDeepStrictEqual } from "node:util";
import JSON5 from "json5";
import { isObject } from "../core/json.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { parseText, showPath, type Tree } from "./source.ts";

const INDENT = "  ";
const BLANK = /[\s\uFEFF]/;

/** Returns the position after blanks and comments. */
function pastBlanks(text: string, from: number): number {
  let at = from;
  for (;;) {
    if (BLANK.test(text[at] ?? "x")) at += 1;
    else if (text.startsWith("//", at)) at = ends(text, /[\n\r\u2028\u2029]/g, at);
    else if (text.startsWith("/*", at)) at = ends(text, /\*\//g, at + 2);
    else return at;
  }
}

/** Returns the position after the next match, or the end. */
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

/** Returns the position after the value that begins here: its comma or closing bracket. */
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
 * Returns the position after the opening brace of the object at `key`, in the object whose content begins
 * here.
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
    if (name === key) return text[value] === "{" ? value + 1 : undefined;
    const behind = pastBlanks(text, pastValue(text, value));
    at = text[behind] === "," ? pastBlanks(text, behind + 1) : behind;
  }
  return undefined;
}

function withAdded(tree: Tree, [first = "", ...rest]: readonly string[], value: unknown): Tree {
  const inner = tree[first];
  const put = rest.length === 0 ? value : withAdded(isObject(inner) ? inner : {}, rest, value);
  return { ...tree, [first]: put };
}

/** Formats the value at `path`, with new objects for missing parts of the path. */
function memberText(path: readonly string[], value: unknown, depth: number): string {
  const [key = "", ...rest] = path;
  const inner = rest.length === 0 ? value : rest.reduceRight((below, name) => ({ [name]: below }), value);
  const shown = JSON5.stringify({ [key]: inner }, { space: INDENT, quote: '"' });
  // Removes the braces around it, and their lines.
  const lines = shown.split("\n").slice(1, -1);
  return lines
    .map((line) => INDENT.repeat(depth) + line)
    .join("\n")
    .replace(/,?$/, ",");
}

/** Returns the text with `value` at `path`, which must not exist yet. An empty text is an empty file. */
export function insertAt(text: string, path: readonly string[], value: unknown): Result<string> {
  const before = parseText(text, "the configuration file");
  if (!before.ok) return before;
  const start = pastBlanks(text, 0);
  if (start >= text.length) {
    return ok(`${text}${text.trim() === "" ? "" : "\n"}{\n${memberText(path, value, 0)}\n}\n`);
  }
  let inside = start + 1;
  let depth = 0;
  let below: unknown = before.value;
  while (depth < path.length - 1) {
    const key = path[depth] ?? "";
    if (!isObject(below) || !Object.hasOwn(below, key)) break;
    const next = insideOf(text, inside, key);
    if (next === undefined)
      return fail("invalid_config", `${showPath(path.slice(0, depth + 1))} is not an object`);
    below = below[key];
    inside = next;
    depth += 1;
  }
  const rest = path.slice(depth);
  if (isObject(below) && Object.hasOwn(below, rest[0] ?? "")) {
    return fail("invalid_config", `${showPath(path.slice(0, depth + 1))} already exists`);
  }
  const closes = text[pastBlanks(text, inside)] === "}";
  const member = memberText(rest, value, depth);
  const after = `\n${member}${closes ? `\n${INDENT.repeat(depth)}` : ""}`;
  const changed = text.slice(0, inside) + after + text.slice(inside);
  const read = parseText(changed, "the configuration file");
  if (read.ok && isDeepStrictEqual(read.value, withAdded(before.value, path, value))) return ok(changed);
  return fail("invalid_config", "the configuration file cannot be changed safely. Add the setting by hand.");
}
