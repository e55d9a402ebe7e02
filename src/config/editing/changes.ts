// Changes single settings in the text of a configuration file, and keeps the rest of the text: comments,
// blanks and spelling.
// CH1: the new text is parsed again and must equal the old tree with the change; otherwise the change fails.

import { isDeepStrictEqual } from "node:util";
import JSON5 from "json5";
import { jsonOf } from "../../core/json.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { type Json5Place, json5Places } from "../../core/text/json5-places.ts";
import { type Path, parsePath, showPath } from "../../core/text/value-path.ts";
import { pastBlanks, without } from "../insert.ts";
import { pathProblem, tell } from "../problems.ts";
import { parseText, type Tree, valueAt } from "../source.ts";
import { settingsOf, withPlaces } from "./entries.ts";

/** A change of one setting. Either `value` is present, or `unset` is true. */
export interface Change {
  /** The path as messages show it, like `agents.list[0].model` or `agents.list.research.model`. */
  readonly path: string;
  readonly value?: unknown;
  readonly unset?: boolean;
}

const INDENT = "  ";
const LINE_REST = /[ \t]*(?:\/\/[^\n]*|\/\*[^\n]*?\*\/)/y;

type Draft = Record<string | number, unknown>;

const isValue = ({ kind }: Json5Place): boolean => kind !== "key" && kind !== "comment";

/** Returns the place of the value at a path. Of a key that is given twice, the last one counts. */
function placeAt(places: readonly Json5Place[], path: Path): Json5Place | undefined {
  return places.findLast((place) => isValue(place) && isDeepStrictEqual(place.path, path));
}

const indentAt = (text: string, at: number): string =>
  /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1))?.[0] ?? "";

/** Returns whether the text is JSON, and not JSON5 without any name. */
const isPlainJson = (text: string): boolean => text.includes('"') && jsonOf(text) !== undefined;

interface Style {
  readonly isJson: boolean;
  readonly isOneLine: boolean;
  readonly indent: string;
}

function written(value: unknown, { isJson, isOneLine, indent }: Style): string {
  const space = isOneLine ? "" : INDENT;
  const shown = isJson ? JSON.stringify(value, null, space) : JSON5.stringify(value, { space, quote: '"' });
  return shown.replaceAll("\n", `\n${indent}`);
}

function keyText(name: string, isJson: boolean): string {
  return !isJson && /^[A-Za-z_$][\w$]*$/.test(name) ? `${name}: ` : `${JSON.stringify(name)}: `;
}

/** Returns the text with a new last member of the object or list at `box`. */
function withMember(
  text: string,
  box: Json5Place,
  last: Json5Place | undefined,
  [key, value]: [string, unknown],
) {
  const isJson = isPlainJson(text);
  const isOneLine = last !== undefined && !text.slice(box.start, box.end).includes("\n");
  const outer = indentAt(text, box.start);
  const indent = outer + INDENT;
  const name = box.kind === "list" ? "" : keyText(key, isJson);
  const member = name + written(value, { isJson, isOneLine, indent });
  if (last === undefined) {
    const close = box.end - 1;
    const inside = text.slice(0, close).trimEnd();
    return `${inside}\n${indent}${member}${isJson ? "" : ","}\n${outer}${text.slice(close)}`;
  }
  const next = pastBlanks(text, last.end);
  const hasComma = text[next] === ",";
  const before = hasComma ? text.slice(0, next + 1) : `${text.slice(0, last.end)},`;
  const rest = text.slice(hasComma ? next + 1 : last.end);
  if (isOneLine) return `${before} ${member}${hasComma ? "," : ""}${rest}`;
  LINE_REST.lastIndex = 0;
  const comment = LINE_REST.exec(rest)?.[0] ?? "";
  return `${before}${comment}\n${indent}${member}${hasComma ? "," : ""}${rest.slice(comment.length)}`;
}

