// The visibility check (I9): decides whether a viewer may use a session, for every tool and interface.
// V1: the decision depends only on viewer, key, agent, ancestry and settings, so a refusal never reveals
//     whether a session exists. If the key does not contain the agent, the refusal does not name that agent.
// A wider mode never hides a session that a narrower mode shows: self ⊆ tree ⊆ agent ⊆ all. The sandbox
// limit can only reduce visibility.
// The session `unknown` is never visible. To agents, and to operators that act for an agent, `global` is
// visible only while it is the main session.
// A token covers a fork only if it also covers the session from which the fork was made, because the fork
// shows the messages of that session.
// A sub-agent sees its own tree. Beyond that it sees only sessions that both it and its requester may see
// (I13). If its requester was deleted, it sees only its own tree.

import { forkOrigins } from "../fork-key.ts";
import { optional } from "../optional.ts";
import { isPeerAgentId } from "../peer.ts";
import { agentIdInKey } from "../shapes/session-key.ts";
import {
  type AgentToAgentSettings,
  agentOf,
  type Settings,
  type TokenScope,
  type VisibilityMode,
} from "../shapes/settings/settings.ts";
import { matchesAny, matchesPattern } from "../text/pattern.ts";
import { isSandboxed, requesterOf, type SpawnChain } from "./sandbox-policy.ts";
import { hasScope } from "./scopes.ts";

/** Shown in place of the key of a session that the reader may not see. */
export const NOT_VISIBLE = "(not visible)";

export interface SessionIdentity {
  readonly key: string;
  readonly agentId: string;
  readonly sandboxed: boolean;
  /**
   * `sandbox.sessionToolsVisibility` of the session's agent. While the session is sandboxed, `spawned` lets
   * it see only its own tree.
   */
  readonly sandboxClamp: "spawned" | "all";
  /**
   * The session that spawned this one, as a viewer. "gone" if it was deleted. Absent if the session was not
   * spawned.
   */
  readonly requester?: SessionIdentity | "gone";
}

/** Returns the first session of a spawn chain as a viewer. */
export function identityOf(chain: SpawnChain, settings: Settings): SessionIdentity {
  const { key, agentId } = chain[0];
  const above = requesterOf(chain);
  const requester = above === undefined || above === "gone" ? above : identityOf(above, settings);
  return {
    key,
    agentId,
    sandboxed: isSandboxed(chain, settings),
    sandboxClamp: agentOf(settings, chain[0]).sandbox.sessionToolsVisibility,
    ...optional({ requester }),
  };
}

/**
 * A viewer is a session, to which the visibility rules apply, or an operator, who has the rights of a token.
 */
export type Viewer =
  | ({ readonly kind: "session" } & SessionIdentity)
  | {
      readonly kind: "operator";
      readonly scopes: readonly TokenScope[];
      /** Key patterns with `*` from the token. If absent, the token covers every session. */
      readonly patterns?: readonly string[];
      /** The session that the operator acts as. Both the operator and that session must be allowed. */
      readonly as?: SessionIdentity;
      /**
       * The agent that the operator acts for. `main` and labels refer to sessions of this agent. This field
       * changes no rights.
       */
      readonly agentId?: string;
    };

/**
 * The session to check. If no session has this key, `ancestors` is empty, and `agentId` is the agent in the
 * key, or "" if the key contains none.
 */
export interface Target {
  readonly key: string;
  readonly agentId: string;
  readonly archived: boolean;
  /** Keys of the ancestors, the nearest first. */
  readonly ancestors: readonly string[];
}

export interface AccessRules {
  readonly mode: VisibilityMode;
  readonly agentToAgent: AgentToAgentSettings;
  /** `session.scope`. With "global", the session `global` belongs to all agents. */
  readonly scope: "per-sender" | "global";
}

export type Access =
  | "list"
  | "read"
  | "search"
  | "send"
  | "spawn"
  | "status"
  | "events"
  | "deliveries"
  | "counts";

export type Verdict =
  | {
      readonly allowed: true;
      /** The deciding rule as a text, in which "it" is the viewer and "the session" is the target. */
      readonly rule: string;
    }
  | {
      readonly allowed: false;
      readonly code: "not_visible" | "agent_to_agent" | "missing_scope";
      readonly error: string;
      /** Settings, with values, that would allow the access. Empty if no setting would. */
      readonly settings: string[];
    };

type Refusal = Extract<Verdict, { allowed: false }>;

