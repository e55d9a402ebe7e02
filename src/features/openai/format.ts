// Reads the format that a request wants for its answer, and the JSON schemas in a request. Pure.

import { isObject } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { AnswerFormat } from "../../core/shapes/run.ts";
import { isBounded } from "./content.ts";

const FORMAT_NAME = /^[\w-]{1,64}$/;
const DESCRIPTION_CHARS_MAX = 1_024;
/** Maximum size of a schema. Larger schemas are refused, because they are stored with the run. */
const SCHEMA_CHARS_MAX = 64 * 1024;
const SCHEMA_DEPTH_MAX = 32;
const SCHEMA_VALUES_MAX = 10_000;
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

export function wrong(param: string, text: string): ReturnType<typeof fail> {
  return fail("invalid_argument", `${param} ${text}`, { details: { param } });
}

export function schemaIn(schema: unknown, param: string): Result<Readonly<Record<string, unknown>>> {
  if (!isObject(schema)) return wrong(param, "must be an object with a JSON schema");
  if (!isBounded(schema, { depth: SCHEMA_DEPTH_MAX, values: SCHEMA_VALUES_MAX })) {
    const limits = `${SCHEMA_DEPTH_MAX} levels and ${SCHEMA_VALUES_MAX} values`;
    return wrong(param, `is too large: a schema has at most ${limits}`);
  }
  if (JSON.stringify(schema).length > SCHEMA_CHARS_MAX)
    return wrong(param, `is too large: a schema has at most ${SCHEMA_CHARS_MAX} characters`);
  const { type, properties, required } = schema;
  const types = Array.isArray(type) ? type : [type];
  if (type !== undefined && !types.every((one) => TYPES.includes(one)))
    return wrong(`${param}.type`, `must be one of ${TYPES.join(", ")}`);
  if (properties !== undefined && !isObject(properties))
    return wrong(`${param}.properties`, "must be an object");
  const names = required ?? [];
  return Array.isArray(names) && names.every((one) => typeof one === "string")
    ? ok(schema)
    : wrong(`${param}.required`, "must be a list of property names");
}

function namedSchema(given: Readonly<Record<string, unknown>>, param: string): Result<AnswerFormat> {
  const { name, description, strict } = given;
  if (typeof name !== "string" || !FORMAT_NAME.test(name))
    return wrong(`${param}.name`, "must have 1 to 64 letters, digits, underscores or hyphens");
  if (description != null && typeof description !== "string")
    return wrong(`${param}.description`, "must be a string");
  if (description != null && description.length > DESCRIPTION_CHARS_MAX)
    return wrong(`${param}.description`, `must have at most ${DESCRIPTION_CHARS_MAX} characters`);
  if (strict != null && typeof strict !== "boolean") return wrong(`${param}.strict`, "must be true or false");
  const schema = schemaIn(given.schema, `${param}.schema`);
  if (!schema.ok) return schema;
  const more = optional({ description: description ?? undefined, strict: strict ?? undefined });
  return ok({ type: "json_schema", name, schema: schema.value, ...more });
}

function formatOf(value: unknown, param: string, nestedIn?: string): Result<AnswerFormat | undefined> {
  if (value == null) return ok(undefined);
  if (!isObject(value)) return wrong(param, "must be an object");
  if (value.type === "text") return ok(undefined);
  if (value.type === "json_object") return ok({ type: "json_object" });
  if (value.type !== "json_schema") return wrong(`${param}.type`, "must be text, json_object or json_schema");
  if (nestedIn === undefined) return namedSchema(value, param);
  const inner = value[nestedIn];
  return isObject(inner)
    ? namedSchema(inner, `${param}.${nestedIn}`)
    : wrong(`${param}.${nestedIn}`, "must be an object with name and schema");
}

/** Returns the format of a chat completion. Returns undefined for plain text. */
export function chatFormat(value: unknown): Result<AnswerFormat | undefined> {
  return formatOf(value, "response_format", "json_schema");
}

/** Returns the format of a response. Returns undefined for plain text. */
export function responseFormat(text: unknown): Result<AnswerFormat | undefined> {
  if (text == null) return ok(undefined);
  return isObject(text) ? formatOf(text.format, "text.format") : wrong("text", "must be an object");
}
