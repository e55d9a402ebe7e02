// Checks values against the schemas of the contract. The errors tell the caller what to change. An unknown
// field is reported with the nearest valid name, an invalid value with the expected one. The result has only
// the fields that handlers read: ignored and inherited fields are left out. Depth is checked before any
// recursive walk.
// V4: a limit on characters counts UTF-16 code units, because one visible character can have a million of
//     them.

import type { Validator } from "typebox/schema";
import { isObject } from "../core/json.ts";
import { optional } from "../core/optional.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import { quoted } from "../core/text/cut.ts";
import { nearestName } from "../core/text/nearest.ts";
import { BODIES, type BodyName, type BodyOf } from "./bodies.ts";
import { CONNECT, type ConnectParams } from "./frames.ts";
import { METHODS, type MethodName, methodOf, type ParamsOf } from "./methods.ts";
import type { ObjectSchema, Of } from "./schema.ts";

/** Maximum nesting of arrays and objects in a request. */
const DEPTH_MAX = 64;
/** Maximum number of problems that one error describes. Further problems are only counted. */
const PROBLEMS_SHOWN_MAX = 8;
const SHOWN_MAX_CHARS = 60;
/** Every method accepts this param. A method without side effects ignores it. */
const EVERYWHERE = "idempotencyKey";

type SchemaError = ReturnType<Validator["Errors"]>[1][number];

/** A part of a value that does not match its schema. */
export interface Problem {
  readonly path: readonly string[];
  /** The keyword of the schema that the part violates. */
  readonly keyword: string;
  readonly text: string;
}

/** Compiled schemas. Each is compiled at its first use: compiling all would slow the start. */
const validators = new WeakMap<object, Validator>();

async function validatorOf(schema: object): Promise<Validator> {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  const { Compile } = await import("typebox/schema");
  const made = Compile(schema) as Validator;
  validators.set(schema, made);
  return made;
}

/** Describes a value: "null", "an array", "a number", or the text itself. */
function describeValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value !== "string") return `a ${typeof value}`;
  return quoted(value, SHOWN_MAX_CHARS);
}

/**
 * Returns whether the value has more levels than any method needs. It uses no recursion, so it cannot
 * overflow the stack.
 */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return true;
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      for (const inner of Object.values(item))
        if (typeof inner === "object" && inner !== null) next.push(inner);
    }
    level = next;
  }
  return false;
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  null: "null",
};

function expectation(problem: SchemaError): string | undefined {
  switch (problem.keyword) {
    case "type": {
      const types = [problem.params.type].flat().map((type) => KINDS[type] ?? type);
      return types.join(" or ");
    }
    case "enum":
      return `one of ${problem.params.allowedValues.join(", ")}`;
    case "minimum":
      return `at least ${problem.params.limit}`;
    case "maximum":
      return `at most ${problem.params.limit}`;
    case "minLength":
      return "not empty";
    case "maxLength":
      return `at most ${problem.params.limit} characters`;
    case "pattern":
      return "text without control characters or unpaired surrogates";
    case "minItems":
      return "a list of at least one item";
    case "maxItems":
      return `a list of at most ${problem.params.limit}`;
    default:
      return undefined;
  }
}

/** Formats the path to a field: `attachments.0.content`, or `kinds[0]` in the arguments of a tool. */
type PathFormat = (path: readonly string[]) => string;

const joinWithDots: PathFormat = (path) => path.join(".");

function problemsIn(error: SchemaError, value: unknown, format: PathFormat): Problem[] {
  const path = error.instancePath.split("/").slice(1);
  if (error.keyword === "required") {
    return error.params.requiredProperties.map((missing) => {
      const whole = [...path, missing];
      return { path: whole, keyword: error.keyword, text: `${format(whole)} is required` };
    });
  }
  const { keyword } = error;
  const expected = expectation(error);
  const where = path.length === 0 ? "params" : format(path);
  if (expected === undefined) return [{ path, keyword, text: `${where}: ${error.message}` }];
  let given: unknown = value;
  for (const step of path)
    given = typeof given === "object" && given !== null ? Reflect.get(given, step) : undefined;
  const isBound = keyword === "minimum" || keyword === "maximum";
  return [
    {
      path,
      keyword,
      text: `${where} must be ${expected}, got ${isBound ? String(given) : describeValue(given)}`,
    },
  ];
}

