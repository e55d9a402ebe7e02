// Simplifies the schema of an MCP tool so that every model API accepts it. If a provider refuses one schema,
// the whole request fails, and with it every run of an agent. So the result has only known keywords, names
// that APIs accept and no references, and its depth and size are limited. The server itself checks what is
// left out. A part that can't be read allows any value. A tool is left out, with a reason, only if its schema
// is too large even when its deeper parts allow any value, or if its arguments can't be an object.
// SC1: the work is bounded: the steps of a schema and of a server's whole list are counted, and a schema is
//      measured before anything else reads it.

import { fieldsOf, isObject, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { JsonSchema } from "../../core/shapes/tool.ts";
import { argumentName } from "./names.ts";
import { plainWords } from "./plain-text.ts";

/** Depths that are kept of a schema. The next one is tried if the result is too large. */
const DEPTHS = [16, 3, 1];
/** Maximum depth of the original schema, which the MCP library reads as well. */
const NESTED_MAX = 64;
/** Maximum number of steps for one schema. A step reads one value or name, or `STEP_CHARS` characters. */
const SCHEMA_STEPS_MAX = 10_000;
/** Maximum number of steps for all schemas of a server's list. */
export const LIST_STEPS_MAX = 100_000;
const STEP_CHARS = 100;
const SCHEMA_MAX_BYTES = 32 * 1024;
const DESCRIPTION_MAX_CHARS = 1_000;
const NAME_SHOWN_MAX_CHARS = 100;
const ENUM_MAX = 250;
/** Types that are kept. Without `null`, an argument is left out instead. */
const TYPES = ["string", "number", "integer", "boolean", "array", "object"];
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
  readonly depthMax: number;
  /** Names of arguments for models, with the server's own names, where they differ. */
  readonly renamed: Map<string, string>;
}

/** The schema of a tool's arguments for models, and the server's own names of renamed arguments. */
export interface PlainSchema {
  readonly parameters: JsonSchema;
  readonly renamed: ReadonlyMap<string, string>;
}

function take(from: Budget, values: number, chars = 0): void {
  from.steps -= values + chars / STEP_CHARS;
  if (from.steps < 0) throw new Broken("has too many parts");
}

/** Returns the target of `#/…` in the same schema, or undefined if there is none. */
function findTarget(walk: Walk, reference: string): unknown {
  take(walk, 1, reference.length);
  if (!reference.startsWith("#")) return undefined;
  let place: unknown = walk.root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = safeDecode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    place =
      (isObject(place) || Array.isArray(place)) && Object.hasOwn(place, name)
        ? (place as Tree)[name]
        : undefined;
  }
  return place;
}

function safeDecode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Joins a schema with the schemas to which `$ref` and `allOf` lead. Adds the references to `above`; one that
 * is there already is recursive and adds nothing.
 */
function join(walk: Walk, schema: Tree, above: Set<string>): Tree {
  take(walk, 1 + Object.keys(schema).length);
  const { $ref, allOf, ...own } = schema;
  const others = [...listOf(allOf)];
  if (typeof $ref === "string" && !above.has($ref)) {
    above.add($ref);
    others.unshift(findTarget(walk, $ref));
  }
  let joined: Tree = {};
  for (const part of [...others.filter(isObject).map((other) => join(walk, other, above)), own]) {
    const before = fieldsOf(joined.properties);
    const more = Object.entries(fieldsOf(part.properties)).map(([name, inner]) =>
      Object.hasOwn(before, name) ? [name, { allOf: [before[name], inner] }] : [name, inner],
    );
    const properties = { ...before, ...Object.fromEntries(more) };
    const required = [...listOf(joined.required), ...listOf(part.required)];
    // A value fits one choice of each part, so it fits one of all these choices.
    const anyOf = [joined, part].flatMap((one) => [...listOf(one.anyOf), ...listOf(one.oneOf)]);
    take(walk, Object.keys(properties).length + required.length + anyOf.length);
    const { oneOf: _, ...merged }: Tree = { ...joined, ...part, required };
    joined = anyOf.length === 0 ? merged : { ...merged, anyOf };
    if (isObject(joined.properties)) joined = { ...joined, properties };
  }
  return joined;
}

/** Simplifies a schema. Allows any value for one that is too deep or recursive, or that is no schema. */
function plain(walk: Walk, schema: unknown, depth: number, above: ReadonlySet<string>): Tree {
  if (!isObject(schema) || depth > walk.depthMax) return {};
  const references = new Set(above);
  const joined = join(walk, schema, references);
  return { ...wordsOf(walk, joined), ...shapeOf(walk, joined, depth, references) };
}

function wordsOf(walk: Walk, { description, title }: Tree): Tree {
  const words = typeof description === "string" ? description : title;
  if (typeof words !== "string" || words === "") return {};
  take(walk, 0, Math.min(words.length, DESCRIPTION_MAX_CHARS));
  return { description: plainWords(words, DESCRIPTION_MAX_CHARS) };
}

function shapeOf(walk: Walk, schema: Tree, depth: number, above: ReadonlySet<string>): Tree {
  const types = typesOf(walk, schema);
  const deeper = (inner: unknown): Tree => plain(walk, inner, depth + 1, above);
  const choices = schema.anyOf;
  // Choices beside properties say only how these may be combined, which the server checks.
  if (Array.isArray(choices) && !isObject(schema.properties)) {
    take(walk, choices.length);
    const [only, ...others] = choices.filter((choice) => !isObject(choice) || choice.type !== "null");
    if (only === undefined) return {};
    return others.length === 0 ? deeper(only) : { anyOf: [only, ...others].map(deeper) };
  }
  const [type, ...more] = types;
  if (more.length > 0)
    return { anyOf: types.map((one) => deeper({ ...schema, type: one, description: "" })) };
  const values = schema.const === undefined ? listOf(schema.enum) : [schema.const];
  take(walk, values.length);
  const kept: Record<string, unknown> = { ...optional({ type }), ...valuesOf(values, type) };
  for (const bound of BOUNDS) {
    const value = schema[bound];
    if (typeof value === "number" && Number.isFinite(value)) kept[bound] = value;
  }
  // Items with a schema for each position are a list, and any items are allowed.
  if (type === "array") kept.items = deeper(schema.items);
  if (type === "object") Object.assign(kept, propertiesOf(walk, schema, depth, above));
  return kept;
}

