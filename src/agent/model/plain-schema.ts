// Reduces a JSON schema to what every model server takes: one type for each place, no references, no unions.

import { fieldsOf, isObject, listOf } from "../../core/json.ts";

type Json = Record<string, unknown>;

const KEPT = ["type", "description", "enum", "items", "properties", "required"] as const;
/** Places of one schema that are read; those beyond take any value. */
const PLACES_MAX = 2_000;

interface Walk {
  readonly definitions: Json;
  places: number;
}

export function plainSchema(schema: unknown): unknown {
  const root = fieldsOf(schema);
  const definitions = { ...fieldsOf(root.definitions), ...fieldsOf(root.$defs) };
  return plain(root, { definitions, places: 0 }, []);
}

/** `open`: the references around this place. A place inside itself takes any value. */
function plain(given: unknown, walk: Walk, open: readonly unknown[]): Json {
  const { definitions } = walk;
  const { $ref } = fieldsOf(given);
  walk.places += 1;
  if (walk.places > PLACES_MAX || ($ref !== undefined && open.includes($ref))) return {};
  const within = $ref === undefined ? open : [...open, $ref];
  const own = chosen(resolveReference(given, definitions), definitions);
  const type = listOf([own.type].flat()).find((one) => one !== "null" && one !== undefined) ?? typeIn(own);
  const made: Json = {};
  for (const name of KEPT) if (own[name] !== undefined && own[name] !== null) made[name] = own[name];
  if (type !== undefined) made.type = type;
  if (made.enum !== undefined) made.enum = listOf(made.enum).filter((one) => one !== null);
  if (isObject(made.properties)) {
    const entries = Object.entries(made.properties);
    made.properties = Object.fromEntries(entries.map(([name, field]) => [name, plain(field, walk, within)]));
  }
  if (type === "array") made.items = plain(made.items, walk, within);
  else delete made.items;
  return made;
}

function resolveReference(schema: unknown, definitions: Json): Json {
  const { $ref, ...rest } = fieldsOf(schema);
  if (typeof $ref !== "string") return rest;
  return { ...fieldsOf(definitions[$ref.split("/").at(-1) ?? ""]), ...rest };
}

/** Returns a schema with the first choice of its unions that is not null, and with all parts of `allOf`. */
function chosen(schema: Json, definitions: Json): Json {
  const { anyOf, oneOf, allOf, ...own } = schema;
  const choices = listOf(anyOf ?? oneOf).map((one) => resolveReference(one, definitions));
  const parts = listOf(allOf).map((one) => resolveReference(one, definitions));
  const all = [...parts, choices.find(({ type }) => type !== "null") ?? {}, own];
  const properties = Object.assign({}, ...all.map((one) => fieldsOf(one.properties)));
  const made: Json = Object.assign({}, ...all);
  return Object.keys(properties).length === 0 ? made : { ...made, properties };
}

function typeIn({ properties, items, enum: values, const: constant }: Json): string | undefined {
  if (isObject(properties)) return "object";
  if (items !== undefined) return "array";
  return typeof (listOf(values)[0] ?? constant) === "string" ? "string" : undefined;
}
