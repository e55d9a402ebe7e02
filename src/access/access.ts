// Decides whether a viewer may access a session (I9). Reads the settings and, only if needed, relations from
// the store; `core/rules/visibility` contains the rules.

import { optional } from "../core/optional.ts";
import type { SpawnChain } from "../core/rules/sandbox-policy.ts";
import {
  type Access,
  type AccessRules,
  decideAccess,
  effectiveMode,
  identityOf,
  narrowingSettings,
  type Scope,
  type SessionIdentity,
  scopeOf,
  type Verdict,
  type Viewer,
} from "../core/rules/visibility.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Session } from "../core/shapes/session.ts";
import {
  agentIdInKey,
  canonicalKey,
  displayKey,
  formatKey,
  type KeyRules,
  peerInKey,
} from "../core/shapes/session-key.ts";
import {
  defaultAgent,
  findAgent,
  type Settings,
  type TokenScope,
  type VisibilityMode,
} from "../core/shapes/settings/settings.ts";
import { quoted } from "../core/text/cut.ts";
import { ancestorsOf, getSession } from "../store/queries/sessions/sessions.ts";
import type { Db } from "../store/sql.ts";

/** Stands for the id of any session in a key. */
export const ANY_UUID = "00000000-0000-4000-8000-000000000000";

export interface AccessContext {
  readonly db: Db;
  readonly settings: Settings;
}

export function keyRulesOf(settings: Settings): KeyRules {
  const { mainKey, scope } = settings.session;
  return { mainKey, scope, defaultAgentId: defaultAgent(settings).id };
}

export function accessRulesOf(settings: Settings): AccessRules {
  const { visibility, agentToAgent } = settings.tools;
  return { mode: visibility, agentToAgent, scope: settings.session.scope };
}

export function operatorViewer(
  scopes: readonly TokenScope[],
  patterns?: readonly string[],
): Extract<Viewer, { kind: "operator" }> {
  return { kind: "operator", scopes, ...optional({ patterns }) };
}

/** Returns whether a viewer may send to an agent's main session. */
export function maySpeakAs(settings: Settings, viewer: Viewer, agentId: string): boolean {
  const key = `agent:${agentId}:${settings.session.mainKey}`;
  const target = { key, agentId, archived: false, ancestors: [] };
  return decideAccess("send", viewer, target, accessRulesOf(settings)).allowed;
}

/** Returns whether the viewer's token covers sub-agents of this agent. An agent's own call needs no token. */
export function coversSubagents(
  ctx: Pick<AccessContext, "settings">,
  viewer: Viewer,
  access: Access,
  agentId: string,
): boolean {
  if (viewer.kind === "session") return true;
  const key = formatKey({ form: "subagent", agentId, id: ANY_UUID });
  return verdictOfKey(ctx, operatorViewer(viewer.scopes, viewer.patterns), access, key).allowed;
}

/** Returns the canonical key for a key that an operator wrote. `main` is the default agent's main session. */
export function operatorKey(settings: Settings, text: string): Result<string> {
  const rules = keyRulesOf(settings);
  return canonicalKey(text, { agentId: rules.defaultAgentId, bareNames: true }, rules);
}

/**
 * Converts a bare name to the key of a conversation with this agent. A complete key is returned unchanged.
 */
export function keyOfAgent(settings: Settings, text: string, agentId: string): string {
  const key = canonicalKey(
    text,
    { agentId: agentId.trim().toLowerCase(), bareNames: true },
    keyRulesOf(settings),
  );
  return key.ok ? key.value : text;
}

/** Returns the agent that a caller names, else the default agent. */
export function chosenAgent(settings: Settings, wanted: string | undefined): Result<string> {
  const id = wanted?.trim().toLowerCase() ?? defaultAgent(settings).id;
  if (findAgent(settings, id) !== undefined) return ok(id);
  const ids = settings.agents.map((agent) => agent.id).join(", ");
  return fail("agent_not_found", `there is no agent ${quoted(id, 64)}; configured: ${ids}`);
}

/** Returns the viewer for the first session of a spawn chain. */
export function sessionViewer(chain: SpawnChain, settings: Settings): Viewer {
  return { kind: "session", ...identityOf(chain, settings) };
}

/** Returns the session that the viewer is or acts as, if any. */
function identityIn(viewer: Viewer): SessionIdentity | undefined {
  return viewer.kind === "session" ? viewer : viewer.as;
}

/** Returns the agent that determines the meaning of `main` and of labels for this viewer. */
export function agentIn(viewer: Viewer): string | undefined {
  return identityIn(viewer)?.agentId ?? (viewer.kind === "operator" ? viewer.agentId : undefined);
}

/** Returns whether the viewer is an operator or client that does not act as a session. */
export function isPerson(viewer: Viewer): boolean {
  return viewer.kind === "operator" && agentIn(viewer) === undefined;
}

