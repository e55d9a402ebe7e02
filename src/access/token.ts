// Decides which sessions, agents and data of the gateway a token covers. Uses only the token and the session
// key (`core/rules/visibility`), because the session of an event, run or delivery may already be deleted. A
// node has access to no session.

import { hasScope } from "../core/rules/scopes.ts";
import { type Access, decideAccess } from "../core/rules/visibility.ts";
import { agentIdInKey } from "../core/shapes/session-key.ts";
import type { AgentSettings, Settings, TokenScope } from "../core/shapes/settings/settings.ts";
import { mayMatchBeginning } from "../core/text/pattern.ts";
import { accessRulesOf, operatorViewer } from "./access.ts";

export interface TokenRights {
  readonly role: "operator" | "node";
  /** Includes the scopes that each scope implies. */
  readonly scopes: readonly TokenScope[];
  /** Session key patterns that the token covers. Absent if it covers every session. */
  readonly patterns?: readonly string[];
}

/**
 * Returns a function that checks whether the caller's token covers a session. Its answers stay valid for the
 * life of a connection.
 */
export function createGate(
  settings: Settings,
  caller: TokenRights,
  access: Access,
): (sessionKey: string) => boolean {
  const viewer = operatorViewer(caller.scopes, caller.patterns);
  const rules = accessRulesOf(settings);
  return (key) => {
    const target = { key, agentId: agentIdInKey(key) ?? "", archived: false, ancestors: [] };
    return caller.role === "operator" && decideAccess(access, viewer, target, rules).allowed;
  };
}

/** Returns whether the caller may read totals over all sessions. */
export function seesEverything(caller: TokenRights): boolean {
  return caller.patterns === undefined && hasScope(caller.scopes, "operator.read");
}

/** Returns whether the caller's token covers any possible session of this agent, existing or not. */
export function coversAgent({ patterns }: Pick<TokenRights, "patterns">, agentId: string): boolean {
  return patterns === undefined || mayMatchBeginning(patterns, `agent:${agentId}:`);
}

/** Returns the agents with at least one possible session that the caller's token covers. */
export function agentsFor({ agents, session }: Settings, caller: TokenRights): readonly AgentSettings[] {
  const { patterns } = caller;
  if (patterns === undefined) return agents;
  return agents.filter(({ id, default: isDefault }) => {
    const isShared = session.scope === "global" && isDefault && mayMatchBeginning(patterns, "global");
    return isShared || coversAgent(caller, id);
  });
}

/** Returns the store's folder to callers who see everything; an empty text to others. */
export function storePathFor({ store }: Settings, caller: TokenRights): string {
  return seesEverything(caller) ? store.dir : "";
}