function typesOf(walk: Walk, { type, properties, items }: Tree): string[] {
  const named: readonly unknown[] = Array.isArray(type) ? type : [type];
  take(walk, named.length);
  const known = TYPES.filter((one) => named.includes(one));
  if (known.length > 0) return known;
  if (isObject(properties)) return ["object"];
  return isObject(items) ? ["array"] : [];
}

/** Copies an enum of plain values if it is short; otherwise the server checks the value. */
function valuesOf(values: readonly unknown[], type: string | undefined): Tree {
  const kept = values.filter((value) => value !== null);
  const isPlain = kept.every((value) => ["string", "number", "boolean"].includes(typeof value));
  if (kept.length === 0 || kept.length > ENUM_MAX || !isPlain) return {};
  // Some APIs refuse an enum without a type.
  const isText = type === undefined && kept.every((value) => typeof value === "string");
  return isText ? { type: "string", enum: kept } : { enum: kept };
}

function propertiesOf(walk: Walk, schema: Tree, depth: number, above: ReadonlySet<string>): Tree {
  // `false` allows no value, so the argument is never given.
  const entries = Object.entries(fieldsOf(schema.properties)).filter(([, inner]) => inner !== false);
  const needed = new Set(listOf(schema.required));
  take(walk, entries.length + needed.size);
  const required: string[] = [];
  const properties = entries.map(([own, inner]): [string, Tree] => {
    const name = argumentName(own);
    if (needed.has(own)) required.push(name);
    const made = plain(walk, inner, depth + 1, above);
    if (name === own) return [name, made];
    walk.renamed.set(name, own);
    const words = made.description === undefined ? "" : `: ${String(made.description)}`;
    return [name, { ...made, description: plainWords(own, NAME_SHOWN_MAX_CHARS) + words }];
  });
  return {
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required }),
  };
}

/**
 * Returns the whole schema without choices, which model APIs refuse at the top level: the properties of all
 * choices become optional. Only the server checks their combination.
 */
function withoutChoices(walk: Walk, schema: Tree, above: ReadonlySet<string>): Tree {
  const references = new Set(above);
  const { anyOf, ...rest } = join(walk, schema, references);
  const properties = new Map<string, unknown[]>();
  for (const choice of listOf(anyOf).filter(isObject)) {
    const chosen = withoutChoices(walk, choice, new Set([...references, "#"]));
    for (const [name, inner] of Object.entries(fieldsOf(chosen.properties)))
      if (inner !== false) properties.set(name, [...(properties.get(name) ?? []), inner]);
  }
  const chosen = [...properties].map(([name, inner]) => [
    name,
    inner.length === 1 ? inner[0] : { anyOf: inner },
  ]);
  return { ...rest, properties: { ...Object.fromEntries(chosen), ...fieldsOf(rest.properties) } };
}

/** Simplifies the schema of a tool's arguments. `list`: the steps that are left for its list. */
export function plainSchema(schema: unknown, list: Budget): Result<PlainSchema> {
  const broken = (what: string) => fail("invalid_argument", `its schema ${what}`);
  if (list.steps <= 0)
    return fail("invalid_argument", "the schemas before it in the server's list have too many parts");
  const root = fieldsOf(schema);
  const { type } = root;
  if (typeof type === "string" && type !== "object") return broken('is not of type "object"');
  let made: Result<PlainSchema> = broken("has too many parts");
  for (const depthMax of DEPTHS) {
    const walk = { root, depthMax, steps: SCHEMA_STEPS_MAX, renamed: new Map<string, string>() };
    try {
      made = simplify(walk);
    } catch (error) {
      if (!(error instanceof Broken)) throw error;
      made = broken(error.message);
    }
    list.steps -= SCHEMA_STEPS_MAX - walk.steps;
    if (made.ok) return made;
  }
  return made;
}

function simplify(walk: Walk): Result<PlainSchema> {
  // Reads the original schema once. Throws if it is too large or too deep (SC1).
  const open: [value: unknown, depth: number][] = [[walk.root, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    if (typeof value === "string") take(walk, 0, value.length);
    if (typeof value !== "object" || value === null) continue;
    if (depth > NESTED_MAX) throw new Broken("is nested too deeply");
    const names = Array.isArray(value) ? undefined : Object.keys(value);
    take(walk, (names ?? (value as readonly unknown[])).length, names?.join("").length);
    const values = names?.map((name) => (value as Tree)[name]) ?? (value as readonly unknown[]);
    for (const inner of values) open.push([inner, depth + 1]);
  }
  const root = withoutChoices(walk, walk.root, new Set());
  const parameters = plain(walk, { ...root, type: "object", description: "" }, 0, new Set(["#"]));
  const bytes = Buffer.byteLength(JSON.stringify(parameters));
  if (bytes > SCHEMA_MAX_BYTES) throw new Broken(`has ${bytes} bytes; the maximum is ${SCHEMA_MAX_BYTES}`);
  return ok({ parameters, renamed: walk.renamed });
}
