// Maps the source's configuration to Parley's: agents, tools, sessions, channels, and the models that they
// name. A setting without a counterpart is reported, never guessed. A value may be a secret, so values appear
// only in the mapped configuration. The same source always gives the same text.

import type { Tree } from "../../../config/source.ts";
import { fieldsOf, isObject, listOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import { countIn, textIn, textsIn } from "../fields.ts";
import { agentIdOf } from "../keys.ts";
import type { RoutineSettings } from "../routines.ts";
import type { WorkspaceOwner } from "../workspace/find.ts";
import { bindAgents } from "./bindings.ts";
import { mapChannels } from "./channels.ts";
import { mapMcp } from "./mcp.ts";
import { aliasesIn, mapModels, modelNameIn } from "./models.ts";
import { mapTools, takeFilter } from "./tools.ts";
import { compact, leftIn, noteRest, putBack, take, takeTree } from "./tree.ts";

export interface MappedConfig {
  /** The content of Parley's configuration file. */
  readonly file: Tree;
  /** Steps that a person must do, and settings whose meaning differs slightly. */
  readonly notes: readonly string[];
  /** Settings without a counterpart. */
  readonly left: readonly string[];
  /** The source's name for main sessions, needed to read its session keys. */
  readonly mainName: string;
  readonly isGlobal: boolean;
  readonly defaultAgentId: string;
  readonly routines: RoutineSettings;
  /** The agents, with the folders that the source names for their workspaces. */
  readonly workspaces: readonly WorkspaceOwner[];
  /** The folder that it names for all agents. */
  readonly sharedWorkspace?: string;
}

/** Key of the settings for all agents. */
const DEFAULTS = "";

interface Mapping {
  readonly aliases: ReadonlyMap<string, string>;
  /** The models that the configuration names. */
  readonly models: Set<string>;
  readonly notes: string[];
  /** Unused settings of each agent, or of the defaults, by path. */
  readonly leftOf: Map<string, Tree>;
  readonly heartbeats: Map<string, Tree>;
  readonly workspaces: Map<string, string>;
}

/** Removes the model of one section. Returns it with the models that replace it after a failure. */
function takeModels(
  tree: Tree,
  where: string,
  mapping: Mapping,
): { model?: string; fallbackModels?: string[] } {
  const value = take(tree, "model");
  const { primary: _, fallbacks, ...rest } = fieldsOf(value);
  noteRest(rest, `${where}.model`, mapping.notes);
  const model = modelNameIn(value, mapping.aliases);
  const others = textsIn(fallbacks).flatMap((name) => modelNameIn(name, mapping.aliases) ?? []);
  for (const name of [...(model === undefined ? [] : [model]), ...others]) mapping.models.add(name);
  return optional({ model, fallbackModels: others.length === 0 ? undefined : others });
}

/** Removes the settings for which the import has another place than the configuration: see MappedConfig. */
function takeRoutines(tree: Tree, id: string, mapping: Mapping): void {
  const workspace = textIn(take(tree, "workspace"), 2_000);
  if (workspace !== undefined) mapping.workspaces.set(id, workspace);
  const heartbeat = takeTree(tree, "heartbeat");
  if (Object.keys(heartbeat).length > 0) mapping.heartbeats.set(id, heartbeat);
}

const flagIn = (value: unknown): boolean | undefined => (typeof value === "boolean" ? value : undefined);

function mapSandbox(tree: Tree): Tree {
  const image = textIn(take(tree, "docker", "image"), 500);
  const network = textIn(take(tree, "docker", "network"), 100);
  return {
    mode: textIn(take(tree, "mode"), 20),
    sessionToolsVisibility: textIn(take(tree, "sessionToolsVisibility"), 20),
    image,
    network: network === undefined ? undefined : network !== "none",
  };
}

function mapSubagents(tree: Tree, where: string, mapping: Mapping): Tree {
  const allow = textsIn(take(tree, "allowAgents"));
  const { model, fallbackModels } = takeModels(tree, `${where}.subagents`, mapping);
  if (fallbackModels !== undefined)
    mapping.notes.push(
      `${where}.subagents.model.fallbacks is not imported: sub-agents have those of their agent`,
    );
  return {
    allowAgents:
      allow.length === 0 ? undefined : allow.map((name) => (name === "*" ? name : (agentIdOf(name) ?? name))),
    model,
  };
}

function mapDefaults(defaults: Tree, mapping: Mapping): Tree {
  const where = "agents.defaults";
  take(defaults, "models");
  takeRoutines(defaults, DEFAULTS, mapping);
  const subagents = takeTree(defaults, "subagents");
  const sandbox = takeTree(defaults, "sandbox");
  const mapped = {
    ...takeModels(defaults, where, mapping),
    thinking: textIn(take(defaults, "thinkingDefault"), 20),
    maxConcurrent: countIn(take(defaults, "maxConcurrent")),
    subagents: {
      ...mapSubagents(subagents, where, mapping),
      maxConcurrent: countIn(take(subagents, "maxConcurrent")),
      maxChildren: countIn(take(subagents, "maxChildrenPerAgent")),
      maxSpawnDepth: countIn(take(subagents, "maxSpawnDepth")),
      runTimeoutSeconds: countIn(take(subagents, "runTimeoutSeconds")),
      archiveAfterMinutes: countIn(take(subagents, "archiveAfterMinutes")),
    },
    sandbox: mapSandbox(sandbox),
  };
  putBack(defaults, "subagents", subagents);
  putBack(defaults, "sandbox", sandbox);
  mapping.leftOf.set(where, defaults);
  return mapped;
}

function mapAgent(agent: Tree, mapping: Mapping): Tree | undefined {
  const id = agentIdOf(textIn(take(agent, "id"), 200) ?? "");
  if (id === undefined) return undefined;
  const where = `agents.list[${id}]`;
  takeRoutines(agent, id, mapping);
  const tools = takeTree(agent, "tools");
  const filter = takeFilter(tools, `${where}.tools`, mapping.notes);
  putBack(agent, "tools", tools);
  const sandbox = takeTree(agent, "sandbox");
  const subagents = takeTree(agent, "subagents");
  const mapped = {
    id,
    default: take(agent, "default") === true ? true : undefined,
    name: textIn(take(agent, "name"), 200) ?? textIn(take(agent, "identity", "name"), 200),
    ...takeModels(agent, where, mapping),
    thinking: textIn(take(agent, "thinkingDefault"), 20),
    tools: filter,
    sandbox: mapSandbox(sandbox),
    subagents: mapSubagents(subagents, where, mapping),
  };
  putBack(agent, "sandbox", sandbox);
  putBack(agent, "subagents", subagents);
  return mapped;
}

function mapList(list: unknown, mapping: Mapping): Tree[] {
  const mapped = new Map<string, Tree>();
  for (const item of Array.isArray(list) ? list : []) {
    const agent = { ...fieldsOf(item) };
    const one = mapAgent(agent, mapping);
    if (one === undefined || mapped.has(String(one.id))) {
      mapping.notes.push("an agent without an id is skipped");
      continue;
    }
    // If several agents are marked as default, the first one is used.
    if ([...mapped.values()].some((other) => other.default === true)) one.default = undefined;
    mapped.set(String(one.id), one);
    mapping.leftOf.set(`agents.list[${one.id}]`, agent);
  }
  return [...mapped.values()];
}

/**
 * Returns the agents of newer versions as a list: they are named by keys, and the agent that owns everything
 * without an owner is the default.
 */
function namedAgents(agents: Tree, defaults: Tree): Tree[] {
  const owner = take(defaults, "systemAgent", "agentId");
  take(agents, "ownership");
  return Object.entries(fieldsOf(take(agents, "entries"))).map(([id, entry]) => {
    return { ...fieldsOf(entry), id, ...(id === owner ? { default: true } : {}) };
  });
}

const DM_SCOPES: Readonly<Record<string, string>> = {
  main: "main",
  "per-peer": "per-peer",
  "per-channel-peer": "per-peer",
  "per-account-channel-peer": "per-peer",
};

function mapSendPolicy(policy: Tree, notes: string[]): Tree {
  const rules = take(policy, "rules");
  const mapped = (Array.isArray(rules) ? rules : []).flatMap((rule, index) => {
    const { action, match } = fieldsOf(rule);
    const { channel, provider, surface, chatType, keyPrefix, ...more } = fieldsOf(match);
    if (Object.keys(more).length > 0) {
      const where = `session.sendPolicy.rules[${index}]`;
      const by = Object.keys(more).join(", ").slice(0, 80);
      const left =
        action === "deny" ? "the tools that it denied are allowed until you deny them" : "it is skipped";
      notes.push(`${where} matches by ${by}, which Parley does not support: ${left}`);
      return [];
    }
    const type = chatType === "channel" ? "room" : chatType;
    return [{ match: { channel: channel ?? provider ?? surface, chatType: type, keyPrefix }, action }];
  });
  return { rules: mapped.length === 0 ? undefined : mapped, default: textIn(take(policy, "default"), 10) };
}

/** Removes the daily reset of sessions. Returns its hour; other kinds of resets stay. */
function takeResetHour(session: Tree, notes: string[]): number | undefined {
  if (fieldsOf(session.reset).mode !== "daily") return undefined;
  const { mode: _, atHour, ...rest } = takeTree(session, "reset");
  noteRest(rest, "session.reset", notes);
  const hour = countIn(atHour) ?? 4;
  return hour < 24 ? hour : undefined;
}

function mapSession(session: Tree, notes: string[]): Tree {
  const policy = takeTree(session, "sendPolicy");
  const dmScope = textIn(take(session, "dmScope"), 40);
  const turns = countIn(take(session, "agentToAgent", "maxPingPongTurns"));
  const bindings = takeTree(session, "threadBindings");
  const mapped = {
    scope: textIn(take(session, "scope"), 20),
    mainKey: textIn(take(session, "mainKey"), 64)?.toLowerCase(),
    dmScope: dmScope === undefined ? undefined : (DM_SCOPES[dmScope] ?? dmScope),
    sendPolicy: mapSendPolicy(policy, notes),
    agentToAgent: { maxPingPongTurns: turns === undefined ? undefined : Math.min(turns, 5) },
    threadBindings: {
      enabled: flagIn(take(bindings, "enabled")),
      idleHours: countIn(take(bindings, "idleHours")),
      maxAgeHours: countIn(take(bindings, "maxAgeHours")),
    },
  };
  putBack(session, "sendPolicy", policy);
  putBack(session, "threadBindings", bindings);
  return mapped;
}

/** Escapes `${…}`, which is a reference to a variable in Parley's file, but plain text in the source. */
function escapeText(value: unknown): unknown {
  if (typeof value === "string") {
    return value.replace(/\$\$\{|\$\{(?![A-Z_][A-Z0-9_]*(?::-[^}]*)?\})/g, (found) =>
      found === "${" ? "$${" : found,
    );
  }
  if (Array.isArray(value)) return value.map(escapeText);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, escapeText(inner)]));
}

