// Simplifies the schema of an MCP tool so that every model API accepts it. If a provider refuses one schema,
// the whole request fails, and with it every run of an agent. So the result has only known keywords and no
// references, and its depth and size are limited. The server itself checks keywords that are left out. A tool
// whose schema can't be simplified is left out with a reason; the others stay.
// SC1: the work is bounded: the steps of a schema and of a server's whole list are counted, and a schema is
//      measured before anything else reads it.

import { fieldsOf, isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { JsonSchema } from "../../core/shapes/tool.ts";
import { plainWords } from "./plain-text.ts";

const DEPTH_MAX = 16;
/** Maximum depth of the original schema, which the MCP library reads as well. */
const NESTED_MAX = 64;
/** Maximum number of steps for one schema. A step reads one value or name, or `STEP_CHARS` characters. */
const SCHEMA_STEPS_MAX = 10_000;
/** Maximum number of steps for all schemas of a server's list. */
export const LIST_STEPS_MAX = 100_000;
const STEP_CHARS = 100;
const SCHEMA_MAX_BYTES = 32 * 1024;
const DESCRIPTION_MAX_CHARS = 1_000;
const ENUM_MAX = 250;
/** Argument names that model APIs accept. */
const ARGUMENT_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;
const TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"];
/** Keywords for minimum and maximum values, which are copied. */
const BOUNDS = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];

type Tree = Readonly<Record<string, unknown>>;

/** A problem of a schema. Its message is the end of a sentence that begins with "its schema". */
class Broken extends Error {}

/** The steps that are left for the schemas of a list. */
export interface Budget {
  steps: number;
}

interface Walk extends Budget {
  readonly root: Tree;
}

function take(from: Budget, values: number, chars = 0): void {
  from.steps -= values + chars / STEP_CHARS;
  if (from.steps < 0) throw new Broken("has too many parts");
}

/** Reads the original schema once. Throws if it is too large or too deep (SC1). */
function measure(budget: Budget, schema: Tree): void {
  const open: [value: unknown, depth: number][] = [[schema, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    if (typeof value === "string") take(budget, 0, value.length);
    if (typeof value !== "object" || value === null) continue;
    if (depth > NESTED_MAX) throw new Broken("is nested too deeply");
    const names = Array.isArray(value) ? undefined : Object.keys(value);
    take(budget, (names ?? (value as readonly unknown[])).length, names?.join("").length);
    const values = names?.map((name) => (value as Tree)[name]) ?? (value as readonly unknown[]);
    for (const inner of values) open.push([inner, depth + 1]);
  }
}

/** Returns the target of `#/…` in the same schema. */
function referred(walk: Walk, reference: string): unknown {
  if (!reference.startsWith("#")) throw new Broken("refers to another document");
  let place: unknown = walk.root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = safeDecode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    place =
      (isObject(place) || Array.isArray(place)) && Object.hasOwn(place, name)
        ? (place as Tree)[name]
        : undefined;
  }
  if (place === undefined) throw new Broken("refers to a missing part of itself");
  return place;
}

function safeDecode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function plain(walk: Walk, schema: unknown, depth: number, above: readonly string[] = []): Tree {
  // `true` allows any value. A part that is too deep or recursive is treated the same way.
  if (schema === true || depth > DEPTH_MAX) return {};
  if (!isObject(schema)) throw new Broken("has a part that is not a schema");
  take(walk, 1 + Object.keys(schema).length);
  const { $ref } = schema;
  if ($ref !== undefined) {
    if (typeof $ref !== "string") throw new Broken("has a $ref that is not a string");
    take(walk, 1, $ref.length);
    if (above.includes($ref)) return {};
    const { $ref: _, ...beside } = schema;
    const target = referred(walk, $ref);
    const all = isObject(target) ? { ...target, ...beside } : target;
    return plain(walk, all, depth + 1, [...above, $ref]);
  }
  return { ...wordsOf(walk, schema), ...shapeOf(walk, schema, depth, above) };
}

function wordsOf(walk: Walk, { description, title }: Tree): Tree {
  const words = typeof description === "string" ? description : title;
  if (typeof words !== "string" || words === "") return {};
  take(walk, 0, Math.min(words.length, DESCRIPTION_MAX_CHARS));
  return { description: plainWords(words, DESCRIPTION_MAX_CHARS) };
}

