// Describes a JSON Schema in plain words, for the generated pages and for the web page.

import type { Schema } from "./setting.ts";

/** Formats a number of bytes, as KiB, MiB or GiB if it is a multiple of that unit. */
export function bytes(value: number): string {
  for (const [size, unit] of [
    [1024 ** 3, "GiB"],
    [1024 ** 2, "MiB"],
    [1024, "KiB"],
  ] as const) {
    if (value >= size && value % size === 0) return `${value / size} ${unit}`;
  }
  return String(value);
}

/** Returns whether a limit is shown. Larger numbers are only technical maximums. */
const isLimit = (value: number | undefined): value is number =>
  value !== undefined && Math.abs(value) < Number.MAX_SAFE_INTEGER;

type Written = (value: number) => string;

function range({ minimum, maximum, exclusiveMinimum }: Schema, written: Written): string {
  if (isLimit(minimum) && isLimit(maximum)) return ` ${written(minimum)} to ${written(maximum)}`;
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}`;
  if (isLimit(minimum)) return ` from ${minimum}`;
  return isLimit(maximum) ? ` to ${maximum}` : "";
}

function one(type: string, schema: Schema, written: Written): string {
  switch (type) {
    case "array": {
      const most = schema.maxItems === undefined ? "" : `, at most ${schema.maxItems}`;
      return `list of ${schema.items === undefined ? "anything" : typeWords(schema.items)}${most}`;
    }
    case "string":
      return schema.maxLength === undefined ? "string" : `string, at most ${schema.maxLength}`;
    case "integer":
    case "number":
      return `${type}${range(schema, written)}`;
    case "boolean":
      return "true or false";
    default:
      return type;
  }
}

/** Describes a type with its limits. */
export function typeWords(schema: Schema, written: Written = String): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.anyOf !== undefined)
    return [...new Set(schema.anyOf.map((inner) => typeWords(inner, written)))].join(" or ");
  if (schema.type === undefined) return "anything";
  return [schema.type]
    .flat()
    .map((type) => one(type, schema, written))
    .join(" or ");
}