function allow(rule: string): Verdict {
  return { allowed: true, rule };
}

const SCOPE_NEEDED: Readonly<Record<Access, TokenScope>> = {
  list: "operator.read",
  read: "operator.read",
  search: "operator.read",
  status: "operator.read",
  events: "operator.read",
  counts: "operator.read",
  send: "operator.write",
  spawn: "operator.write",
  deliveries: "operator.admin",
};

/**
 * Decides whether `viewer` may perform this action on `target`. All code uses this function for that
 * decision.
 */
export function decideAccess(access: Access, viewer: Viewer, target: Target, rules: AccessRules): Verdict {
  if (target.key === "unknown") return refuse("not_visible", target, "no setting makes it visible", []);
  if (viewer.kind === "session") return decideForSession(viewer, target, rules);
  const needed = SCOPE_NEEDED[access];
  if (!hasScope(viewer.scopes, needed)) {
    return {
      allowed: false,
      code: "missing_scope",
      error: `this token lacks the scope ${needed}; gateway.auth.tokens[].scopes sets its scopes`,
      settings: [`gateway.auth.tokens[].scopes: ["${needed}"]`],
    };
  }
  if (viewer.patterns !== undefined && !coversKey(viewer.patterns, target.key)) {
    const setting = "gateway.auth.tokens[].sessions";
    return refuse("not_visible", target, `the token does not cover it: see ${setting}`, [setting]);
  }
  const speaks = viewer.agentId !== undefined && viewer.as === undefined;
  if (speaks && target.key === "global" && rules.scope !== "global") return refuseGlobal(target);
  return viewer.as === undefined
    ? allow(coverOf(viewer.patterns, target))
    : decideForSession(viewer.as, target, rules);
}

/** Returns whether patterns match a key and, for the key of a fork, also the keys of its origins. */
function coversKey(patterns: readonly string[], key: string): boolean {
  return [key, ...forkOrigins(key)].every((one) => matchesAny(patterns, one));
}

function coverOf(patterns: readonly string[] | undefined, { key }: Target): string {
  if (patterns === undefined) return "its operator token covers every session";
  const pattern = patterns.find((one) => matchesPattern(one, key));
  return `its operator token covers the session by the pattern ${JSON.stringify(pattern)}`;
}

function decideForSession(viewer: SessionIdentity, target: Target, rules: AccessRules): Verdict {
  if (target.archived) return refuse("not_visible", target, "agents do not see archived sessions", []);
  const own = decideAlone(viewer, target, rules);
  const requester = viewer.requester === "gone" ? undefined : viewer.requester;
  if (!own.allowed || requester === undefined || byTree(viewer, target, rules) !== undefined) return own;
  const above = decideForSession(requester, target, rules);
  if (above.allowed) return allow(`${own.rule}; and the session that spawned it sees it too: ${above.rule}`);
  // The target may be visible only because of its agent, which its key may not name. A refusal that used the
  // agent would reveal that the session exists. So refuse it like a missing session (V1).
  const blank = { ...target, agentId: agentIdInKey(target.key) ?? "", ancestors: [] };
  const unseen = decideAlone(viewer, blank, rules);
  if (!unseen.allowed) return unseen;
  const unseenAbove = decideForSession(requester, blank, rules);
  const { code, settings } = unseenAbove.allowed ? above : unseenAbove;
  const needed =
    settings.length === 0 ? "no setting would show it" : `it would need ${settings.join(" and ")}`;
  return refuse(code, target, `the session that spawned this one does not see it: ${needed}`, settings);
}

/** Explains why the target is in the viewer's tree. Returns undefined if the target is outside the tree. */
function byTree(viewer: SessionIdentity, target: Target, rules: AccessRules): string | undefined {
  if (target.key === viewer.key) return "it is its own session";
  if (effectiveMode(viewer, rules) === "self" || !target.ancestors.includes(viewer.key)) return undefined;
  const direct = target.ancestors[0] === viewer.key;
  const spawned = direct
    ? "it spawned the session"
    : "it is an ancestor of the session: one of its sub-agents spawned the session";
  return `${spawned} (${modeWords(rules)})`;
}

function modeWords({ mode }: AccessRules): string {
  return `tools.sessions.visibility is "${mode}"`;
}

