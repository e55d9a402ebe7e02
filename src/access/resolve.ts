// Resolves a session argument to a session that the viewer may access (I9). Every entry point uses it. The
// key is made canonical before any decision. For a session that the viewer can't see, the answer is the same
// as for one that does not exist.

import { optional } from "../core/optional.ts";
import type { Access, Verdict, Viewer } from "../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Session } from "../core/shapes/session.ts";
import {
  canonicalKey,
  formatKey,
  isAgentId,
  isReservedKey,
  KEY_CHARS_MAX,
  mainKeyOf,
} from "../core/shapes/session-key.ts";
import { defaultAgent, findAgent } from "../core/shapes/settings/settings.ts";
import { closeNames, nearestNames } from "../core/text/nearest.ts";
import { listSessions, type SessionFilter } from "../store/queries/sessions/session-lists.ts";
import { findSessionId, getSession } from "../store/queries/sessions/sessions.ts";
import {
  type AccessContext,
  ANY_UUID,
  agentIn,
  isPerson,
  keyRulesOf,
  openGate,
  shownKey,
  verdictOfKey,
  viewerScope,
} from "./access.ts";

/** Names a session by its key, session id or label, or by the name of its window. */
export interface SessionTarget {
  /** `main`, a key, a session id, or the name of a window. */
  readonly sessionKey?: string;
  readonly label?: string;
  /**
   * The agent whose sessions are searched for the label. Default: the viewer's own agent; for an operator,
   * any agent.
   */
  readonly agentId?: string;
  /** If set, `label` matches only sessions that this session spawned. */
  readonly spawnedBy?: string;
}

/** Maximum number of sessions that are read to suggest a key. */
const SUGGESTED_FROM_MAX = 200;
const SUGGESTED_MAX = 5;
/** Maximum number of sessions with one label that a lookup reads and lists. */
const LABELLED_MAX = 50;
const SESSION_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_AT_END = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

interface SessionLookup {
  readonly ctx: AccessContext;
  readonly viewer: Viewer;
  readonly access: Access;
  readonly wanted: string;
}

/** Returns the session that `target` names, if the viewer has this access to it. */
export async function resolveSession(
  ctx: AccessContext,
  viewer: Viewer,
  access: Access,
  target: SessionTarget,
): Promise<Result<Session>> {
  const { sessionKey, label, agentId } = target;
  if (sessionKey !== undefined && label !== undefined) {
    return fail("invalid_argument", "give sessionKey or label, not both");
  }
  if (agentId !== undefined && label === undefined) {
    return fail("invalid_argument", "agentId is valid only with label; a key already contains its agent");
  }
  const wanted = (label ?? sessionKey)?.trim();
  if (wanted === undefined) {
    return fail("invalid_argument", "sessionKey or label is required", {
      hint: "sessions_list shows the keys that you can use.",
    });
  }
  const lookup = { ctx, viewer, access, wanted };
  if (wanted === "")
    return fail("invalid_argument", `${label === undefined ? "sessionKey" : "label"} must not be empty`);
  return label === undefined ? byKey(lookup) : byLabel(lookup, target);
}

async function byKey(lookup: SessionLookup): Promise<Result<Session>> {
  const { ctx, viewer, access, wanted } = lookup;
  const rules = keyRulesOf(ctx.settings);
  const who = { agentId: agentIn(viewer) ?? rules.defaultAgentId, bareNames: isPerson(viewer) };
  const canonical = canonicalKey(wanted, who, rules);
  if (!canonical.ok) {
    const isId = SESSION_ID.test(wanted);
    const byId = await bySessionId(lookup, isId ? wanted.toLowerCase() : wanted);
    if (isId || byId.ok || byId.code === "stale_session_id") return byId;
    const window = await findWindow(lookup);
    if (window !== undefined) return window;
    const guesses = await guessKeys(lookup);
    const guess = guesses.length === 0 ? "" : `Did you mean ${guesses.join(" or ")}? `;
    return { ...canonical, hint: `${guess}${canonical.hint}` };
  }
  // An agent that writes a reserved key finds no session: it may name `global` only as `main`.
  const byName = isReservedKey(wanted.toLowerCase()) && agentIn(viewer) !== undefined;
  const session = byName ? undefined : await getSession(ctx.db, canonical.value);
  const fromKey = byName ? unseen(wanted) : verdictOfKey(ctx, viewer, access, canonical.value);
  if (session === undefined) return (await findWindow(lookup)) ?? missing(lookup, fromKey);
  const verdict = await openGate(ctx, viewer).decide(access, session);
  // For an archived session the answer is the same as for a missing one.
  return verdict.allowed ? ok(session) : missing(lookup, fromKey);
}

