// docs/reference/CONFIGURATION.md: every key of the configuration file.

import { configJsonSchema } from "../../../src/config/schema/schema.ts";
import { anchor, code, GENERATED, page, table, wrapped } from "./markdown.ts";
import { bytes, type Schema, typeWords } from "./schema.ts";

interface Key {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** Returns every key with a value; objects are replaced by their keys. */
export function configKeys(schema: Schema = configJsonSchema() as Schema, prefix = ""): Key[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = `${prefix}${name}`;
    const own = { path, schema: inner, required: isNeeded(schema, name) };
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

function isNeeded(schema: Schema, name: string): boolean {
  return schema.required?.includes(name) === true && schema.properties?.[name]?.default === undefined;
}

const UNITS: readonly (readonly [RegExp, string])[] = [
  [/Ms$/, "ms"],
  [/Seconds$/, "s"],
  [/Minutes$/, "minutes"],
  [/Hours$/, "hours"],
  [/Bytes$/, "bytes"],
  [/Chars$/, "characters"],
  [/Mb$/, "MiB"],
  [/(^|\.)(dailyTokens|maxChainTokens|contextWindow|maxOutputTokens)$/, "tokens"],
  [/(^|\.)(dailyCost|maxChainCost)$/, "USD"],
  [/\.cost\./, "USD/M tokens"],
  [/sampleRatio$/, "share"],
  [/\.port$/, "port"],
  [
    /(^|\.)(max(Concurrent|Children|SpawnDepth|PingPongTurns|Hops|ChainRuns|Files|Retries)|queueMax|processesMax)$/,
    "count",
  ],
  [/Calls$/, "count"],
];

/** Returns the unit of a number, or undefined if its name has none. */
export function unitOf({ path, schema }: Key): string | undefined {
  if (![schema.type].flat().some((type) => type === "integer" || type === "number")) {
    return schema.anyOf?.some((one) => unitOf({ path, schema: one, required: false }) !== "") === true
      ? UNITS.find(([pattern]) => pattern.test(path))?.[1]
      : "";
  }
  return UNITS.find(([pattern]) => pattern.test(path))?.[1];
}

/** The notation in which a number of this key is written. */
const written =
  (unit: string | undefined) =>
  (value: number): string =>
    unit === "bytes" ? bytes(value) : String(value);

function fallback(key: Key): string {
  const { default: value } = key.schema;
  if (value === undefined) return key.required ? "*required*" : "";
  return code(typeof value === "number" ? written(unitOf(key))(value) : JSON.stringify(value));
}

/** Groups the keys into sections of the page: one for each first part of a path. */
function sections(keys: readonly Key[]): Map<string, Key[]> {
  const found = new Map<string, Key[]>();
  for (const key of keys) {
    const parts = key.path.split(".");
    const deep =
      ["agents", "tools", "channels", "models", "hooks"].includes(parts[0] ?? "") && parts.length > 2;
    const name = deep ? parts.slice(0, 2).join(".").replace("[]", "") : (parts[0] ?? "").replace("[]", "");
    found.set(name, [...(found.get(name) ?? []), key]);
  }
  return found;
}

/** Removes the section's name from a path, because table cells are narrow. */
function within(section: string, path: string): string {
  return path.startsWith(`${section}.`) || path.startsWith(`${section}[`)
    ? path.slice(section.length).replace(/^\./, "")
    : path;
}

/** Removes the keys of accounts, which repeat those of their channel. */
function withoutDoubles(keys: readonly Key[]): Key[] {
  const CHANNEL = /^channels\.(\w+)\.(.+)$/;
  const ids = new Set(keys.flatMap(({ path }) => CHANNEL.exec(path)?.[1] ?? []));
  const alike = new Map<string, number>();
  const rest = (path: string): string => CHANNEL.exec(path)?.[2] ?? "";
  for (const { path } of keys) alike.set(rest(path), (alike.get(rest(path)) ?? 0) + 1);
  const [first = ""] = ids;
  return keys.flatMap((key) => {
    const { path } = key;
    if (rest(path).startsWith("accounts.<name>.")) return [];
    if (rest(path) === "" || alike.get(rest(path)) !== ids.size) return [key];
    return path.startsWith(`channels.${first}.`)
      ? [{ ...key, path: `channels.<channel>.${rest(path)}` }]
      : [];
  });
}

export function configurationPage(): string {
  const all = sections(withoutDoubles(configKeys()));
  return page(
    "# Configuration reference",
    GENERATED,
    "Examples by task: [CONFIGURATION.md](../CONFIGURATION.md). The file is read once, at the start, so every key\n" +
      "takes effect at the next start; `parley config check` says what a restart would change. A list is written `[]`, a name of your\n" +
      "own `<name>`. Sizes are bytes, in powers of 1024 where that is shorter.",
    wrapped(
      "Parts:",
      [...all.keys()].map((name) => `[\`${name}\`](#${anchor(name)})`),
      ".",
    ),
    ...[...all].map(([name, keys]) =>
      page(
        `## ${name}`,
        table(
          ["key", "type", "unit", "default", "meaning"],
          keys.map((key) => [
            code(within(name, key.path)),
            typeWords(key.schema, written(unitOf(key))),
            unitOf(key) ?? "",
            fallback(key),
            key.schema.description ?? "",
          ]),
        ),
      ).trimEnd(),
    ),
  );
}