/** Returns the parts of the value that do not match the schema. Unknown fields are allowed. */
export async function problemsOf(
  schema: object,
  value: unknown,
  format: PathFormat = joinWithDots,
): Promise<Problem[]> {
  const validator = await validatorOf(schema);
  if (validator.Check(value)) return overlong(schema, value, [], format);
  const [, errors] = validator.Errors(value);
  // A value of the wrong type also violates the list of allowed values. Report only the type.
  const typed = new Set(
    errors.filter(({ keyword }) => keyword === "type").map((error) => error.instancePath),
  );
  const told = errors.filter(({ keyword, instancePath }) => keyword !== "enum" || !typed.has(instancePath));
  const found = told.flatMap((error) => problemsIn(error, value, format));
  return [...new Map(found.map((problem) => [problem.text, problem])).values()];
}

/**
 * Returns strings that exceed their limit in UTF-16 units. The validator counts visible characters instead
 * (V4).
 */
function overlong(schema: unknown, value: unknown, path: readonly string[], format: PathFormat): Problem[] {
  if (!isObject(schema)) return [];
  const { maxLength, items, properties } = schema;
  if (typeof value === "string") {
    if (typeof maxLength !== "number" || value.length <= maxLength) return [];
    const text = `${format(path)} must be at most ${maxLength} characters, got ${describeValue(value)}`;
    return [{ path, keyword: "maxLength", text }];
  }
  if (Array.isArray(value))
    return value.flatMap((item, at) => overlong(items, item, [...path, String(at)], format));
  if (!isObject(value) || !isObject(properties)) return [];
  return Object.entries(properties).flatMap(([field, inner]) =>
    Object.hasOwn(value, field) ? overlong(inner, value[field], [...path, field], format) : [],
  );
}

/** Joins the first sentences to one error text, and counts the others. */
export function firstProblems(problems: readonly string[]): {
  readonly shown: readonly string[];
  readonly text: string;
} {
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
  const left = problems.length - shown.length;
  return { shown, text: shown.join("; ") + (left > 0 ? `; and ${left} more` : "") };
}

/**
 * Adds a sentence to `problems` for each unknown name. `say` builds the sentence. It gets the nearest valid
 * name only for the sentences that `firstProblems` shows, because finding one takes time.
 */
export function addUnknown(
  problems: string[],
  names: readonly string[],
  valid: readonly string[],
  say: (name: string, nearest: string | undefined) => string,
): void {
  for (const name of names) {
    if (valid.includes(name)) continue;
    const isShown = problems.length < PROBLEMS_SHOWN_MAX;
    problems.push(say(name, isShown ? nearestName(name, valid) : undefined));
  }
}

/** An object from a caller: the params of a method, or the body of an HTTP request. */
interface GivenObject<S extends ObjectSchema> {
  /** Start of each error, like `invalid params for chat.send`. */
  readonly title: string;
  readonly schema: S;
  /** Word for one field, like "param". */
  readonly field: string;
  /** Start of the hint that lists the fields, like `chat.send takes`. */
  readonly owner: string;
  /** Fields that are accepted but never read. */
  readonly ignored: readonly string[];
  /** Gets the names of unknown fields. Absent: unknown fields are refused. */
  readonly onUnknown?: (names: readonly string[]) => void;
}

