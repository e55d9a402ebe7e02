// Changes single values in a JSON5 text, and keeps the rest of it: comments, blanks and spelling.
// CH1: the new text is parsed again and must equal the old tree with the change; otherwise the change fails.

import { isDeepStrictEqual } from "node:util";
import JSON5 from "json5";
import type { ConfigChange } from "../../contract/methods/configuration.ts";
import { jsonOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Json5Place, json5Places } from "../../core/text/json5-places.ts";
import { type Path, showPath } from "../../core/text/value-path.ts";
import { parseText, type Tree, valueAt } from "../source.ts";

/** A change of one value. Either `value` is present, or `unset` is true. */
type Change = Omit<ConfigChange, "path">;

const INDENT = "  ";
const LINE_REST = /[ \t]*(?:\/\/[^\n]*|\/\*[^\n]*?\*\/)/y;
const BLANKS = /(?:[\s\uFEFF]|\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?(?:\*\/|$))*/y;

type Draft = Record<string | number, unknown>;

/** Returns the first position at or after `from` that is not in white space or a comment. */
function pastBlanks(text: string, from: number): number {
  BLANKS.lastIndex = from;
  return from + (BLANKS.exec(text)?.[0].length ?? 0);
}

const isValue = ({ kind }: Json5Place): boolean => kind !== "key" && kind !== "comment";

/** Returns the place of the value at a path. Of a key that is given twice, the last one counts. */
function placeAt(places: readonly Json5Place[], path: Path): Json5Place | undefined {
  return places.findLast((place) => isValue(place) && isDeepStrictEqual(place.path, path));
}

const indentAt = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1))?.[0] ?? "";

interface Style {
  readonly isJson: boolean;
  readonly isOneLine: boolean;
  readonly indent: string;
}

function writeValue(value: unknown, { isJson, isOneLine, indent }: Style): string {
  const space = isOneLine ? "" : INDENT;
  const shown = isJson ? JSON.stringify(value, null, space) : JSON5.stringify(value, { space, quote: '"' });
  return shown.replaceAll("\n", `\n${indent}`);
}

interface Member {
  readonly key: string;
  readonly value: unknown;
  readonly isJson: boolean;
}

/** Returns the text with a new member in the object or list at `box`: first, or behind the member `last`. */
function withMember(text: string, box: Json5Place, { key, value, isJson }: Member, last?: Json5Place) {
  const isOneLine = last !== undefined && !text.slice(box.start, box.end).includes("\n");
  const outer = indentAt(text, box.start);
  const indent = outer + INDENT;
  const isBare = !isJson && /^[A-Za-z_$][\w$]*$/.test(key);
  const name = box.kind === "list" ? "" : `${isBare ? key : JSON.stringify(key)}: `;
  const member = name + writeValue(value, { isJson, isOneLine, indent });
  const close = box.end - 1;
  if (pastBlanks(text, box.start + 1) === close) {
    const inside = text.slice(0, close).trimEnd();
    return `${inside}\n${indent}${member}${isJson ? "" : ","}\n${outer}${text.slice(close)}`;
  }
  if (last === undefined)
    return `${text.slice(0, box.start + 1)}\n${indent}${member},${text.slice(box.start + 1)}`;
  const next = pastBlanks(text, last.end);
  const hasComma = text[next] === ",";
  const before = hasComma ? text.slice(0, next + 1) : `${text.slice(0, last.end)},`;
  const rest = text.slice(hasComma ? next + 1 : last.end);
  if (isOneLine) return `${before} ${member}${hasComma ? "," : ""}${rest}`;
  LINE_REST.lastIndex = 0;
  const comment = LINE_REST.exec(rest)?.[0] ?? "";
  return `${before}${comment}\n${indent}${member}${hasComma ? "," : ""}${rest.slice(comment.length)}`;
}

/** Returns the deepest existing part of a path, with the number of its steps. */
function deepestBox(places: readonly Json5Place[], path: Path): [depth: number, box?: Json5Place] {
  let depth = path.length - 1;
  while (depth > 0 && placeAt(places, path.slice(0, depth)) === undefined) depth -= 1;
  const box = placeAt(places, path.slice(0, depth));
  return box === undefined ? [depth] : [depth, box];
}

/** Returns the text of an empty file with an empty object at its end. */
const withObject = (text: string): string => `${text}${/(^|\n)$/.test(text) ? "" : "\n"}{\n}\n`;

/** Returns a value inside new objects and lists, one for each step of the path. */
const nestValue = (path: Path, value: unknown): unknown =>
  path.reduceRight<unknown>((inner, one) => (typeof one === "number" ? [inner] : { [one]: inner }), value);

function withValue(text: string, path: Path, value: unknown): Result<string> {
  const places = json5Places(text);
  // A file with JSON alone keeps its names in quotes; JSON5 without any name is not such a file.
  const isJson = text.includes('"') && jsonOf(text) !== undefined;
  const there = placeAt(places, path);
  if (there !== undefined) {
    const style = { isJson, isOneLine: false, indent: indentAt(text, there.start) };
    return ok(text.slice(0, there.start) + writeValue(value, style) + text.slice(there.end));
  }
  const [depth, box] = deepestBox(places, path);
  if (box === undefined) return withValue(withObject(text), path, value);
  const members = places.filter(
    (place) =>
      isValue(place) && place.path.length === depth + 1 && place.start > box.start && place.end < box.end,
  );
  const part = path[depth] ?? "";
  const isNext = box.kind === "list" ? part === members.length : typeof part === "string";
  const rest = path.slice(depth + 1);
  const isMap = rest.every((one) => typeof one === "string" || one === 0);
  if ((box.kind !== "object" && box.kind !== "list") || !isNext || !isMap)
    return fail("invalid_config", `${showPath(path)} cannot be set: ${notThere(path.slice(0, depth), box)}`);
  return ok(
    withMember(text, box, { key: String(part), value: nestValue(rest, value), isJson }, members.at(-1)),
  );
}