async function bySessionId(lookup: SessionLookup, sessionId: string): Promise<Result<Session>> {
  const { ctx, viewer, access } = lookup;
  const found = await findSessionId(ctx.db, sessionId);
  const session = found && (await getSession(ctx.db, found.key));
  const verdict = session && (await openGate(ctx, viewer).decide(access, session));
  if (found === undefined || session === undefined || !verdict?.allowed) {
    const everything = viewerScope(ctx, viewer).all;
    return missing(lookup, everything ? (verdict ?? { allowed: true }) : unseen(sessionId));
  }
  if (found.currentSessionId === sessionId) return ok(session);
  const key = shownKey(ctx, viewer, session.key);
  return fail("stale_session_id", `session id ${sessionId} is from before a reset of ${key}`, {
    hint: `Use the key ${key}, or the current session id ${found.currentSessionId}.`,
    details: { sessionKey: key, currentSessionId: found.currentSessionId },
  });
}

async function byLabel(lookup: SessionLookup, target: SessionTarget): Promise<Result<Session>> {
  const { ctx, viewer, access, wanted } = lookup;
  const agentId = target.agentId?.trim().toLowerCase();
  if (agentId !== undefined && !isAgentId(agentId)) {
    return fail("invalid_argument", "agentId must be 1 to 64 of a-z, 0-9, _ and -");
  }
  const { spawnedBy } = target;
  const named =
    (await findNamed(lookup, { label: wanted, ...optional({ spawnedBy }) }, agentId)) ??
    (spawnedBy === undefined ? await findWindow(lookup, agentId) : undefined);
  if (named !== undefined) return named;
  // No visible session has this label, but a hidden one could have it. The answer must not reveal that, so
  // it is the refusal for an unknown session of the agent.
  const agent = agentId ?? agentIn(viewer) ?? defaultAgent(ctx.settings).id;
  const verdict = verdictOfKey(ctx, viewer, access, `agent:${agent}:chat:${ANY_UUID}`);
  return missing(lookup, verdict.allowed ? verdict : { ...unseen(wanted), settings: verdict.settings });
}

/** Finds a session by the name of its window, which is the last part of its key (`parley join --session`). */
function findWindow(lookup: SessionLookup, agentId?: string): Promise<Result<Session> | undefined> {
  const keys = lookup.ctx.settings.agents.map((agent) =>
    formatKey({ form: "external", agentId: agent.id, client: "mcp", id: lookup.wanted }),
  );
  return findNamed(lookup, { keys }, agentId);
}

/** Returns the only visible session that passes this filter. Undefined: there is none. */
async function findNamed(
  { ctx, viewer, access, wanted }: SessionLookup,
  filter: Pick<SessionFilter, "label" | "keys" | "spawnedBy">,
  agentId: string | undefined,
): Promise<Result<Session> | undefined> {
  const gate = openGate(ctx, viewer);
  const find = async (ofAgent: string | undefined): Promise<Session[]> => {
    const { rows } = await listSessions(ctx.db, {
      ...filter,
      scope: viewerScope(ctx, viewer),
      limit: LABELLED_MAX,
      ...optional({ agentId: ofAgent }),
    });
    const admitted = await Promise.all(rows.map((row) => gate.admits(access, row)));
    return rows.filter((_, index) => admitted[index]);
  };
  const nearest = agentId ?? agentIn(viewer);
  const nearby = await find(nearest);
  // If the viewer's agent has no session with this name, all visible sessions are searched.
  const isOpen = nearby.length === 0 && agentId === undefined && nearest !== undefined;
  const seen = isOpen ? await find(undefined) : nearby;
  const [first, second] = seen;
  if (first === undefined) return undefined;
  if (second === undefined) return ok(first);
  const keys = seen.map((session) => shownKey(ctx, viewer, session.key));
  return fail("label_ambiguous", `${seen.length} sessions have the name ${JSON.stringify(wanted)}`, {
    hint: `Give one of these as sessionKey: ${keys.join(", ")}`,
    details: { keys },
  });
}

