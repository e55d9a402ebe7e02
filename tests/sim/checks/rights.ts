// A second implementation of access rights (I9, I13), written from docs/POLICY.md and independent of src. It
// computes sets of keys with plain loops, while the product checks one case at a time.

import type { AgentSettings, Settings } from "../../../src/core/shapes/settings/settings.ts";
import type { Row } from "../world/database.ts";

/** The properties of a session on which access rights depend. */
export interface SessionFacts {
  readonly key: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly kind: string;
  readonly label: string | undefined;
  readonly archived: boolean;
  readonly external: boolean;
  readonly spawnedBy: string | undefined;
  readonly spawnDepth: number;
  /** True if the spawn of this session requested a sandbox. */
  readonly boxed: boolean;
}

export type SessionMap = ReadonlyMap<string, SessionFacts>;

export const FACTS_QUERY = `select key, session_id, agent_id, kind, label, archived_at, external, spawned_by,
  spawn_depth, spawn_json from sessions order by key`;

export function factsOf(row: Row): SessionFacts {
  const spawn =
    row.spawn_json === null ? undefined : (JSON.parse(String(row.spawn_json)) as { sandboxed: boolean });
  return {
    key: String(row.key),
    sessionId: String(row.session_id),
    agentId: String(row.agent_id),
    kind: String(row.kind),
    label: row.label === null ? undefined : String(row.label),
    archived: row.archived_at !== null,
    external: row.external === 1,
    spawnedBy: row.spawned_by === null ? undefined : String(row.spawned_by),
    spawnDepth: Number(row.spawn_depth),
    boxed: spawn?.sandboxed === true,
  };
}

/** Returns true if a text matches a pattern with `*`, as in settings. */
export function fits(pattern: string, text: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(text);
}

function agentIn(key: string): string | undefined {
  return /^agent:([^:]+):/.exec(key)?.[1];
}

function agent(settings: Settings, id: string): AgentSettings {
  const found = settings.agents.find((one) => one.id === id) ?? settings.agents.find((one) => one.default);
  if (found === undefined) throw new Error("no agent");
  return found;
}

/**
 * Returns a session, its spawner, the spawner's spawner, and so on. `lost`: the deleted spawner of the last
 * session, if there is one.
 */
function lineOf(key: string, sessions: SessionMap): { line: SessionFacts[]; lost: string | undefined } {
  const line: SessionFacts[] = [];
  let at: string | undefined = key;
  for (
    let next = sessions.get(key);
    next !== undefined;
    next = at === undefined ? undefined : sessions.get(at)
  ) {
    line.push(next);
    at = next.spawnedBy;
  }
  return { line, lost: at };
}

/**
 * Returns true if a session is sandboxed: by its agent's mode, by its spawn, or because an ancestor is
 * sandboxed.
 */
export function isBoxed(key: string, sessions: SessionMap, settings: Settings): boolean {
  const { line, lost } = lineOf(key, sessions);
  for (const { agentId, kind, boxed } of line) {
    const { mode } = agent(settings, agentId).sandbox;
    if (boxed || mode === "all" || (mode === "non-main" && kind !== "main")) return true;
  }
  const gone = settings.agents.find((one) => one.id === agentIn(lost ?? ""));
  return gone !== undefined && gone.sandbox.mode !== "off";
}

/** Returns a session and all its descendants. */
export function treeOf(key: string, sessions: SessionMap): Set<string> {
  const tree = new Set([key]);
  for (let before = 0; before !== tree.size; ) {
    before = tree.size;
    for (const one of sessions.values()) if (tree.has(one.spawnedBy ?? "")) tree.add(one.key);
  }
  return tree;
}

function talks(settings: Settings, from: string, to: string): boolean {
  const { enabled, allow } = settings.tools.agentToAgent;
  const named = (id: string): boolean => allow.some((pattern) => fits(pattern, id));
  return enabled && (allow.length === 0 || (named(from) && named(to)));
}