/** Maps the source's configuration to Parley's. */
export function mapConfig(source: Tree): MappedConfig {
  const rest = structuredClone(source);
  const notes: string[] = [];
  const agents = takeTree(rest, "agents");
  // Older versions have only one agent.
  const defaults = { ...takeTree(rest, "agent"), ...takeTree(agents, "defaults") };
  const aliases = aliasesIn(defaults.models);
  const models = new Set(Object.keys(fieldsOf(defaults.models)));
  const own = { leftOf: new Map(), heartbeats: new Map(), workspaces: new Map() };
  const mapping: Mapping = { aliases, models, notes, ...own };
  const timeZone = textIn(defaults.userTimezone, 100);
  const mappedDefaults = mapDefaults(defaults, mapping);
  const list = mapList(take(agents, "list") ?? namedAgents(agents, defaults), mapping);
  putBack(rest, "agents", agents);
  const tools = takeTree(rest, "tools");
  const routing = take(rest, "routing", "agentToAgent");
  if (isObject(routing) && tools.agentToAgent === undefined) tools.agentToAgent = routing;
  const mcp = mapMcp(take(rest, "mcp", "servers"), notes);
  const mappedTools = mapTools(tools, notes, mcp.deny);
  putBack(rest, "tools", tools);
  const session = takeTree(rest, "session");
  const resetHour = takeResetHour(session, notes);
  const mappedSession = mapSession(session, notes);
  putBack(rest, "session", session);
  const first = list.find((agent) => agent.default === true) ?? list[0];
  const defaultAgentId = first === undefined ? "main" : String(first.id);
  const channels = mapChannels(rest, notes);
  bindAgents(take(rest, "bindings"), channels, defaultAgentId, notes);
  const owners = mapOwners(take(rest, "commands", "ownerAllowFrom"), channels);
  const { [DEFAULTS]: heartbeatDefaults, ...heartbeats } = Object.fromEntries(mapping.heartbeats);
  const ids = list.length === 0 ? [defaultAgentId] : list.map(({ id }) => String(id));
  const file = {
    models: mapModels(rest, models, notes),
    agents: { defaults: mappedDefaults, list: list.length === 0 ? undefined : list },
    session: mappedSession,
    tools: { ...mappedTools, mcp: { servers: mcp.servers } },
    channels,
    commands: { owners: owners.length === 0 ? undefined : owners },
  };
  for (const name of ["meta", "wizard", "update"]) take(rest, name);
  const unused = splitUnused(leftIn(rest, mapping.leftOf));
  return {
    file: escapeText(compact(file)) as Tree,
    notes: [...new Set([...notes, ...unused.notes])].slice(0, 100),
    left: unused.left,
    mainName: mappedSession.mainKey === undefined ? "main" : String(mappedSession.mainKey),
    isGlobal: mappedSession.scope === "global",
    defaultAgentId,
    routines: {
      heartbeats: new Map(Object.entries(heartbeats)),
      ...optional({ heartbeatDefaults, resetHour, timeZone }),
    },
    workspaces: ids.map((agentId) => {
      const workspace = mapping.workspaces.get(agentId);
      return { agentId, isDefault: agentId === defaultAgentId, workspace };
    }),
    ...optional({ sharedWorkspace: mapping.workspaces.get(DEFAULTS) }),
  };
}

