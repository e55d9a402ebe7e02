// Lists every setting of the configuration file with its type, unit, default and meaning, and describes types
// in plain words, for the generated pages and for the web page.

import type { PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { configSchema } from "./schema.ts";
import type { Schema } from "./setting.ts";

export interface Key {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** Returns every setting. An object is replaced by the settings in it. */
export function configKeys(schema: Schema = configSchema, prefix = ""): Key[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = `${prefix}${name}`;
    const own = { path, schema: inner, required: schema.required?.includes(name) === true };
    const inside = inner.properties !== undefined ? configKeys(inner, `${path}.`) : [];
    const items = inner.items?.properties === undefined ? [] : configKeys(inner.items, `${path}[].`);
    const named = typeof inner.additionalProperties === "object" ? inner.additionalProperties : {};
    const byName = named.properties === undefined ? [] : configKeys(named, `${path}.<name>.`);
    return [
      ...(inner.properties === undefined || inner.description !== undefined ? [own] : []),
      ...inside,
      ...items,
      ...byName,
    ];
  });
}

const UNITS: readonly (readonly [RegExp, string])[] = [
  [/Ms$/, "ms"],
  [/Seconds$/, "s"],
  [/Minutes$/, "minutes"],
  [/Hours$/, "hours"],
  [/Days$|\.retention$/, "days"],
  [/Bytes$/, "bytes"],
  [/Chars$/, "characters"],
  [/Mb$/, "MiB"],
  [/(^|\.)(dailyTokens|maxChainTokens|contextWindow|maxOutputTokens)$/, "tokens"],
  [/(^|\.)(dailyCost|maxChainCost)$/, "USD"],
  [/\.cost\./, "USD/M tokens"],
  [/sampleRatio$/, "share"],
  [/\.port$/, "port"],
  [/(^|\.)max(Concurrent|Children|SpawnDepth|PingPongTurns|Hops|ChainRuns|Files|Retries)$/, "count"],
  [/(^|\.)(queueMax|processesMax)$/, "count"],
  [/Calls$/, "count"],
];

/**
 * Returns the unit of a setting, as its name tells: "" if it is not a number, undefined if the name tells no
 * unit.
 */
export function unitOf({ path, schema }: Key): string | undefined {
  const isNumber = [schema.type].flat().some((type) => type === "integer" || type === "number");
  return isNumber ? UNITS.find(([pattern]) => pattern.test(path))?.[1] : "";
}

/** Formats a number of bytes, as KiB, MiB or GiB if it is a multiple of that unit. */
function bytes(value: number): string {
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

/** The texts that describe a setting to people. */
export type KeyWords = PayloadOf<"config.schema">["settings"][number];

/** Returns the texts that describe a setting. */
export function keyWords(key: Key): KeyWords {
  const { path, schema, required } = key;
  const unit = unitOf(key) || undefined;
  const formatNumber = unit === "bytes" ? bytes : String;
  const { default: value } = schema;
  const fallback = typeof value === "number" ? formatNumber(value) : JSON.stringify(value);
  return {
    path,
    type: typeWords(schema, formatNumber),
    ...optional({ unit, fallback }),
    required,
    meaning: schema.description ?? "",
  };
}
