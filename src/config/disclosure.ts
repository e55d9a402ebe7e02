// Derives the rules for showing settings from the schema of the file, for the complete settings.
// DC1: this is an allow list: a setting without a rule is never shown.
// DC2: secrets are redacted in every line of the log, in any form (I14).

import { isObject } from "../core/json.ts";
import type { AddedSettings, Settings } from "../core/shapes/settings/settings.ts";
import { added } from "../features.ts";
import { configSchema } from "./schema/schema.ts";
import { FACTS, type Rule, type Schema } from "./schema/setting.ts";

/** The rule of a value, or the rules of its fields. `each` is the rule of every field or item. */
export type Rules = Rule | { readonly [key: string]: Rules };
type Tree = { readonly [key: string]: Rules };

/** Returns the rules of a value of the file. */
function rulesOf(schema: Schema): Rules {
  const { properties, items, propertyNames, additionalProperties: named, [FACTS]: facts } = schema;
  if (facts?.shown !== undefined) return facts.shown;
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, rulesOf(inner)]));
  const inner = items ?? named;
  if (typeof inner !== "object") return "show";
  if (items === undefined && inner.type === "string" && inner.enum === undefined) return "names";
  const each = rulesOf(inner);
  if (propertyNames?.enum !== undefined)
    return Object.fromEntries(propertyNames.enum.map((name) => [String(name), each]));
  return each === "show" ? "show" : { each };
}

const FILE = rulesOf(configSchema);

/** Returns the rules at a path of the file. The items of a list are at `each`. */
const at = (path: string): Tree =>
  path.split(".").reduce((rules, name) => (rules as Tree)[name] ?? {}, FILE) as Tree;

const SERVER = at("tools.mcp.servers.each");
const CHANNELS = Object.values(at("channels")) as Tree[];

const ADDED = Object.fromEntries(Object.keys(added("settings")).map((name) => [name, at(name)])) as Record<
  keyof AddedSettings,
  Rules
>;

/** The rules of all settings: those of the file, and of the settings that have another form than there. */
export const DISCLOSURE: { readonly [K in keyof Required<Settings>]: Rules } = {
  gateway: { ...at("gateway"), ...at("gateway.auth") },
  store: at("store"),
  providers: { each: { id: "show", ...at("models.providers.each") } },
  agents: at("agents.list"),
  maxConcurrent: "show",
  titles: "show",
  subagents: at("agents.defaults.subagents"),
  session: at("session"),
  tools: {
    ...at("tools"),
    filter: { allow: "show", deny: "show" },
    visibility: "show",
    subagents: at("tools.subagents.tools"),
    sandbox: at("tools.sandbox.tools"),
    sessionsSpawn: at("tools.sessions_spawn"),
    exec: { ...at("tools.exec"), searchPath: "show" },
    sendFile: at("tools.send_file"),
    mcp: {
      ...at("tools.mcp"),
      servers: { each: { name: "show", ...SERVER, reach: { kind: "show", ...SERVER } } },
    },
  },
  owners: "show",
  channels: {
    each: {
      ...Object.assign({}, ...CHANNELS),
      channel: "show",
      accountId: "show",
      inbound: { ...at("inbound"), mediaMaxBytes: "show" },
    },
  },
  labels: at("labels"),
  logging: at("logging"),
  traces: at("telemetry.traces"),
  ...ADDED,
};

/** Returns the parts of a value for which `leaf` returns something else than undefined. */
export function applyRules(
  rules: Rules,
  value: unknown,
  leaf: (rule: Rule, value: unknown) => unknown,
): unknown {
  if (typeof rules === "string") return leaf(rules, value);
  const { each } = rules;
  if (Array.isArray(value)) return each && value.map((one) => applyRules(each, one, leaf));
  if (!isObject(value)) return undefined;
  const names = Object.keys(each === undefined ? rules : value);
  const fields = names.map((name) => [name, applyRules(each ?? rules[name] ?? {}, value[name], leaf)]);
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined));
}

/** Returns the names of the settings in the file whose rule is in `wanted`. */
export function namesRuled(wanted: readonly Rule[], rules: Rules = FILE): string[] {
  if (typeof rules === "string") return [];
  return Object.entries(rules).flatMap(([name, its]) =>
    typeof its === "string" && wanted.includes(its) ? [name] : namesRuled(wanted, its),
  );
}