/** Returns the keys that a text may stand for that is none: of the agent with this name, or like it. */
async function guessKeys(lookup: SessionLookup): Promise<string[]> {
  const { ctx, viewer, wanted } = lookup;
  const agent = viewerScope(ctx, viewer).all ? findAgent(ctx.settings, wanted.toLowerCase()) : undefined;
  return agent === undefined
    ? suggestKeys(lookup, closeNames)
    : [mainKeyOf(agent.id, keyRulesOf(ctx.settings))];
}

type Refusal = Extract<Verdict, { allowed: false }>;

function unseen(wanted: string): Refusal {
  const error = `no session ${JSON.stringify(wanted)} is visible to you`;
  return { allowed: false, code: "not_visible", error, settings: [] };
}

/** Returns `session_not_found` only to a viewer who would have been allowed to see the session. */
async function missing(lookup: SessionLookup, verdict: Refusal | { allowed: true }): Promise<Failure> {
  if (!verdict.allowed) return refusal(lookup, verdict);
  const agents = lookup.ctx.settings.agents.map(({ id }) => id);
  const [, agentId] = /^agent:([^:]+):/i.exec(lookup.wanted) ?? [];
  const closest = await suggestKeys(lookup, closeNames);
  const error = `no session ${JSON.stringify(lookup.wanted)}`;
  const seesAll = viewerScope(lookup.ctx, lookup.viewer).all;
  if (seesAll && agentId !== undefined && !agents.includes(agentId.toLowerCase())) {
    const near = closest.length > 0 ? ` Closest: ${closest.join(", ")}.` : "";
    const hint = `Configured agents: ${agents.join(", ")}.${near}`;
    return fail("session_not_found", `${error}: no agent ${agentId}`, { hint, details: { closest, agents } });
  }
  return fail("session_not_found", error, {
    hint: closest.length > 0 ? `Closest: ${closest.join(", ")}.` : "sessions_list shows what you can see.",
    details: { closest },
  });
}

async function refusal(lookup: SessionLookup, verdict: Refusal): Promise<Failure> {
  if (verdict.code === "missing_scope") return fail(verdict.code, verdict.error);
  const closest = await suggestKeys(lookup, nearestNames);
  const hint =
    closest.length > 0
      ? `The closest sessions that you can see: ${closest.join(", ")}.`
      : "You can see no other session. sessions_list shows what you can use.";
  const settings = verdict.settings.length > 0 ? { settings: verdict.settings } : {};
  return fail(verdict.code, verdict.error, { hint, details: { closest, ...settings } });
}

/** Returns keys of visible sessions whose name or label `choose` selects, best first. */
async function suggestKeys(lookup: SessionLookup, choose: typeof nearestNames): Promise<string[]> {
  const { ctx, viewer, wanted } = lookup;
  const { rows } = await listSessions(ctx.db, { scope: viewerScope(ctx, viewer), limit: SUGGESTED_FROM_MAX });
  const gate = openGate(ctx, viewer);
  const keyOfName = new Map<string, string>();
  for (const row of rows) {
    if (!(await gate.admits("list", row))) continue;
    const shown = shownKey(ctx, viewer, row.key);
    // A uuid is close to every other uuid, and means nothing to the reader.
    const names = [UUID_AT_END.test(shown) ? undefined : nameInAgent(shown), row.label];
    for (const name of names) if (name !== undefined && !keyOfName.has(name)) keyOfName.set(name, shown);
  }
  const names = choose(nameInAgent(wanted.slice(0, KEY_CHARS_MAX)), [...keyOfName.keys()], SUGGESTED_MAX);
  return [...new Set(names.flatMap((name) => keyOfName.get(name) ?? []))];
}

/** Returns a key without its agent, which keys have in common, unless it is a main session. */
function nameInAgent(key: string): string {
  return key.endsWith(":main") ? key : key.replace(/^agent:[^:]+:/, "");
}
