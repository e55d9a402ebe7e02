// Validates a method's params, with errors that a person can act on.
// Every unknown param is named, with the nearest valid name; for a wrong one the expected and the given value
// are stated.
// The result has only params that the method reads: no ignored ones, no inherited names.
// Depth is bounded before any recursive walk.
// V4: a limit on characters counts stored characters: one visible character can consist of a million.

import type { Validator } from "typebox/schema";
import { CONNECT, METHODS, type MethodName, methodOf, type ParamsOf } from "../contract/methods.ts";
import type { ConnectParams } from "../contract/protocol.ts";
import { isObject } from "../core/json.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import { nearestName } from "../core/text/nearest.ts";

/** Levels of arrays and objects in the params of a request. */
const DEPTH_MAX = 64;
/** Problems in one error; more are only counted. */
const PROBLEMS_SHOWN_MAX = 8;
const SHOWN_MAX_CHARS = 60;
/** Accepted by every method: a method without effects needs no check of repetition. */
const EVERYWHERE = "idempotencyKey";

type Problem = ReturnType<Validator["Errors"]>[1][number];

/** Compiled schemas. Compiled on first use: compiling all of them would slow the start. */
const validators = new Map<string, Validator>();

type RequestName = MethodName | "connect";

function schemaOf(name: RequestName) {
  return name === "connect" ? CONNECT : METHODS[name].params;
}

async function validatorOf(name: RequestName): Promise<Validator> {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const { Compile } = await import("typebox/schema");
  const made = Compile(schemaOf(name)) as Validator;
  validators.set(name, made);
  return made;
}

function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return `the ${typeof value} ${String(value)}`;
  return value.length > SHOWN_MAX_CHARS ? `a string of ${value.length} characters` : JSON.stringify(value);
}

/**
 * Whether the value has more levels than any method needs. Iterative, so the check itself can't overflow the
 * stack.
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

function valueAt(params: unknown, path: readonly string[]): unknown {
  let at: unknown = params;
  for (const step of path) at = typeof at === "object" && at !== null ? Reflect.get(at, step) : undefined;
  return at;
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

function expectation(problem: Problem): string | undefined {
  switch (problem.keyword) {
    case "type": {
      const types = [problem.params.type].flat().map((type) => KINDS[type] ?? type);
      return types.join(" or ");
    }
    case "enum":
      return `one of ${problem.params.allowedValues.map((value) => JSON.stringify(value)).join(", ")}`;
    case "minimum":
      return `at least ${problem.params.limit}`;
    case "maximum":
      return `at most ${problem.params.limit}`;
    case "minLength":
      return "not empty";
    case "maxLength":
      return `at most ${problem.params.limit} characters`;
    case "pattern":
      return "text without control characters and unpaired surrogates";
    case "minItems":
      return "a list of at least one item";
    case "maxItems":
      return `a list of at most ${problem.params.limit}`;
    default:
      return undefined;
  }
}

function sentence(problem: Problem, params: unknown): string[] {
  if (problem.keyword === "required") {
    return problem.params.requiredProperties.map((missing) => `${missing} is required`);
  }
  const expected = expectation(problem);
  const path = problem.instancePath.split("/").slice(1);
  if (expected === undefined) return [`${path.join(".") || "params"}: ${problem.message}`];
  const where = path.length === 0 ? "params" : path.join(".");
  return [`${where} must be ${expected}, got ${described(valueAt(params, path))}`];
}

function unknownParams(method: MethodName, params: object): string[] {
  const valid = Object.keys(METHODS[method].params.properties);
  const { ignored = [] } = methodOf(method);
  return Object.keys(params)
    .filter((param) => !valid.includes(param) && !ignored.includes(param) && param !== EVERYWHERE)
    .map((param) => {
      const nearest = nearestName(param, valid);
      const meant = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
      return `unknown param ${described(param)}${meant}`;
    });
}

function refuse(
  method: RequestName,
  code: "invalid_argument" | "unknown_argument",
  problems: string[],
): Failure {
  const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
  const more = problems.length > shown.length ? `; and ${problems.length - shown.length} more` : "";
  const names = Object.keys(schemaOf(method).properties);
  const takes = names.length === 0 ? `${method} takes no params` : `${method} takes: ${names.join(", ")}`;
  return fail(code, `invalid params for ${method}: ${shown.join("; ")}${more}`, {
    hint: takes,
    details: { problems: shown },
  });
}

/** Checks the shape before the schema. */
function refuseShape(name: RequestName, params: unknown): Failure | undefined {
  if (!isObject(params)) {
    return refuse(name, "invalid_argument", [`params must be an object, got ${described(params)}`]);
  }
  if (!isTooDeep(params)) return undefined;
  return refuse(name, "invalid_argument", [`params have more than ${DEPTH_MAX} levels`]);
}

/**
 * Returns strings over their limit: the validator counts visible characters, and accepts longer ones (V4).
 */
function overlong(schema: unknown, value: unknown, path: readonly string[]): string[] {
  if (!isObject(schema)) return [];
  const { maxLength, items, properties } = schema;
  if (typeof value === "string") {
    if (typeof maxLength !== "number" || value.length <= maxLength) return [];
    return [`${path.join(".")} must be at most ${maxLength} characters, got ${described(value)}`];
  }
  if (Array.isArray(value)) return value.flatMap((item, at) => overlong(items, item, [...path, String(at)]));
  if (!isObject(value) || !isObject(properties)) return [];
  return Object.entries(properties).flatMap(([field, inner]) =>
    Object.hasOwn(value, field) ? overlong(inner, value[field], [...path, field]) : [],
  );
}

async function checkSchema(name: RequestName, params: object): Promise<Failure | undefined> {
  const validator = await validatorOf(name);
  if (validator.Check(params)) {
    const long = overlong(schemaOf(name), params, []);
    return long.length === 0 ? undefined : refuse(name, "invalid_argument", long);
  }
  const [, errors] = validator.Errors(params);
  return refuse(name, "invalid_argument", [...new Set(errors.flatMap((error) => sentence(error, params)))]);
}

/** Returns the params that `method` reads, if they fit its schema. Absent params are an empty object. */
export async function checkParams<M extends MethodName>(
  method: M,
  given: unknown,
): Promise<Result<ParamsOf<M>>> {
  const params = given ?? {};
  const wrong = refuseShape(method, params);
  if (wrong !== undefined) return wrong;
  const unknown = unknownParams(method, params);
  if (unknown.length > 0) return refuse(method, "unknown_argument", unknown);
  const valid = Object.keys(METHODS[method].params.properties);
  const read = Object.fromEntries(Object.entries(params).filter(([param]) => valid.includes(param)));
  return (await checkSchema(method, read)) ?? ok(read as ParamsOf<M>);
}

/** Returns the params of `connect`. Unknown ones are kept: newer clients may connect. */
export async function checkConnect(given: unknown): Promise<Result<ConnectParams>> {
  const params = given ?? {};
  const wrong = refuseShape("connect", params) ?? (await checkSchema("connect", params as object));
  return wrong ?? ok(params as ConnectParams);
}