/** Decides by the viewer's own settings, without those of its requester. */
function decideAlone(viewer: SessionIdentity, target: Target, rules: AccessRules): Verdict {
  const tree = byTree(viewer, target, rules);
  if (tree !== undefined) return allow(tree);
  const mode = effectiveMode(viewer, rules);
  if (target.key === "global" && rules.scope !== "global") {
    return refuseGlobal(target);
  }
  const ownAgent = target.agentId === viewer.agentId || target.key === "global";
  if (ownAgent && (mode === "agent" || mode === "all")) {
    const own = target.key === "global" ? 'with session.scope "global" it is every agent\'s' : "same agent";
    return allow(`${own}, and ${modeWords(rules)}`);
  }
  if (mode !== "all") return refuseByMode(viewer, target, rules);
  if (agentToAgentAdmits(rules.agentToAgent, viewer.agentId, target.agentId)) {
    return allow(`${modeWords(rules)}, and ${agentToAgentWords(rules.agentToAgent, viewer, target)}`);
  }
  const settings = agentToAgentSettings(viewer, target, rules.agentToAgent);
  return refuse("agent_to_agent", target, `it would need ${settings.join(" and ")}`, settings);
}

/**
 * Returns the mode that applies to this viewer. It is at most `tree` if the viewer is sandboxed or its
 * requester was deleted.
 */
export function effectiveMode(viewer: SessionIdentity, rules: AccessRules): VisibilityMode {
  const clamped = viewer.requester === "gone" || isClamped(viewer);
  return clamped && rules.mode !== "self" ? "tree" : rules.mode;
}

/** Returns whether the sandbox limits the viewer to its tree. */
export function isClamped(viewer: SessionIdentity): boolean {
  return viewer.sandboxed && viewer.sandboxClamp === "spawned";
}

/**
 * Returns the pattern of `tools.agentToAgent.allow` that admits an agent. An agent of a peer needs a pattern
 * that begins with `peer:`, so that `*` means the agents of this gateway only.
 */
function patternFor(allow: readonly string[], agentId: string): string | undefined {
  const ofPeers = isPeerAgentId(agentId);
  return allow.find((one) => isPeerAgentId(one) === ofPeers && matchesPattern(one, agentId));
}

function agentToAgentAdmits(rule: AgentToAgentSettings, ...agentIds: readonly string[]): boolean {
  if (!rule.enabled) return false;
  if (rule.allow.length === 0) return !agentIds.some(isPeerAgentId);
  return agentIds.every((agentId) => patternFor(rule.allow, agentId) !== undefined);
}

/**
 * Explains why the agent-to-agent settings allow both agents, by naming the pattern that matches each of
 * them.
 */
function agentToAgentWords({ allow }: AgentToAgentSettings, from: SessionIdentity, to: Target): string {
  if (allow.length === 0) return "tools.agentToAgent is enabled for all agents";
  const patterns = [from, to].map(({ agentId }) => patternFor(allow, agentId));
  const named = [...new Set(patterns)].map((pattern) => JSON.stringify(pattern)).join(" and ");
  return `tools.agentToAgent is enabled and its allow has ${named}`;
}

function refuse(code: Refusal["code"], target: Target, because: string, settings: string[]): Refusal {
  return { allowed: false, code, error: `session ${target.key} is not visible here: ${because}`, settings };
}

function refuseGlobal(target: Target): Refusal {
  const setting = 'session.scope: "global"';
  return refuse("not_visible", target, `it exists only with ${setting}`, [setting]);
}

/**
 * Returns the missing agent-to-agent settings. Names the target's agent only if the target's key contains it
 * (V1).
 */
function agentToAgentSettings(viewer: SessionIdentity, target: Target, rule: AgentToAgentSettings): string[] {
  const other = agentIdInKey(target.key);
  const settings: string[] = [];
  if (!rule.enabled) settings.push("tools.agentToAgent.enabled: true");
  const parties = [viewer.agentId, ...(other === undefined ? [] : [other])];
  if (rule.allow.length > 0 || parties.some(isPeerAgentId)) {
    const missing = parties.filter((agentId) => patternFor(rule.allow, agentId) === undefined);
    if (other === undefined) settings.push("tools.agentToAgent.allow with the agents of both sessions");
    else if (missing.length > 0) settings.push(`tools.agentToAgent.allow with ${JSON.stringify(missing)}`);
  }
  return settings;
}