/** Returns every session that this session may see. */
export function sightOf(key: string, sessions: SessionMap, settings: Settings): Set<string> {
  const viewer = sessions.get(key);
  if (viewer === undefined) return new Set();
  const seen = widest(viewer, sessions, settings);
  for (const one of seen) if (sessions.get(one)?.archived === true) seen.delete(one);
  return seen;
}

function widest(viewer: SessionFacts, sessions: SessionMap, settings: Settings): Set<string> {
  const { visibility } = settings.tools;
  if (visibility === "self") return new Set([viewer.key]);
  const seen = treeOf(viewer.key, sessions);
  const requester = viewer.spawnedBy === undefined ? undefined : sessions.get(viewer.spawnedBy);
  const orphan = viewer.spawnedBy !== undefined && requester === undefined;
  const { sessionToolsVisibility } = agent(settings, viewer.agentId).sandbox;
  const clamped = sessionToolsVisibility === "spawned" && isBoxed(viewer.key, sessions, settings);
  if (visibility === "tree" || orphan || clamped) return seen;
  const above = requester === undefined ? undefined : widest(requester, sessions, settings);
  for (const one of sessions.values()) {
    const own = one.agentId === viewer.agentId;
    const wide = own || (visibility === "all" && talks(settings, viewer.agentId, one.agentId));
    if (wide && (above === undefined || above.has(one.key))) seen.add(one.key);
  }
  return seen;
}

const SESSION_TOOLS = [
  "sessions_list",
  "sessions_history",
  "sessions_send",
  "sessions_spawn",
  "agents_list",
  "session_status",
  "sessions_search",
  "subagents",
  "message",
  // A sub-agent has no people.
  "send_file",
];
const NESTING = ["sessions_spawn", "sessions_list", "sessions_history", "agents_list", "subagents"];

function passes(filter: { allow: readonly string[]; deny: readonly string[] }, tool: string): boolean {
  if (filter.deny.some((pattern) => fits(pattern, tool))) return false;
  return filter.allow.length === 0 || filter.allow.some((pattern) => fits(pattern, tool));
}

/** Sessions in which people may write whom the operator does not know. */
const WITH_STRANGERS = /:(group|channel|thread|dm|direct|hook|openai)(:|$)/;

/** Returns whether the rules for this session allow a tool, regardless of the sessions above it. */
function alone(own: SessionFacts, tool: string, sessions: SessionMap, settings: Settings): boolean {
  const { tools, subagents } = settings;
  if (!passes(tools.filter, tool) || !passes(agent(settings, own.agentId).tools, tool)) return false;
  const boxed = isBoxed(own.key, sessions, settings);
  if (boxed && !passes(tools.sandbox, tool)) return false;
  if (tool === "search" && tools.search === undefined) return false;
  if (boxed && ["fetch", "search"].includes(tool) && !agent(settings, own.agentId).sandbox.network)
    return false;
  // No workspace of a story has a skill.
  if (tool === "skill") return false;
  if (tool === "memory") return own.spawnedBy === undefined && !WITH_STRANGERS.test(own.key);
  if (tool === "cron")
    return own.spawnedBy === undefined && !WITH_STRANGERS.test(own.key) && !own.key.startsWith("cron:");
  if (own.spawnedBy === undefined) return true;
  if (!passes(tools.subagents, tool)) return false;
  const nests = own.spawnDepth < subagents.maxSpawnDepth;
  if (tool === "sessions_spawn" && !nests) return false;
  if (tools.subagents.allow.length > 0) return true;
  return !SESSION_TOOLS.includes(tool) || (nests && NESTING.includes(tool));
}

/** Returns whether a session, and every session above it, may use a tool. */
export function hasTool(key: string, tool: string, sessions: SessionMap, settings: Settings): boolean {
  const { line, lost } = lineOf(key, sessions);
  if (!line.every((one) => alone(one, tool, sessions, settings))) return false;
  if (lost === undefined) return line.length > 0;
  const gone = settings.agents.find((one) => one.id === agentIn(lost));
  return !SESSION_TOOLS.includes(tool) && (gone === undefined || passes(gone.tools, tool));
}
