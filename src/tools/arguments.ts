// Reads the arguments of a tool call as models write them, against the tool's schema and its limits.
// A1: an unknown argument is named, with the nearest valid name; a wrong one, with the expected type.
// A2: an optional argument given as null, "", white space or an empty list counts as absent.
// A3: numbers and booleans may be given as strings; enums ignore case and white space.
// A4: one answer names every wrong argument.

import { isObject } from "../core/json.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import { isAgentId } from "../core/shapes/session-key.ts";
import type { JsonSchema } from "../core/shapes/tool.ts";
import { quoted } from "../core/text/cut.ts";
import { nearestName } from "../core/text/nearest.ts";

/** The problems of one call; `hints` say how to fix them. */
interface Problems {
  readonly unknown: string[];
  readonly wrong: string[];
  readonly hints: Set<string>;
  /** True if the only problem is the size of an argument. */
  tooLarge: boolean;
}

/**
 * A limit of a tool for one argument, beyond its schema. Called with the value, or with undefined if the
 * argument is absent; returns the value to use.
 */
export type ArgumentLimit = (value: unknown, name: string) => Result<unknown>;

/** Limits by the name of the argument. */
export type ArgumentLimits = Readonly<Record<string, ArgumentLimit>>;

/** Limit of problems in one answer; more would not help. */
const PROBLEMS_SHOWN_MAX = 8;
const NAME_SHOWN_MAX_CHARS = 60;
const VALUE_SHOWN_MAX_CHARS = 40;
/** Longer than any agent id: a text of this length is refused for its length, not for its form. */
const AGENT_ID_CHARS_MAX = 512;

/** Returns the type of a value with its article: "a string", "an array", "null". */
function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "object") return "an object";
  if (typeof value === "undefined") return "nothing";
  return `a ${typeof value}`;
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const BOOLEANS = new Map([
  ["true", true],
  ["false", false],
]);

/** Converts a value to the schema's type: numbers and booleans may be strings, enums in any case. */
function coerced(schema: JsonSchema, value: unknown): unknown {
  if (typeof value !== "string") return value;
  const text = value.trim();
  if (schema.type === "number") return NUMBER.test(text) ? Number(text) : value;
  if (schema.type === "boolean") return BOOLEANS.get(text.toLowerCase()) ?? value;
  if (!Array.isArray(schema.enum)) return value;
  return schema.enum.find((word) => String(word).toLowerCase() === text.toLowerCase()) ?? value;
}

/** Returns true if the value of an optional argument counts as absent. */
function saysNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value === "string") return value.trim() === "";
  return Array.isArray(value) && value.length === 0;
}

function readValue(schema: JsonSchema, given: unknown, path: string, problems: Problems): unknown {
  const value = coerced(schema, given);
  const want = (expected: string): void => {
    problems.wrong.push(`${path} must be ${expected}, got ${described(value)}`);
  };
  switch (schema.type) {
    case "string":
      if (typeof value !== "string") want("a string");
      else if (Array.isArray(schema.enum) && !schema.enum.includes(value)) {
        const got = quoted(value, VALUE_SHOWN_MAX_CHARS);
        problems.wrong.push(`${path} must be one of ${schema.enum.join(", ")}, got ${got}`);
      }
      break;
    case "boolean":
      if (typeof value !== "boolean") want("true or false");
      break;
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) want("a number");
      break;
    case "array": {
      if (!Array.isArray(value)) want("an array");
      else if (isObject(schema.items)) return readItems(schema.items, value, path, problems);
      break;
    }
    case "object":
      if (isObject(value)) return readObject(schema, value, `${path}.`, problems);
      want("an object");
  }
  return value;
}

function readItems(
  schema: JsonSchema,
  items: readonly unknown[],
  path: string,
  problems: Problems,
): unknown[] {
  return items.map((item, index) => readValue(schema, item, `${path}[${index}]`, problems));
}

function readObject(
  schema: JsonSchema,
  value: Record<string, unknown>,
  prefix: string,
  problems: Problems,
  limits: ArgumentLimits = {},
): Record<string, unknown> {
  if (!isObject(schema.properties)) return value;
  const names = Object.keys(schema.properties);
  noteUnknown(names, value, prefix, problems);
  const required = Array.isArray(schema.required) ? schema.required : [];
  const read: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    const isRequired = required.includes(name);
    if (isRequired && (given === undefined || given === null)) {
      problems.wrong.push(`${prefix}${name} is required`);
      continue;
    }
    const present = isRequired || !saysNothing(given);
    const before = problems.wrong.length;
    // The limit of an enum knows other spellings of its values, too.
    const wanted = limits[name] === undefined ? property : { ...(property as JsonSchema), enum: undefined };
    const fits = present ? readValue(wanted as JsonSchema, given, prefix + name, problems) : undefined;
    if (problems.wrong.length > before) continue;
    const limited = limits[name]?.(fits, prefix + name) ?? ok(fits);
    if (!limited.ok) {
      problems.wrong.push(limited.error);
      problems.tooLarge ||= limited.code === "too_large";
      if (limited.hint !== undefined) problems.hints.add(limited.hint);
    } else if (limited.value !== undefined) read[name] = limited.value;
  }
  return read;
}