/** Returns a canonical key in the form that this viewer uses: an agent's own main session is `main`. */
export function shownKey(ctx: AccessContext, viewer: Viewer, key: string): string {
  return displayKey(key, agentIn(viewer), keyRulesOf(ctx.settings));
}

/** Returns a filter for queries that includes every session the viewer may see. Each row is still checked. */
export function viewerScope(ctx: AccessContext, viewer: Viewer): Scope {
  const agentIds = ctx.settings.agents.map((agent) => agent.id);
  return scopeOf(viewer, accessRulesOf(ctx.settings), agentIds);
}

/**
 * Returns the visibility setting for a viewer. For an operator that does not act as a session, only the token
 * counts.
 */
export function visibilityOf(ctx: AccessContext, viewer: Viewer): VisibilityMode {
  const identity = identityIn(viewer);
  return identity === undefined ? "all" : effectiveMode(identity, accessRulesOf(ctx.settings));
}

/** See `narrowingSettings`. */
export function narrowingFor(ctx: AccessContext, viewer: Viewer): string[] {
  return narrowingSettings(viewer, accessRulesOf(ctx.settings));
}

/**
 * Decides about access to many sessions during one request. Caches the relations between sessions that it
 * reads.
 */
export function openGate(ctx: AccessContext, viewer: Viewer) {
  const rules = accessRulesOf(ctx.settings);
  const chains = new Map<string, Promise<string[]>>();
  const decide = async (access: Access, session: Session): Promise<Verdict> => {
    const { key, agentId, spawnedBy } = session;
    const archived = session.archivedAt !== undefined;
    const near = spawnedBy === undefined ? [] : [spawnedBy];
    const verdict = decideAccess(access, viewer, { key, agentId, archived, ancestors: near }, rules);
    if (verdict.allowed || spawnedBy === undefined || identityIn(viewer) === undefined) return verdict;
    const above = chains.get(spawnedBy) ?? ancestorsOf(ctx.db, spawnedBy);
    chains.set(spawnedBy, above);
    const ancestors = [spawnedBy, ...(await above)];
    return decideAccess(access, viewer, { key, agentId, archived, ancestors }, rules);
  };
  const admits = async (access: Access, session: Session): Promise<boolean> =>
    (await decide(access, session)).allowed;
  return { decide, admits };
}

/** Checks access to one session. For lists use `openGate`. */
export function mayAccess(
  ctx: AccessContext,
  viewer: Viewer,
  access: Access,
  session: Session,
): Promise<boolean> {
  return openGate(ctx, viewer).admits(access, session);
}

/**
 * Decides about a key from viewer, key and settings only, so the answer is the same whether or not the
 * session exists.
 */
export function verdictOfKey(
  ctx: Pick<AccessContext, "settings">,
  viewer: Viewer,
  access: Access,
  key: string,
): Verdict {
  const target = { key, agentId: agentIdInKey(key) ?? "", archived: false, ancestors: [] };
  return decideAccess(access, viewer, target, accessRulesOf(ctx.settings));
}

/**
 * Returns a function that checks whether the viewer may see each of these sessions. To an agent, a session
 * that was deleted is not visible: its key alone does not tell whose sub-agent it was.
 */
export async function visibleAmong(
  ctx: AccessContext,
  viewer: Viewer,
  access: Access,
  keys: readonly string[],
): Promise<(key: string) => boolean> {
  const gate = openGate(ctx, viewer);
  const seen = new Set<string>();
  for (const key of new Set(keys)) {
    const session = await getSession(ctx.db, key);
    const byKey = identityIn(viewer) === undefined || peerInKey(key) !== undefined;
    const isSeen =
      session === undefined
        ? byKey && verdictOfKey(ctx, viewer, access, key).allowed
        : await gate.admits(access, session);
    if (isSeen) seen.add(key);
  }
  return (key) => seen.has(key);
}

/**
 * Returns a function that checks whether the viewer may read the name of a message's sender or recipient in
 * its receipt. Both may read both names, and an operator may read those of sessions that it sees. If the
 * viewer may read neither, the receipt is hidden from it.
 */
export async function partiesSeenIn(
  ctx: AccessContext,
  viewer: Viewer,
  parties: readonly string[],
): Promise<(key: string) => boolean> {
  const self = identityIn(viewer)?.key;
  if (self === undefined) return visibleAmong(ctx, viewer, "status", parties);
  const own = parties.filter((key) => key === self);
  const isParty = (await visibleAmong(ctx, viewer, "status", own))(self);
  if (!isParty || viewer.kind === "session") return () => isParty;
  const token = operatorViewer(viewer.scopes, viewer.patterns);
  return (key) => verdictOfKey(ctx, token, "status", key).allowed;
}
