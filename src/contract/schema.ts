// Builds the JSON Schemas of the contract, with static types from TypeBox.
// The schemas are plain objects: TypeBox's own builders would add 20 MB and 0.1 s to each start. TypeBox's
// compiled checker reads them, and is loaded with the first request (`contract/check.ts`).

import type { Static, TUnsafe } from "typebox";

/** A JSON Schema of values of the type T. */
export type Schema<T = unknown> = TUnsafe<T>;

/** The type of a schema's values. Fields and lists are read-only. */
export type Of<S extends Schema> = Static<S>;

type Fields = Readonly<Record<string, Schema>>;
type Together<T> = { readonly [K in keyof T]: T[K] };
type ObjectOf<R extends Fields, O extends Fields> = Together<
  { readonly [K in keyof R]: Of<R[K]> } & { readonly [K in keyof O]?: Of<O[K]> }
>;

/** A schema of an object, from the schemas of its fields. */
export interface ObjectSchema<R extends Fields = Fields, O extends Fields = Fields>
  extends Schema<ObjectOf<R, O>> {
  readonly type: "object";
  readonly properties: R & O;
  readonly required?: readonly (keyof R & string)[];
  readonly additionalProperties?: false;
}

interface TextLimits {
  readonly minLength?: number;
  /**
   * Limit in stored characters, which `contract/check.ts` checks. The validator counts visible characters.
   */
  readonly maxLength?: number;
  readonly pattern?: string;
}

interface NumberLimits {
  readonly minimum?: number;
  readonly maximum?: number;
}

interface ListLimits {
  readonly minItems?: number;
  readonly maxItems?: number;
}

function schema<T>(json: object, description?: string): Schema<T> {
  return (description === undefined ? json : { ...json, description }) as Schema<T>;
}

/** A string. All builders take a description of the place where the schema is used. */
export function text(description?: string, limits: TextLimits = {}): Schema<string> {
  return schema({ type: "string", ...limits }, description);
}

/** A number, with or without a fraction. */
export function number(description?: string, limits: NumberLimits = {}): Schema<number> {
  return schema({ type: "number", ...limits }, description);
}

/** A whole number. */
export function integer(description?: string, limits: NumberLimits = {}): Schema<number> {
  return schema({ type: "integer", ...limits }, description);
}

/** True or false. */
export function flag(description?: string): Schema<boolean> {
  return schema({ type: "boolean" }, description);
}

/** Any JSON value. */
export const anything: Schema<unknown> = schema({});

/** Any JSON object. */
export const anyObject: Schema<object> = schema({ type: "object" });

/** One of these values. */
export function oneOf<const V extends readonly (string | number | boolean | null)[]>(
  ...values: V
): Schema<V[number]> {
  return schema({ enum: values });
}

/** A list of values of one schema. */
export function list<T>(
  items: Schema<T>,
  description?: string,
  limits: ListLimits = {},
): Schema<readonly T[]> {
  return schema({ type: "array", items, ...limits }, description);
}

/** An object with any names, whose values fit one schema. */
export function mapOf<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return schema({ type: "object", additionalProperties: values });
}

/** A value that fits at least one of these schemas. */
export function either<T extends readonly unknown[]>(
  ...schemas: { readonly [K in keyof T]: Schema<T[K]> }
): Schema<T[number]> {
  return schema({ anyOf: schemas });
}

/** A value of the schema, or null. */
export function nullable<T>(inner: Schema<T>): Schema<T | null> {
  const { type } = inner as { type?: string };
  return schema({ ...inner, type: [type, "null"] });
}

/** The type of an object without fields. */
type None = Record<never, never>;

/** An object with these fields, and no others. */
export function object<R extends Fields>(required: R): ObjectSchema<R, None>;
export function object<R extends Fields, O extends Fields>(required: R, optional: O): ObjectSchema<R, O>;
export function object(required: Fields, optional?: Fields): ObjectSchema {
  return { ...openObject(required, optional ?? {}), additionalProperties: false };
}

/** An object with these fields. Other fields are allowed and ignored. */
export function openObject<R extends Fields>(required: R): ObjectSchema<R, None>;
export function openObject<R extends Fields, O extends Fields>(required: R, optional: O): ObjectSchema<R, O>;
export function openObject(required: Fields, optional?: Fields): ObjectSchema {
  const names = Object.keys(required);
  const json = { type: "object", properties: { ...required, ...optional } };
  return schema(names.length === 0 ? json : { ...json, required: names }) as ObjectSchema;
}

/** Adds a title and a sentence to a schema. The documentation shows them wherever the schema is used. */
export function named<S extends Schema>(title: string, sentence: string, inner: S): S {
  return { ...inner, title, $comment: sentence };
}

/** A value of a type that the core declares and describes. */
export function declared<T>(title: string): Schema<T> {
  return schema({ title });
}

/** Adds a description to a shared schema, for the place where it is used. */
export function about<S extends Schema>(inner: S, description: string): S {
  return { ...inner, description };
}