function refuse(
  { title, schema, owner, field }: GivenObject<ObjectSchema>,
  code: "invalid_argument" | "unknown_argument",
  problems: readonly string[],
): Failure {
  const { shown, text } = firstProblems(problems);
  const names = Object.keys(schema.properties);
  const takes = names.length === 0 ? `${owner} no ${field}s` : `${owner}: ${names.join(", ")}`;
  return fail(code, `${title}: ${text}`, { hint: takes, details: { problems: shown } });
}

/** Checks the type and the depth, before the schema is applied. */
function refuseShape(of: GivenObject<ObjectSchema>, given: unknown): Failure | undefined {
  if (!isObject(given)) {
    return refuse(of, "invalid_argument", [`${of.field}s must be an object, got ${describeValue(given)}`]);
  }
  if (!isTooDeep(given)) return undefined;
  return refuse(of, "invalid_argument", [`${of.field}s must have at most ${DEPTH_MAX} levels`]);
}

async function refuseSchema(of: GivenObject<ObjectSchema>, given: unknown): Promise<Failure | undefined> {
  const problems = await problemsOf(of.schema, given);
  if (problems.length === 0) return undefined;
  return refuse(
    of,
    "invalid_argument",
    problems.map(({ text }) => text),
  );
}

/**
 * Returns the fields that the schema defines, or a failure if one of them does not match or a field is
 * unknown.
 */
async function checkObject<S extends ObjectSchema>(
  of: GivenObject<S>,
  given: unknown,
): Promise<Result<Of<S>>> {
  const wrong = refuseShape(of, given);
  if (wrong !== undefined) return wrong;
  const valid = Object.keys(of.schema.properties);
  const names = Object.keys(given as object).filter((name) => !of.ignored.includes(name));
  const unknown: string[] = [];
  if (of.onUnknown === undefined) {
    addUnknown(unknown, names, valid, (name, nearest) => {
      const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
      return `unknown ${of.field} ${describeValue(name)}${meant}`;
    });
  }
  if (unknown.length > 0) return refuse(of, "unknown_argument", unknown);
  const read = Object.fromEntries(Object.entries(given as object).filter(([name]) => valid.includes(name)));
  const wrongField = await refuseSchema(of, read);
  if (wrongField !== undefined) return wrongField;
  const spare = names.filter((name) => !valid.includes(name));
  if (spare.length > 0) of.onUnknown?.(spare);
  return ok(read as Of<S>);
}

/**
 * Returns the params that `method` reads, if they match its schema. Missing params count as an empty object.
 * `onUnknown` gets the names of unknown params. Without it they are refused.
 */
export async function checkParams<M extends MethodName>(
  method: M,
  given: unknown,
  onUnknown?: (names: readonly string[]) => void,
): Promise<Result<ParamsOf<M>>> {
  const { ignored = [] } = methodOf(method);
  const of = {
    title: `invalid params for ${method}`,
    schema: METHODS[method].params,
    field: "param",
    owner: `${method} takes`,
    ignored: [...ignored, EVERYWHERE],
    ...optional({ onUnknown }),
  };
  return (await checkObject(of, given ?? {})) as Result<ParamsOf<M>>;
}

/** Returns the fields of a request's body, if they match its schema. */
export async function checkBody<B extends BodyName>(name: B, given: unknown): Promise<Result<BodyOf<B>>> {
  if (!isObject(given)) return fail("invalid_argument", "the body must be one JSON object");
  const schema = BODIES[name].body;
  const of = { title: "invalid body", schema, field: "field", owner: "A body takes", ignored: [] };
  return (await checkObject(of, given)) as Result<BodyOf<B>>;
}

/** Returns the params of `connect`. Unknown ones are kept, because newer clients may send more. */
export async function checkConnect(given: unknown): Promise<Result<ConnectParams>> {
  const params = given ?? {};
  const of = {
    title: "invalid params for connect",
    schema: CONNECT,
    field: "param",
    owner: "connect takes",
    ignored: [],
  };
  const wrong = refuseShape(of, params) ?? (await refuseSchema(of, params));
  return wrong ?? ok(params as ConnectParams);
}
