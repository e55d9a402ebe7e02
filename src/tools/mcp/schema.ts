// Simplifies the schema of an MCP tool so that every model API accepts it. If a provider refuses one schema,
// the whole request fails, and with it every run of an agent. So the result has only known keywords and no
// references, and its depth and size are limited. The server itself checks keywords that are left out. A tool
// whose schema can't be simplified is left out with a reason; the others stay.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { JsonSchema } from "../../core/shapes/tool.ts";
import { plainWords } from "./plain-text.ts";

const DEPTH_MAX = 16;
/** Maximum number of schemas inside one schema; each use of a reference counts. */
const PARTS_MAX = 1_000;
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

interface Walk {
  readonly root: Tree;
  parts: number;
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
  walk.parts += 1;
  if (walk.parts > PARTS_MAX) throw new Broken("has too many parts");
  const { $ref } = schema;
  if ($ref !== undefined) {
    if (typeof $ref !== "string") throw new Broken("has a $ref that is not a string");
    if (above.includes($ref)) return {};
    const { $ref: _, ...beside } = schema;
    const target = referred(walk, $ref);
    const all = isObject(target) ? { ...target, ...beside } : target;
    return plain(walk, all, depth + 1, [...above, $ref]);
  }
  return { ...wordsOf(schema), ...shapeOf(walk, schema, depth, above) };
}

function wordsOf(schema: Tree): Tree {
  const kept: Record<string, unknown> = {};
  const { description, title } = schema;
  const words = typeof description === "string" ? description : title;
  if (typeof words === "string" && words !== "") kept.description = plainWords(words, DESCRIPTION_MAX_CHARS);
  return kept;
}

function shapeOf(walk: Walk, schema: Tree, depth: number, above: readonly string[]): Tree {
  const types = typesOf(schema);
  const deeper = (inner: unknown): Tree => plain(walk, inner, depth + 1, above);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    if (!Array.isArray(choices)) throw new Broken("has choices that are not a list");
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
  if (Array.isArray(values)) Object.assign(kept, valuesOf(values));
  if (type === "array") kept.items = schema.items === undefined ? {} : deeper(itemsOf(schema.items));
  if (type === "object") Object.assign(kept, propertiesOf(walk, schema, depth, above));
  return kept;
}

/** Simplifies the schema of a list's items. If there is a schema for each position, allows any items. */
const itemsOf = (items: unknown): unknown => (Array.isArray(items) ? true : items);

function typesOf(schema: Tree): string[] {
  const { type } = schema;
  const named = Array.isArray(type) ? type : type === undefined ? [] : [type];
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
  for (const [name, inner] of Object.entries(properties)) {
    if (ARGUMENT_NAME.test(name)) kept.push([name, plain(walk, inner, depth + 1, above)]);
    else if (required.includes(name)) throw new Broken("requires an argument whose name model APIs refuse");
  }
  const named = new Set(kept.map(([name]) => name));
  const wanted = [...new Set(required as string[])].filter((name) => named.has(name));
  return { properties: Object.fromEntries(kept), ...(wanted.length === 0 ? {} : { required: wanted }) };
}

/** Returns the schema of a tool's arguments for models. */
export function plainSchema(schema: unknown): Result<JsonSchema> {
  const broken = (what: string) => fail("invalid_argument", `its schema ${what}`);
  if (!isObject(schema)) return broken("is not an object");
  if (schema.type !== undefined && schema.type !== "object") return broken('is not of type "object"');
  try {
    // Model APIs refuse `anyOf`, `oneOf` and `allOf` at the top level, so only the server checks them.
    const { anyOf: _any, oneOf: _one, allOf: _all, ...rest } = schema;
    const made = plain({ root: schema, parts: 0 }, { ...rest, type: "object", description: "" }, 0);
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
