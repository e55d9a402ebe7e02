// Reads the arguments of a tool call as models write them, checks them against the tool's schema, and applies
// the tool's limits.
// A1: the error for an unknown argument names the nearest valid name; the error for a wrong type names the
// expected type.
// A2: an optional argument given as null, "", white space or an empty list counts as absent.
// A3: numbers and booleans may be given as strings; enums ignore case and white space.
// A4: one error names every wrong argument.

import { addUnknown, firstProblems, type Problem, problemsOf } from "../contract/check.ts";
import { WAIT_MAX_SECONDS } from "../contract/tools/sessions.ts";
import { isObject } from "../core/json.ts";
import { optional } from "../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import { isAgentId } from "../core/shapes/session-key.ts";
import type { JsonSchema } from "../core/shapes/tool.ts";
import { quoted } from "../core/text/cut.ts";

/**
 * Checks or adjusts one argument, beyond its schema. Gets the value, or undefined if the argument is absent.
 * Returns the value to use.
 */
export type ArgumentLimit<T = unknown> = (value: unknown, name: string) => Result<T>;

/** Limits by the name of the argument. */
export type ArgumentLimits = Readonly<Record<string, ArgumentLimit>>;

const NAME_SHOWN_MAX_CHARS = 60;
/** Maximum characters of an agent id before its form is checked; longer than any valid id. */
const AGENT_ID_CHARS_MAX = 512;

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const BOOLEANS = new Map([
  ["true", true],
  ["false", false],
]);

/** Converts a value to the schema's type: accepts numbers and booleans as text, and enums in any case. */
function coerceValue(schema: JsonSchema, value: unknown): unknown {
  if (typeof value !== "string") return value;
  const text = value.trim();
  if (schema.type === "number") return NUMBER.test(text) ? Number(text) : value;
  if (schema.type === "boolean") return BOOLEANS.get(text.toLowerCase()) ?? value;
  if (!Array.isArray(schema.enum)) return value;
  return schema.enum.find((word) => String(word).toLowerCase() === text.toLowerCase()) ?? value;
}

/** Returns whether the value of an optional argument counts as absent. */
function saysNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value === "string") return value.trim() === "";
  return Array.isArray(value) && value.length === 0;
}

/**
 * Reads a value leniently (A2, A3): converts it to its type, and omits blank optional arguments. Adds a
 * sentence to `unknown` for each argument that the schema does not contain.
 */
function lenient(schema: JsonSchema, given: unknown, path: string, unknown: string[]): unknown {
  const value = coerceValue(schema, given);
  if (Array.isArray(value) && isObject(schema.items)) {
    const { items } = schema;
    return value.map((item, index) => lenient(items, item, `${path}[${index}]`, unknown));
  }
  if (!isObject(value) || !isObject(schema.properties)) return value;
  const prefix = path === "" ? "" : `${path}.`;
  addUnknown(unknown, Object.keys(value), Object.keys(schema.properties), (name, nearest) => {
    const meant = nearest === undefined ? "" : ` (did you mean ${JSON.stringify(prefix + nearest)}?)`;
    return `unknown argument ${quoted(prefix + name, NAME_SHOWN_MAX_CHARS)}${meant}`;
  });
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const read: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const one = Object.hasOwn(value, name) ? value[name] : undefined;
    const isAbsent = required.includes(name) ? one === undefined || one === null : saysNothing(one);
    if (!isAbsent) read[name] = lenient(property as JsonSchema, one, prefix + name, unknown);
  }
  return read;
}

