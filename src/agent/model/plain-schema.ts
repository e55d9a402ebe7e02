// Reduces a JSON schema to what every model server takes: one type for each place, no references, no unions.

import { fieldsOf, isObject, listOf } from "../../core/json.ts";

type Json = Record<string, unknown>;

const KEPT = ["type", "description", "enum", "items", "properties", "required"] as const;
const DEPTH_MAX = 12;

export function plainSchema(schema: unknown): unknown {
  const root = fieldsOf(schema);
  const definitions = { ...fieldsOf(root.definitions), ...fieldsOf(root.$defs) };
  return plain(root, definitions, 0);
}

function plain(given: unknown, definitions: Json, depth: number): Json {
  const schema = resolved(given, definitions);
  if (depth > DEPTH_MAX) return {};
  const own = { ...fieldsOf(firstOf(schema, definitions)), ...schema };
  const type = listOf([own.type].flat()).find((one) => one !== "null" && one !== undefined) ?? typeIn(own);
  const made: Json = {};
  for (const name of KEPT) if (own[name] !== undefined && own[name] !== null) made[name] = own[name];
  if (type !== undefined) made.type = type;
  if (made.enum !== undefined) made.enum = listOf(made.enum).filter((one) => one !== null);
  if (isObject(made.properties)) {
    const entries = Object.entries(made.properties);
    made.properties = Object.fromEntries(
      entries.map(([name, field]) => [name, plain(field, definitions, depth + 1)]),
    );
  }
  if (type === "array") made.items = plain(made.items, definitions, depth + 1);
  else delete made.items;
  return made;
}

function resolved(schema: unknown, definitions: Json): Json {
  const { $ref, ...rest } = fieldsOf(schema);
  if (typeof $ref !== "string") return rest;
  return { ...fieldsOf(definitions[$ref.split("/").at(-1) ?? ""]), ...rest };
}

/** Returns the first choice of a union that is not null. */
function firstOf({ anyOf, oneOf, allOf }: Json, definitions: Json): unknown {
  const choices = listOf(anyOf ?? oneOf ?? allOf).map((one) => resolved(one, definitions));
  return choices.find(({ type }) => type !== "null");
}

function typeIn({ properties, items, enum: values, const: constant }: Json): string | undefined {
  if (isObject(properties)) return "object";
  if (items !== undefined) return "array";
  return typeof (listOf(values)[0] ?? constant) === "string" ? "string" : undefined;
}
