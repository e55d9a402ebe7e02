// Owns the check of a tool call's arguments against the tool's schema, in words that a model can act on.
// A1: every unknown argument is named, with the nearest valid name; a wrong one says what was expected.
// A2: `checkArguments` checks what a plain schema can say; limits are checked by the readers below it.

import { type Failure, fail, ok, type Result } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { JsonSchema } from "../core/tool.ts";

interface Problems {
  readonly unknown: string[];
  readonly wrong: string[];
}

/** Problems that are reported at once; more than this help nobody. */
const PROBLEMS_SHOWN_MAX = 8;
const NAME_SHOWN_MAX_CHARS = 60;
const VALUE_SHOWN_MAX_CHARS = 40;

function shown(name: string): string {
  const text = name.length > NAME_SHOWN_MAX_CHARS ? `${name.slice(0, NAME_SHOWN_MAX_CHARS)}…` : name;
  return JSON.stringify(text);
}

/** What a value is, with its article: "a string", "an array", "null". */
function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "object") return "an object";
  if (typeof value === "undefined") return "nothing";
  return `a ${typeof value}`;
}

/** Edit distance, one row at a time. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, char] of [...from].entries()) {
    const next = [line + 1];
    for (let column = 1; column <= to.length; column++) {
      const swap = (row[column - 1] ?? 0) + (char === to[column - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** The valid name that a mistyped one most likely meant; none when nothing is close. */
export function nearestName(wanted: string, valid: readonly string[]): string | undefined {
  if (wanted.length > NAME_SHOWN_MAX_CHARS) return undefined;
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const target = plain(wanted);
  if (target === "") return undefined;
  const [best] = valid
    .map((name) => ({ name, far: nearness(target, plain(name)) }))
    .sort((a, b) => a.far - b.far);
  return best !== undefined && best.far <= Math.max(2, Math.ceil(target.length / 3)) ? best.name : undefined;
}

/** One name inside the other counts as close: `key` means `sessionKey`. */
function nearness(wanted: string, valid: string): number {
  const inside = wanted.length > 2 && (valid.includes(wanted) || wanted.includes(valid));
  return inside ? 1 : distance(wanted, valid);
}

function checkValue(schema: JsonSchema, value: unknown, path: string, problems: Problems): void {
  const want = (expected: string): void => {
    problems.wrong.push(`${path} must be ${expected}, got ${described(value)}`);
  };
  switch (schema.type) {
    case "string":
      if (typeof value !== "string") want("a string");
      return;
    case "boolean":
      if (typeof value !== "boolean") want("true or false");
      return;
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) want("a number");
      return;
    case "array":
      if (!Array.isArray(value)) want("an array");
      else if (isObject(schema.items)) checkItems(schema.items, value, path, problems);
      return;
    case "object":
      if (isObject(value)) checkObject(schema, value, `${path}.`, problems);
      else want("an object");
      return;
  }
}

function checkItems(schema: JsonSchema, items: readonly unknown[], path: string, problems: Problems): void {
  for (const [index, item] of items.entries()) checkValue(schema, item, `${path}[${index}]`, problems);
}

function checkObject(
  schema: JsonSchema,
  value: Record<string, unknown>,
  prefix: string,
  problems: Problems,
): void {
  if (!isObject(schema.properties)) return;
  const names = Object.keys(schema.properties);
  for (const name of Object.keys(value)) {
    if (names.includes(name)) continue;
    // A suggestion costs time, and only the first problems are shown.
    const isShown = problems.unknown.length < PROBLEMS_SHOWN_MAX;
    const nearest = isShown ? nearestName(name, names) : undefined;
    const meant = nearest === undefined ? "" : ` (did you mean ${JSON.stringify(prefix + nearest)}?)`;
    problems.unknown.push(`unknown argument ${shown(prefix + name)}${meant}`);
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [name, property] of Object.entries(schema.properties)) {
    const present = Object.hasOwn(value, name) && value[name] !== undefined;
    if (present) checkValue(property as JsonSchema, value[name], prefix + name, problems);
    else if (required.includes(name)) problems.wrong.push(`${prefix}${name} is required`);
  }
}

/** The arguments as they are, when they fit the schema. Nothing is converted: "5" is not a number. */
export function checkArguments(schema: JsonSchema, args: unknown): Result<Record<string, unknown>> {
  if (!isObject(args)) {
    return fail("invalid_argument", `the arguments must be one JSON object, got ${described(args)}`);
  }
  const problems: Problems = { unknown: [], wrong: [] };
  checkObject(schema, args, "", problems);
  const all = [...problems.unknown, ...problems.wrong];
  if (all.length === 0) return ok(args);
  const left = all.length - PROBLEMS_SHOWN_MAX;
  const text = all.slice(0, PROBLEMS_SHOWN_MAX).join("; ") + (left > 0 ? `; and ${left} more` : "");
  const names = Object.keys(isObject(schema.properties) ? schema.properties : {});
  const hint = names.length === 0 ? "It takes no arguments." : `It takes: ${names.join(", ")}.`;
  return fail(problems.unknown.length > 0 ? "unknown_argument" : "invalid_argument", text, { hint });
}

interface CountBounds {
  /** For an argument that is left out. */
  readonly fallback: number;
  /** Less is an error: no meaning could be guessed. */
  readonly min: number;
  /** More is cut to this. */
  readonly max: number;
}

/** A whole number within bounds; fractions are rounded down. */
export function countArgument(
  args: Record<string, unknown>,
  name: string,
  bounds: CountBounds,
): Result<number> {
  const value = args[name];
  if (typeof value !== "number") return ok(bounds.fallback);
  const whole = Math.floor(value);
  if (whole < bounds.min) {
    return fail("invalid_argument", `${name} must be at least ${bounds.min}, got ${value}`, {
      hint: `Leave ${name} out for ${bounds.fallback}; the most is ${bounds.max}.`,
    });
  }
  return ok(Math.min(whole, bounds.max));
}

/** For an argument that has to be one of these words, and is not. */
export function notOneOf(name: string, value: unknown, words: readonly string[]): Failure {
  const got = JSON.stringify(String(value).slice(0, VALUE_SHOWN_MAX_CHARS));
  return fail("invalid_argument", `${name} must be one of ${words.join(", ")}, got ${got}`);
}

/** A text that is not blank and not too long; undefined when left out. */
export function textArgument(
  args: Record<string, unknown>,
  name: string,
  charsMax: number,
): Result<string | undefined> {
  const value = args[name];
  if (typeof value !== "string") return ok(undefined);
  if (value.trim() === "") return fail("invalid_argument", `${name} must not be empty`);
  if (value.length <= charsMax) return ok(value);
  return fail("invalid_argument", `${name} has ${value.length} characters; the most is ${charsMax}`);
}
