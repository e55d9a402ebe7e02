// The form of an agent's settings: its fields from the settings schema, its entries from the configuration
// file, and the changes that save them. Pure.
// AS1: a field without an entry has its default. Only fields that the reader has changed are written.

import type { ConfigChange } from "../../../src/contract/methods/configuration.ts";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { type Json5Place, json5Places, unescapeText } from "../../../src/core/text/json5-places.ts";
import { nearestName } from "../../../src/core/text/nearest.ts";
import { type Path, showPath } from "../../../src/core/text/value-path.ts";
import type { Field } from "../inbox/form.tsx";

export type Setting = PayloadOf<"config.schema">["settings"][number];

/** Groups of the form, with the paths of their settings. The last one has all that no other has. */
const GROUPS: readonly (readonly [title: string, paths: RegExp])[] = [
  ["Purpose", /^instructions$/],
  ["Models", /^(model|thinking|fallbackModels)$/],
  ["Tools", /^tools\./],
  ["Sub-agents", /^subagents\./],
  ["Name", /^(name|color|icon)$/],
  ["Budget", /^budget\./],
  ["More settings", /^(?!id$|default$|runtime)/],
];
const TITLES: Readonly<Record<string, string>> = {
  name: "Name for people",
  color: "Colour",
  icon: "Emoji or letters",
  "tools.allow": "Allowed tools",
  "tools.deny": "Denied tools",
  "tools.exec.approval": "Commands that need approval",
  "subagents.allowAgents": "Agents that it may start as sub-agents",
  "subagents.model": "Model when it is a sub-agent",
  "budget.dailyTokens": "Tokens a day",
  "budget.dailyCost": "Cost a day, in USD",
  maxHops: "Messages from session to session",
  maxChainRuns: "Runs",
  maxChainTokens: "Tokens",
  maxChainCost: "Cost, in USD",
  memoryMb: "Memory",
  diskMb: "Disk",
};
/** The entry of a setting that is `null`: no limit. */
const NO_LIMIT = "none";
const NO_LIMIT_WORDS = "Unset: no limit.";
/** Sentences about places in the configuration file. */
const PLACES = /\s*Default: (?:<|agents\.|tools\.)[\s\S]*?\.(?=\s[A-Z]|$)|\s*Unset: no limit\./g;
const ITEM = "agents.list[].";

