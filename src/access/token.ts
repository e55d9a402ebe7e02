// Decides what a token covers: sessions that may have no row any more (for events, runs and deliveries),
// agents, and facts about the gateway. `core/rules/visibility` decides from token and key alone; a node has
// access to no session.

import { hasScope } from "../core/rules/scopes.ts";
import { type Access, decideAccess } from "../core/rules/visibility.ts";
import { agentIdInKey } from "../core/shapes/session-key.ts";
import type { AgentSettings, Settings, TokenScope } from "../core/shapes/settings/settings.ts";
import { mayMatchBeginning } from "../core/text/pattern.ts";
import { accessRulesOf, operatorViewer } from "./access.ts";

/** The rights of an authenticated caller. */
export interface TokenRights {
  readonly role: "operator" | "node";
  /** Includes the scopes that each scope implies. */
  readonly scopes: readonly TokenScope[];
  /** Session key patterns that the token covers; absent: every session. */
  readonly patterns?: readonly string[];
}

/** Cached decisions; the cache is cleared when it is full. */
const DECISIONS_MAX = 10_000;

/** Whether the caller's token covers a session. An answer stays valid for the life of a connection. */
export function createGate(
  settings: Settings,
  caller: TokenRights,
  access: Access,
): (sessionKey: string) => boolean {
  const decided = new Map<string, boolean>();
  const viewer = operatorViewer(caller.scopes, caller.patterns);
  const rules = accessRulesOf(settings);
  return (key) => {
    const known = decided.get(key);
    if (known !== undefined) return known;
    const target = { key, agentId: agentIdInKey(key) ?? "", archived: false, ancestors: [] };
    const allowed = caller.role === "operator" && decideAccess(access, viewer, target, rules).allowed;
    if (decided.size >= DECISIONS_MAX) decided.clear();
    decided.set(key, allowed);
    return allowed;
  };
}

/** Whether the caller may read totals over sessions of every key. */
export function seesEverything(caller: TokenRights): boolean {
  return caller.patterns === undefined && hasScope(caller.scopes, "operator.read");
}

/** Whether the caller's token covers a possible session of this agent. The session need not exist. */
export function coversAgent({ patterns }: Pick<TokenRights, "patterns">, agentId: string): boolean {
  return patterns === undefined || mayMatchBeginning(patterns, `agent:${agentId}:`);
}

/** Returns the agents of which the caller's token covers at least one possible session. */
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