/** Formats a path as a model writes it: `kinds[0].name`. */
function argumentPath(path: readonly string[]): string {
  return path.reduce(
    (text, step) => (/^\d+$/.test(step) ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`),
    "",
  );
}

/** The problems of one call. `hints` explain how to fix them. */
interface Limited {
  readonly args: Record<string, unknown>;
  readonly problems: readonly string[];
  readonly hints: ReadonlySet<string>;
  /** True if an argument is too large. */
  readonly tooLarge: boolean;
}

/** Applies the limits to the arguments that have no problem yet. */
function applyLimits(
  args: Record<string, unknown>,
  { properties }: JsonSchema,
  limits: ArgumentLimits,
  wrong: readonly Problem[],
): Limited {
  const problems = wrong.map(({ text }) => text);
  const hints = new Set<string>();
  let tooLarge = false;
  const read = { ...args };
  for (const [name, limit] of Object.entries(limits)) {
    const isWrong = wrong.some(({ path }) => path[0] === name);
    if (isWrong || !isObject(properties) || !Object.hasOwn(properties, name)) continue;
    const result = limit(args[name], name);
    delete read[name];
    if (result.ok) {
      if (result.value !== undefined) read[name] = result.value;
      continue;
    }
    problems.push(result.error);
    tooLarge ||= result.code === "too_large";
    if (result.hint !== undefined) hints.add(result.hint);
  }
  return { args: read, problems, hints, tooLarge };
}

/** Returns the arguments as the tool uses them, or one failure that names every problem. */
export async function readArguments(
  schema: JsonSchema,
  given: unknown,
  limits: ArgumentLimits = {},
): Promise<Result<Record<string, unknown>>> {
  if (!isObject(given)) {
    const got = given === null ? "null" : Array.isArray(given) ? "an array" : `a ${typeof given}`;
    return fail("invalid_argument", `the arguments must be one JSON object, got ${got}`);
  }
  if (!isObject(schema.properties)) return ok(given);
  const unknown: string[] = [];
  const args = lenient(schema, given, "", unknown) as Record<string, unknown>;
  // Skips the schema's check of an enum that has its own limit: that limit also accepts other spellings.
  const wrong = (await problemsOf(schema, args, argumentPath)).filter(
    ({ keyword, path: [name = "", ...below] }) =>
      keyword !== "enum" || below.length > 0 || limits[name] === undefined,
  );
  const read = applyLimits(args, schema, limits, wrong);
  const all = [...unknown, ...read.problems];
  if (all.length === 0) return ok(read.args);
  const { text } = firstProblems(all);
  const names = Object.keys(schema.properties);
  const takes = names.length === 0 ? "It takes no arguments." : `It takes: ${names.join(", ")}.`;
  const hint = unknown.length > 0 || read.hints.size === 0 ? takes : [...read.hints].join(" ");
  if (unknown.length > 0) return fail("unknown_argument", text, { hint });
  return fail(read.tooLarge && all.length === 1 ? "too_large" : "invalid_argument", text, { hint });
}

interface CountBounds {
  /** Used if the argument is absent. */
  readonly fallback: number;
  /** A smaller value is an error. */
  readonly min: number;
  /** A larger value is reduced to this. */
  readonly max: number;
}

/** Limits a whole number. Fractions are rounded down; a value above `max` is reduced to it. */
export function countLimit({ fallback, min, max }: CountBounds): ArgumentLimit<number> {
  return (value, name) => {
    if (typeof value !== "number") return ok(fallback);
    const whole = Math.floor(value);
    if (whole >= min) return ok(Math.min(whole, max));
    return fail("invalid_argument", `${name} must be at least ${min}, got ${value}`, {
      hint: `The default is ${fallback}; the maximum is ${max}.`,
    });
  };
}

/** Limits a text to `charsMax` characters; it must not be blank. */
export function textLimit(charsMax: number): ArgumentLimit<string | undefined> {
  return (value, name) => {
    if (typeof value !== "string") return ok(undefined);
    if (value.trim() === "") return fail("invalid_argument", `${name} must not be empty`);
    if (value.length <= charsMax) return ok(value);
    return fail("invalid_argument", `${name} has ${value.length} characters; the maximum is ${charsMax}`);
  };
}

/**
 * Limits a long text to `bytesMax` bytes; it must not be blank. `hint`: advice for a text that is too long.
 */
export function bodyLimit(bytesMax: number, hint?: string): ArgumentLimit<string> {
  return (value, name) => {
    if (typeof value !== "string" || value.trim() === "") {
      return fail("invalid_argument", `${name} must not be empty`);
    }
    const bytes = Buffer.byteLength(value);
    if (bytes <= bytesMax) return ok(value);
    const more = optional({ hint });
    return fail("too_large", `${name} has ${bytes} bytes; the maximum is ${bytesMax}`, more);
  };
}

/** Checks the form of a text. `problem` returns the error for an invalid text. */
export function formLimit(
  charsMax: number,
  problem: (value: string) => Failure | undefined,
  read: (value: string) => string = (value) => value,
): ArgumentLimit<string | undefined> {
  const bounded = textLimit(charsMax);
  return (value, name) => {
    const fits = bounded(value, name);
    if (!fits.ok || typeof fits.value !== "string") return fits;
    return problem(read(fits.value)) ?? ok(read(fits.value));
  };
}

/** Reads an agent id, in upper or lower case. */
export const agentIdLimit = formLimit(
  AGENT_ID_CHARS_MAX,
  (value) =>
    isAgentId(value)
      ? undefined
      : fail("invalid_argument", "agentId must be 1 to 64 of a-z, 0-9, _ and -", {
          hint: "Valid ids: see agents_list, or agentId in rows of sessions_list.",
        }),
  (value) => value.trim().toLowerCase(),
);

/** Limits the seconds of a wait. */
export function waitLimit(fallbackSeconds: number): ArgumentLimit<number> {
  return (value, name) => {
    if (typeof value !== "number") return ok(fallbackSeconds);
    // Rounds up to milliseconds, so that a short wait never becomes 0.
    if (value >= 0) return ok(Math.min(Math.ceil(value * 1_000) / 1_000, WAIT_MAX_SECONDS));
    return fail("invalid_argument", `${name} must be 0 or more, got ${value}`, {
      hint: "0 means: don't wait.",
    });
  };
}