function shapeOf(walk: Walk, schema: Tree, depth: number, above: readonly string[]): Tree {
  const types = typesOf(walk, schema);
  const deeper = (inner: unknown): Tree => plain(walk, inner, depth + 1, above);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    if (!Array.isArray(choices)) throw new Broken("has choices that are not a list");
    take(walk, choices.length);
    const [only, ...others] = choices.filter((choice) => !isObject(choice) || choice.type !== "null");
    if (only === undefined) return {};
    return others.length === 0 ? deeper(only) : { anyOf: [only, ...others].map(deeper) };
  }
  const [type, ...more] = types;
  if (more.length > 0)
    return { anyOf: types.map((one) => deeper({ ...schema, type: one, description: "" })) };
  const kept: Record<string, unknown> = optional({ type });
  for (const bound of BOUNDS) {
    const value = schema[bound];
    if (typeof value === "number" && Number.isFinite(value)) kept[bound] = value;
  }
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (Array.isArray(values)) {
    take(walk, values.length);
    Object.assign(kept, valuesOf(values));
  }
  if (type === "array") kept.items = schema.items === undefined ? {} : deeper(itemsOf(schema.items));
  if (type === "object") Object.assign(kept, propertiesOf(walk, schema, depth, above));
  return kept;
}

/** Simplifies the schema of a list's items. If there is a schema for each position, allows any items. */
const itemsOf = (items: unknown): unknown => (Array.isArray(items) ? true : items);

function typesOf(walk: Walk, schema: Tree): string[] {
  const { type } = schema;
  const named = Array.isArray(type) ? type : type === undefined ? [] : [type];
  take(walk, named.length);
  for (const one of named) {
    if (!TYPES.includes(one as string)) throw new Broken("has an unknown type");
  }
  if (named.length === 0 && isObject(schema.properties)) return ["object"];
  const real = named.filter((one) => one !== "null") as string[];
  return real.length > 0 ? real : (named as string[]);
}

/** Copies an enum of plain values if it is short; otherwise the server checks the value. */
function valuesOf(values: readonly unknown[]): Tree {
  const isPlain = (value: unknown): boolean => ["string", "number", "boolean"].includes(typeof value);
  const kept = values.filter((value) => value !== null);
  return kept.length > 0 && kept.length <= ENUM_MAX && kept.every(isPlain) ? { enum: kept } : {};
}

function propertiesOf(walk: Walk, schema: Tree, depth: number, above: readonly string[]): Tree {
  const { properties = {}, required = [] } = schema;
  if (!isObject(properties)) throw new Broken("has a `properties` that is not an object");
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string"))
    throw new Broken("has a `required` that is not a list of names");
  const kept: [string, Tree][] = [];
  const entries = Object.entries(properties);
  const needed = new Set(required as string[]);
  take(walk, entries.length + required.length);
  for (const [name, inner] of entries) {
    if (ARGUMENT_NAME.test(name)) kept.push([name, plain(walk, inner, depth + 1, above)]);
    else if (needed.has(name)) throw new Broken("requires an argument whose name model APIs refuse");
  }
  const named = new Set(kept.map(([name]) => name));
  const wanted = [...needed].filter((name) => named.has(name));
  return { properties: Object.fromEntries(kept), ...(wanted.length === 0 ? {} : { required: wanted }) };
}

/** Returns the schema of a tool's arguments for models. `list`: the steps that are left for its list. */
export function plainSchema(schema: unknown, list: Budget): Result<JsonSchema> {
  if (list.steps <= 0)
    return fail("invalid_argument", "the schemas before it in the server's list have too many parts");
  const walk = { root: fieldsOf(schema), steps: SCHEMA_STEPS_MAX };
  const made = simplify(walk, schema);
  list.steps -= SCHEMA_STEPS_MAX - walk.steps;
  return made;
}

function simplify(walk: Walk, schema: unknown): Result<JsonSchema> {
  const broken = (what: string) => fail("invalid_argument", `its schema ${what}`);
  if (!isObject(schema)) return broken("is not an object");
  if (schema.type !== undefined && schema.type !== "object") return broken('is not of type "object"');
  try {
    measure(walk, schema);
    // Model APIs refuse `anyOf`, `oneOf` and `allOf` at the top level, so only the server checks them.
    const { anyOf: _any, oneOf: _one, allOf: _all, ...rest } = schema;
    const made = plain(walk, { ...rest, type: "object", description: "" }, 0);
    // The type may come from a referenced schema.
    if (made.type !== "object") return broken('is not of type "object"');
    const bytes = Buffer.byteLength(JSON.stringify(made));
    if (bytes <= SCHEMA_MAX_BYTES) return ok(made);
    return broken(`has ${bytes} bytes; the maximum is ${SCHEMA_MAX_BYTES}`);
  } catch (error) {
    if (error instanceof Broken) return broken(error.message);
    throw error;
  }
}
