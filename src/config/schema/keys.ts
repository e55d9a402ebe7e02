// Lists every setting of the configuration file with its type, unit, default and meaning.

import type { PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { configSchema } from "./schema.ts";
import type { Schema } from "./setting.ts";
import { bytes, typeWords } from "./words.ts";

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

/** Returns the function that formats a number of this unit. */
const written =
  (unit: string | undefined) =>
  (value: number): string =>
    unit === "bytes" ? bytes(value) : String(value);

/** The texts that describe a setting to people. */
export type KeyWords = PayloadOf<"config.schema">["settings"][number];

/** Returns the texts that describe a setting. */
export function keyWords(key: Key): KeyWords {
  const { path, schema, required } = key;
  const unit = unitOf(key) || undefined;
  const { default: value } = schema;
  const fallback = typeof value === "number" ? written(unit)(value) : JSON.stringify(value);
  return {
    path,
    type: typeWords(schema, written(unit)),
    ...optional({ unit, fallback }),
    required,
    meaning: schema.description ?? "",
  };
}