function refuseByMode(viewer: SessionIdentity, target: Target, rules: AccessRules): Refusal {
  if (viewer.requester === "gone") {
    const because = "the session that spawned this one was deleted, so this session sees only its own tree";
    return refuse("not_visible", target, because, []);
  }
  const other = target.key === "global" ? viewer.agentId : agentIdInKey(target.key);
  const settings: string[] = [];
  const wanted = other === viewer.agentId ? "agent" : "all";
  const enough = rules.mode === "all" || (rules.mode === "agent" && wanted === "agent");
  if (!enough) settings.push(`tools.sessions.visibility: "${wanted}"`);
  if (wanted === "all") settings.push(...agentToAgentSettings(viewer, target, rules.agentToAgent));
  if (isClamped(viewer)) {
    settings.push('agents.defaults.sandbox.sessionToolsVisibility: "all"');
  }
  return refuse("not_visible", target, `it would need ${settings.join(" and ")}`, settings);
}

/**
 * A filter for queries. A row passes if it is `self`, in the tree of `treeOf`, or belongs to one of
 * `agentIds`. If `patterns` are given, one of them must match as well.
 */
export type Scope =
  | { readonly all: true }
  | {
      readonly all: false;
      readonly self?: string;
      readonly treeOf?: string;
      readonly agentIds?: readonly string[] | "any";
      /** True if the session `global` belongs to each of `agentIds`. */
      readonly sharesGlobal?: boolean;
      /** The filter of the requester, which rows that pass because of their agent must pass, too (I13). */
      readonly within?: Scope;
      readonly patterns?: readonly string[];
    };

/**
 * Returns a filter that includes every session that `viewer` may see, and possibly more. The caller must
 * still call `decideAccess` for each row. Other agents are limited to `knownAgentIds`, unless all agents are
 * allowed.
 */
export function scopeOf(viewer: Viewer, rules: AccessRules, knownAgentIds: readonly string[]): Scope {
  if (viewer.kind === "session") return sessionScope(viewer, rules, knownAgentIds);
  const patterns = viewer.patterns === undefined ? {} : { patterns: viewer.patterns };
  if (viewer.as !== undefined) return { ...sessionScope(viewer.as, rules, knownAgentIds), ...patterns };
  return viewer.patterns === undefined ? { all: true } : { all: false, agentIds: "any", ...patterns };
}

function sessionScope(
  viewer: SessionIdentity,
  rules: AccessRules,
  known: readonly string[],
): Extract<Scope, { all: false }> {
  const mode = effectiveMode(viewer, rules);
  if (mode === "self") return { all: false, self: viewer.key };
  const tree = { all: false, self: viewer.key, treeOf: viewer.key } as const;
  if (mode === "tree") return tree;
  const { requester } = viewer;
  const above = requester === "gone" ? undefined : requester;
  const own = {
    ...tree,
    ...optional({ within: above && sessionScope(above, rules, known) }),
    ...(rules.scope === "global" ? { sharesGlobal: true } : {}),
  };
  if (mode === "agent") return { ...own, agentIds: [viewer.agentId] };
  const { enabled, allow } = rules.agentToAgent;
  // Agents of peers are not among the known agents.
  if (enabled && (allow.length === 0 || allow.some((one) => one === "*" || isPeerAgentId(one))))
    return { ...own, agentIds: "any" };
  const admitted = known.filter((agentId) => agentToAgentAdmits(rules.agentToAgent, viewer.agentId, agentId));
  return { ...own, agentIds: [...new Set([viewer.agentId, ...admitted])] };
}

/**
 * Returns the settings that keep sessions from a viewer. Depends on settings only, so it does not reveal
 * whether there is a hidden session (V1).
 */
export function narrowingSettings(viewer: Viewer, rules: AccessRules): string[] {
  const identity = viewer.kind === "session" ? viewer : viewer.as;
  const token =
    viewer.kind === "operator" && viewer.patterns !== undefined ? ["gateway.auth.tokens[].sessions"] : [];
  return [...new Set([...token, ...(identity === undefined ? [] : narrowingOf(identity, rules))])];
}

function narrowingOf(viewer: SessionIdentity, rules: AccessRules): string[] {
  const { enabled, allow } = rules.agentToAgent;
  const settings: string[] = [];
  if (rules.mode !== "all") settings.push(`tools.sessions.visibility: "${rules.mode}"`);
  else if (!enabled || allow.length > 0) settings.push("tools.agentToAgent");
  if (isClamped(viewer)) settings.push("agents.defaults.sandbox.sessionToolsVisibility");
  const { requester } = viewer;
  return requester === undefined || requester === "gone"
    ? settings
    : [...settings, ...narrowingOf(requester, rules)];
}