const COUNTERPARTS: readonly (readonly [RegExp, string])[] = [
  [/^gateway\b/, "gateway.*"],
  [/^channels\.(whatsapp|signal|imessage)\b/, "channels.*: run npx parley-gateway channels add"],
  [/^tools\.web\b/, "tools.search and tools.fetch"],
  [/^tools\.(elevated|exec)\b/, "tools.exec"],
  [/^(approvals)\b/, "tools.exec.approval"],
  [/^hooks\b/, "hooks.*"],
  [/^logging\b/, "logging.*"],
  [/^diagnostics\b/, "telemetry.traces"],
  [/^messages\b/, "inbound.*"],
  [/^cron\b/, "cron.*"],
  [/^env\b/, "the environment of the gateway"],
  [
    /^session\.(reset|idle)/,
    "a scheduled job with the message /reset: npx parley-gateway cron add /reset --session main",
  ],
  [/\.sandbox$/, "agents.defaults.sandbox"],
  [/^(acp|nodeHost|browser)\b/, "agents.list[].runtime, nodes and MCP servers"],
];

const NAMES_SHOWN = 12;

/** Splits unused settings into those with a setting here, as notes, and those without one. */
function splitUnused(left: readonly string[]): { notes: string[]; left: string[] } {
  const byHere = Map.groupBy(left, (path) => COUNTERPARTS.find(([one]) => one.test(path))?.[1]);
  const unknown = byHere.get(undefined) ?? [];
  byHere.delete(undefined);
  const notes = [...byHere].map(([here, paths]) => {
    const names = paths.slice(0, NAMES_SHOWN).join(", ");
    return `not converted: ${names}. The setting here: ${here}`;
  });
  return { notes, left: unknown };
}