function withValue(text: string, path: Path, value: unknown): Result<string> {
  const places = json5Places(text);
  const isJson = isPlainJson(text);
  const there = placeAt(places, path);
  if (there !== undefined) {
    const style = { isJson, isOneLine: false, indent: indentAt(text, there.start) };
    return ok(text.slice(0, there.start) + written(value, style) + text.slice(there.end));
  }
  let depth = path.length - 1;
  while (depth > 0 && placeAt(places, path.slice(0, depth)) === undefined) depth -= 1;
  const box = placeAt(places, path.slice(0, depth));
  if (box === undefined) return withValue(`${text}${/(^|\n)$/.test(text) ? "" : "\n"}{\n}\n`, path, value);
  const members = places.filter(
    (place) => isValue(place) && place.path.length === depth + 1 && isInside(place, box),
  );
  const part = path[depth] ?? "";
  const isNext = box.kind === "list" ? part === members.length : typeof part === "string";
  const rest = path.slice(depth + 1);
  const isMap = rest.every((one) => typeof one === "string" || one === 0);
  if ((box.kind !== "object" && box.kind !== "list") || !isNext || !isMap)
    return fail(
      "invalid_config",
      `${showPath(path)} cannot be set: ${notThere(path.slice(0, depth + 1), box)}`,
    );
  const below = rest.reduceRight<unknown>(
    (inner, one) => (typeof one === "number" ? [inner] : { [one]: inner }),
    value,
  );
  return ok(withMember(text, box, members.at(-1), [String(part), below]));
}

const isInside = (place: Json5Place, box: Json5Place): boolean =>
  place.start > box.start && place.end < box.end;

function notThere(path: Path, { kind }: Json5Place): string {
  const above = showPath(path.slice(0, -1)) || "the file";
  if (kind === "list") return `${above} is a list, whose next item is at its length`;
  return kind === "object" ? `${above} is an object, not a list` : `${above} is neither an object nor a list`;
}

/** Returns the texts that may be the text without the value. The second keeps the white space before it. */
function withoutValue(text: string, path: Path): string[] {
  const places = json5Places(text);
  const value = placeAt(places, path);
  if (value === undefined) return [text];
  const key = places.findLast(
    (place) => place.kind === "key" && place.start < value.start && isDeepStrictEqual(place.path, path),
  );
  const span = { start: key?.start ?? value.start, end: value.end };
  const next = pastBlanks(text, span.end);
  const end = text[next] === "," ? next + 1 : span.end;
  return [without(text, span), text.slice(0, span.start) + text.slice(end)];
}

/** Returns the tree with a change: the expected result (CH1). */
function changed(tree: Tree, path: Path, change: Omit<Change, "path">): Tree {
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

function applyOne(text: string, change: Change, file: string): Result<string> {
  const named = parsePath(change.path);
  if (named === undefined || "value" in change === (change.unset === true))
    return fail("invalid_argument", `the change of ${JSON.stringify(change.path)} is not valid`, {
      hint: "Give a path like agents.list.main.model, and either a value or unset: true.",
    });
  const before = parseText(text, file);
  if (!before.ok) return before;
  const places = change.unset === true ? withPlaces(before.value, named) : undefined;
  if (places !== undefined) return places.ok ? applyAt(text, places.value, { unset: true }, file) : places;
  const settings = settingsOf(before.value, named, change.value);
  if (!settings.ok) return settings;
  let result: Result<string> = ok(text);
  for (const [path, value] of settings.value)
    if (result.ok) result = applyAt(result.value, path, { value }, file);
  return result;
}

function applyAt(text: string, path: Path, change: Omit<Change, "path">, file: string): Result<string> {
  const before = parseText(text, file);
  if (!before.ok) return before;
  const isSet = valueAt(before.value, path) !== undefined;
  const wrong = isSet ? undefined : pathProblem(path);
  if (wrong !== undefined) return fail("invalid_config", tell([wrong]).join());
  const next = change.unset === true ? ok(withoutValue(text, path)) : withValue(text, path, change.value);
  if (!next.ok) return next;
  const wanted = changed(before.value, path, change);
  for (const one of [next.value].flat()) {
    const read = parseText(one, file);
    if (read.ok && isDeepStrictEqual(read.value, wanted)) return ok(one);
  }
  return fail("invalid_config", `${showPath(path)} cannot be changed safely. Edit ${file} by hand.`);
}

/** Returns the text with all changes, in their order. */
export function changeText(text: string, changes: readonly Change[], file: string): Result<string> {
  let result: Result<string> = ok(text);
  for (const change of changes) if (result.ok) result = applyOne(result.value, change, file);
  return result;
}