function notThere(above: Path, { kind }: Json5Place): string {
  const name = showPath(above) || "the file";
  if (kind === "list") return `${name} is a list, whose next item is at its length`;
  return kind === "object" ? `${name} is an object, not a list` : `${name} is neither an object nor a list`;
}

/** Returns the texts that may be the text without the value. The second keeps the white space before it. */
function withoutValue(text: string, path: Path): string[] {
  const places = json5Places(text);
  const value = placeAt(places, path);
  if (value === undefined) return [text];
  const key = places.findLast(
    (place) => place.kind === "key" && place.start < value.start && isDeepStrictEqual(place.path, path),
  );
  const start = key?.start ?? value.start;
  const next = pastBlanks(text, value.end);
  const [before, trimmed] = [text.slice(0, start), text.slice(0, start).trimEnd()];
  if (text[next] === ",") return [trimmed + text.slice(next + 1), before + text.slice(next + 1)];
  return [trimmed.replace(/,$/, "") + text.slice(value.end), before + text.slice(value.end)];
}

/** Returns the tree with a change: the expected result (CH1). */
function changeTree(tree: Tree, path: Path, change: Change): Tree {
  const copy = structuredClone(tree);
  let parent: Draft = copy;
  for (const [at, part] of path.slice(0, -1).entries()) {
    if (typeof parent[part] !== "object" || parent[part] === null) {
      if (change.unset === true) return copy;
      parent[part] = typeof path[at + 1] === "number" ? [] : {};
    }
    parent = parent[part] as Draft;
  }
  const last = path.at(-1) ?? "";
  if (change.unset !== true) parent[last] = change.value;
  else if (Array.isArray(parent)) parent.splice(Number(last), Object.hasOwn(parent, last) ? 1 : 0);
  else delete parent[last];
  return copy;
}

/** Returns the first of the texts that is the tree `wanted`, or the failure. */
function chooseText(texts: readonly string[], wanted: Tree, file: string, problem: string): Result<string> {
  const good = texts.find((one) => {
    const read = parseText(one, file);
    return read.ok && isDeepStrictEqual(read.value, wanted);
  });
  return good === undefined ? fail("invalid_config", problem) : ok(good);
}

/** Returns the text with a change of the value at `path`. */
export function changeAt(text: string, path: Path, change: Change, file: string): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const next = change.unset === true ? ok(withoutValue(text, path)) : withValue(text, path, change.value);
  if (!next.ok) return next;
  const problem = `${showPath(path)} cannot be changed safely. Edit ${file} by hand.`;
  return chooseText([next.value].flat(), changeTree(before.value, path, change), file, problem);
}

/**
 * Returns the text with `value` added at `path`, as the first member. Nothing may exist there, unless both
 * values are lists: then the new items are put first. An empty text counts as an empty file.
 */
export function insertAt(
  text: string,
  path: readonly string[],
  value: unknown,
  format: "json5" | "json" = "json5",
  file = "the configuration file",
): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const places = json5Places(text);
  const there = placeAt(places, path);
  const old = valueAt(before.value, path);
  const isJson = format === "json";
  const isList = Array.isArray(old) && Array.isArray(value);
  const [depth, box] = isList ? [path.length, there] : deepestBox(places, path);
  if (box === undefined) return insertAt(withObject(text), path, value, format, file);
  if (there !== undefined && !isList) return fail("invalid_config", `${showPath(path)} already exists`);
  if (!isList && box.kind !== "object")
    return fail("invalid_config", `${showPath(path.slice(0, depth))} is not an object`);
  const key = path[depth] ?? "";
  let next = text;
  for (const member of isList ? value.toReversed() : [nestValue(path.slice(depth + 1), value)]) {
    const now = placeAt(json5Places(next), box.path) ?? box;
    next = withMember(next, now, { key, value: member, isJson });
  }
  const wanted = changeTree(before.value, path, { value: isList ? [...value, ...old] : value });
  return chooseText([next], wanted, file, `${file} cannot be changed safely. Add the setting by hand.`);
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
  const gone = fail("invalid_config", `${showPath(path)} of ${file} was changed since. Remove it by hand.`);
  let left = text;
  for (const one of Array.isArray(value) ? value : [value]) {
    const before = parseText(left, file);
    if (!before.ok) return before;
    const there = valueAt(before.value, path);
    const list = Array.isArray(value) && Array.isArray(there) ? there : [there];
    const at = list.findIndex((item) => isDeepStrictEqual(item, one));
    if (at < 0) return gone;
    const next = changeAt(left, Array.isArray(value) ? [...path, at] : path, { unset: true }, file);
    if (!next.ok) return gone;
    left = next.value;
  }
  return ok(left);
}