/** Returns `Max answer bytes` for `maxAnswerBytes`. */
function titleOf(path: string): string {
  const name = path.split(".").at(-1) ?? path;
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return TITLES[path] ?? TITLES[name] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

function typeOf({ type }: Setting): Pick<Field, "type" | "options" | "list"> | undefined {
  if (type.startsWith("`"))
    return {
      type: "choice",
      options: [...type.matchAll(/`([^`]+)`/g)].map(([, value = ""]) => ({ value, title: value })),
    };
  if (type === "true or false") return { type: "boolean" };
  if (type.startsWith("integer")) return { type: "integer" };
  if (type.startsWith("number")) return { type: "number" };
  if (type === "list of string") return { type: "string", list: true };
  return type.startsWith("string") ? { type: "string" } : undefined;
}

/** `path`: within what the form is about. `base`: the setting that holds if this one is absent. */
function makeField(setting: Setting, path: string, base?: Setting, inherited?: string): Field | undefined {
  const type = typeOf(setting);
  if (type === undefined) return undefined;
  const description = [base?.meaning ?? "", setting.meaning]
    .map((text) => text.replaceAll(PLACES, "").replaceAll("`", "").trim())
    .find((text) => text !== "");
  const written = (base?.fallback ?? setting.fallback)?.replaceAll('"', "");
  const isFree = [base, setting].some((one) => one?.meaning.includes(NO_LIMIT_WORDS) === true);
  const fallback = inherited ?? written ?? (isFree ? "no limit" : undefined);
  const unit = setting.unit === undefined || /^(USD|count|tokens)$/.test(setting.unit) ? "" : setting.unit;
  return {
    ...{ name: path, title: titleOf(path) + (unit && ` (${unit})`), setting: true, ...type },
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && fallback !== "[]" && { fallback }),
  };
}

/** `models`: those that the gateway knows. `defaults`: settings of the file for all agents. */
export function fieldsIn(settings: readonly Setting[], models: readonly string[], defaults: Entries) {
  const byPath = new Map(settings.map((setting) => [setting.path, setting]));
  const options = models.map((value) => ({ value, title: value }));
  const fields = settings.flatMap((setting): Field[] => {
    if (!setting.path.startsWith(ITEM)) return [];
    const path = setting.path.slice(ITEM.length);
    const field = makeField(setting, path, byPath.get(`agents.defaults.${path}`), defaults[path]);
    if (field === undefined) return [];
    const { description: _, ...plain } = field;
    if (path === "model" || path === "subagents.model") return [{ ...plain, type: "choice", options }];
    if (path === "instructions") return [{ ...plain, lines: 8 }];
    return [path === "name" ? plain : field];
  });
  const taken = new Set<string>();
  return GROUPS.map(([title, paths]) => {
    const own = fields.filter(({ name }) => paths.test(name) && !taken.has(name));
    for (const { name } of own) taken.add(name);
    return { title, fields: own };
  }).filter((group) => group.fields.length > 0);
}

export type Entries = Readonly<Record<string, string>>;

/** Escape sequences that stand for other characters than their own. */
const BLANKS: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

/** Returns the text that a value has in the form. An environment variable stays a variable. */
function entryOf(raw: string, isText: boolean): string {
  if (isText) {
    const lines = raw.slice(1, -1).replace(/\\([\s\S])/g, (pair, char: string) => BLANKS[char] ?? pair);
    return unescapeText(lines).replaceAll("$${", "${");
  }
  return raw === "null" ? NO_LIMIT : raw;
}

function entriesBelow(text: string, places: readonly Json5Place[], prefix: Path): Entries {
  const entries: Record<string, string> = {};
  for (const { kind, path, start, end } of places) {
    if ((kind !== "text" && kind !== "word") || prefix.some((part, at) => path[at] !== part)) continue;
    const name = path
      .slice(prefix.length)
      .filter((part) => typeof part === "string")
      .join(".");
    const value = entryOf(text.slice(start, end), kind === "text");
    const isItem = typeof path.at(-1) === "number" && entries[name] !== undefined;
    entries[name] = isItem ? `${entries[name]}, ${value}` : value;
  }
  return entries;
}

/** `own`: undefined if the file does not name the agent, but implies it. */
export function entriesIn(text: string, agentId: string): { own: Entries | undefined; defaults: Entries } {
  const places = json5Places(text).filter(({ path }) => path[0] === "agents");
  const id = places.find(
    ({ kind, path, start, end }) =>
      kind === "text" &&
      /^agents\.list\.\d+\.id$/.test(path.join(".")) &&
      entryOf(text.slice(start, end), true).toLowerCase() === agentId,
  );
  return {
    own: id && entriesBelow(text, places, id.path.slice(0, 3)),
    defaults: entriesBelow(text, places, ["agents", "defaults"]),
  };
}

function typedValue({ type, list }: Field, entry: string): unknown {
  const text = entry.trim();
  if (list === true) return text.split(",").flatMap((one) => one.trim() || []);
  if (type === "boolean") return text === "true";
  if (type === "integer" || type === "number") {
    if (text === NO_LIMIT) return null;
    return text === "" || Number.isNaN(Number(text)) ? text : Number(text);
  }
  return text.replaceAll("${", () => "$${");
}

function changesBelow(place: Path, fields: readonly Field[], entries: Entries): ConfigChange[] {
  return Object.entries(entries).flatMap(([name, entry]): ConfigChange[] => {
    const field = fields.find((one) => one.name === name);
    const path = showPath([...place, ...name.split(".")]);
    if (field === undefined) return [];
    return [entry.trim() === "" ? { path, unset: true } : { path, value: typedValue(field, entry) }];
  });
}

/** Returns the changes that write these entries. `isListed`: the file names the agent. */
export function changesOf(
  fields: readonly Field[],
  agentId: string,
  entries: Entries,
  isListed: boolean,
): ConfigChange[] {
  const agent: Path = ["agents", "list", agentId];
  const changes = changesBelow(agent, fields, entries);
  return isListed ? changes : [{ path: showPath(agent), value: { default: true } }, ...changes];
}

/** Returns a sentence about the tools in these entries that do not exist. Undefined if all do. */
export function unknownTools(entries: Entries, known: readonly string[]): string | undefined {
  const names = [entries["tools.allow"], entries["tools.deny"]].flatMap((entry = "") => entry.split(","));
  const [name] = names
    .map((one) => one.trim())
    // Tools of servers may not be there yet.
    .filter((one) => one !== "" && !/\*|__/.test(one) && !known.includes(one.toLowerCase()));
  if (name === undefined) return undefined;
  const meant = nearestName(name, known);
  return `There is no tool ${name}${meant === undefined ? "." : `; did you mean ${meant}?`}`;
}

/** Returns an error of the gateway about a setting of an agent with the title of its field. */
export const describeProblem = (words: string): string =>
  words.replace(/^nothing was written: agents\.list\[.*?\]\.([\w.]+): /, (_, path) => `${titleOf(path)}: `);

const CHAINS: Path = ["session", "agentToAgent"];
const CHAIN_LIMIT = /^session\.agentToAgent\.(max(?:Hops|Chain\w+))$/;

/** Returns the fields of the limits of chains, which begin with the entries of the file. */
export function chainLimitsIn(settings: readonly Setting[], text: string): Field[] {
  const entries = entriesBelow(text, json5Places(text), CHAINS);
  return settings.flatMap((setting) => {
    const [, name = ""] = CHAIN_LIMIT.exec(setting.path) ?? [];
    const field = name === "" ? undefined : makeField(setting, name);
    return field === undefined ? [] : [{ ...field, default: entries[name] ?? "" }];
  });
}

/** Returns the changes that write the entries that differ from those in the file. */
export function chainLimitChanges(fields: readonly Field[], entries: Entries): ConfigChange[] {
  const edited = fields.filter(({ name, default: before }) => entries[name] !== before);
  return changesBelow(CHAINS, edited, entries);
}