const ENTRIES_MAX = 2_000;
const OWNER = /^(?:(telegram|tg|discord):)?(?:user:)?(\d{1,32})$/i;

/**
 * Returns the owners that these entries name. An entry that is not the id of one person makes nobody an
 * owner. An entry without a channel counts for each of `channels`.
 */
function ownersIn(entries: unknown, channels: readonly string[]): string[] {
  return listOf(entries)
    .slice(0, ENTRIES_MAX)
    .flatMap((entry) => {
      const text = textIn(typeof entry === "number" ? String(entry) : entry, 200) ?? "";
      const [, channel, id] = OWNER.exec(text) ?? [];
      if (id === undefined) return [];
      const named = channel?.toLowerCase().replace(/^tg$/, "telegram");
      return (named === undefined ? channels : [named]).map((one) => `${one}:${id}`);
    });
}

/**
 * Returns the owners. Like in the source, the people who may write directly are owners if the configuration
 * names none. `channels`: the mapped channels.
 */
function mapOwners(named: unknown, channels: Tree): string[] {
  const mapped = Object.entries(channels).filter(([, channel]) => channel !== undefined);
  const explicit = ownersIn(
    named,
    mapped.map(([id]) => id),
  );
  if (listOf(named).length > 0) return [...new Set(explicit)];
  const allowed = mapped.flatMap(([id, channel]) => {
    const accounts = [channel, ...Object.values(fieldsOf(fieldsOf(channel).accounts))];
    return accounts.flatMap((account) => ownersIn(fieldsOf(account).allowFrom, [id]));
  });
  return [...new Set(allowed)];
}