function noteUnknown(
  names: readonly string[],
  value: Record<string, unknown>,
  prefix: string,
  problems: Problems,
): void {
  for (const name of Object.keys(value)) {
    if (names.includes(name)) continue;
    // Computing a suggestion takes time, and only the first problems are shown.
    const isShown = problems.unknown.length < PROBLEMS_SHOWN_MAX;
    const nearest = isShown ? nearestName(name, names) : undefined;
    const meant = nearest === undefined ? "" : ` (did you mean ${JSON.stringify(prefix + nearest)}?)`;
    problems.unknown.push(`unknown argument ${quoted(prefix + name, NAME_SHOWN_MAX_CHARS)}${meant}`);
  }
}

/** Returns the arguments as the tool uses them, or one failure that names every problem. */
export function readArguments(
  schema: JsonSchema,
  args: unknown,
  limits: ArgumentLimits = {},
): Result<Record<string, unknown>> {
  if (!isObject(args)) {
    return fail("invalid_argument", `the arguments must be one JSON object, got ${described(args)}`);
  }
  const problems: Problems = { unknown: [], wrong: [], hints: new Set(), tooLarge: false };
  const read = readObject(schema, args, "", problems, limits);
  const all = [...problems.unknown, ...problems.wrong];
  if (all.length === 0) return ok(read);
  const left = all.length - PROBLEMS_SHOWN_MAX;
  const text = all.slice(0, PROBLEMS_SHOWN_MAX).join("; ") + (left > 0 ? `; and ${left} more` : "");
  const names = Object.keys(isObject(schema.properties) ? schema.properties : {});
  const takes = names.length === 0 ? "It takes no arguments." : `It takes: ${names.join(", ")}.`;
  const hint =
    problems.unknown.length > 0 || problems.hints.size === 0 ? takes : [...problems.hints].join(" ");
  if (problems.unknown.length > 0) return fail("unknown_argument", text, { hint });
  return fail(problems.tooLarge && all.length === 1 ? "too_large" : "invalid_argument", text, { hint });
}

interface CountBounds {
  /** Value of an absent argument. */
  readonly fallback: number;
  /** A smaller value is an error. */
  readonly min: number;
  /** A larger value is reduced to this. */
  readonly max: number;
}

/** Limits a whole number. Fractions are rounded down; a value above `max` is reduced to it. */
export function countLimit({ fallback, min, max }: CountBounds): ArgumentLimit {
  return (value, name) => {
    if (typeof value !== "number") return ok(fallback);
    const whole = Math.floor(value);
    if (whole >= min) return ok(Math.min(whole, max));
    return fail("invalid_argument", `${name} must be at least ${min}, got ${value}`, {
      hint: `Leave ${name} out for ${fallback}; the most is ${max}.`,
    });
  };
}

/** Limits a text to `charsMax` characters; it must not be blank. */
export function textLimit(charsMax: number): ArgumentLimit {
  return (value, name) => {
    if (typeof value !== "string") return ok(undefined);
    if (value.trim() === "") return fail("invalid_argument", `${name} must not be empty`);
    if (value.length <= charsMax) return ok(value);
    return fail("invalid_argument", `${name} has ${value.length} characters; the most is ${charsMax}`);
  };
}

/** Limits a long text to `bytesMax` bytes; it must not be blank. `hint`: what to do with a longer text. */
export function bodyLimit(bytesMax: number, hint?: string): ArgumentLimit {
  return (value, name) => {
    if (typeof value !== "string" || value.trim() === "") {
      return fail("invalid_argument", `${name} must not be empty`);
    }
    const bytes = Buffer.byteLength(value);
    if (bytes <= bytesMax) return ok(value);
    const more = hint === undefined ? {} : { hint };
    return fail("too_large", `${name} has ${bytes} bytes; the most is ${bytesMax}`, more);
  };
}

/** Limits a text to a format. `problem` returns the error of an invalid text. */
export function formLimit(
  charsMax: number,
  problem: (value: string) => Failure | undefined,
  read: (value: string) => string = (value) => value,
): ArgumentLimit {
  const bounded = textLimit(charsMax);
  return (value, name) => {
    const fits = bounded(value, name);
    if (!fits.ok || typeof fits.value !== "string") return fits;
    return problem(read(fits.value)) ?? ok(read(fits.value));
  };
}

/** Reads an agent id, in upper or lower case. */
export const agentIdLimit: ArgumentLimit = formLimit(
  AGENT_ID_CHARS_MAX,
  (value) =>
    isAgentId(value)
      ? undefined
      : fail("invalid_argument", "agentId must be 1 to 64 of a-z, 0-9, _ and -", {
          hint: "agents_list and the agentId of a row in sessions_list show valid ones.",
        }),
  (value) => value.trim().toLowerCase(),
);
