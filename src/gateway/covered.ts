// Decides which facts about the gateway a token may read: its agents, and the store's folder.

import { hasScope } from "../core/rules/visibility.ts";
import type { AgentSettings, Settings } from "../core/shapes/settings/settings.ts";
import { mayMatchBeginning } from "../core/text/pattern.ts";
import type { Caller } from "./auth.ts";

/** Whether the caller may read totals over sessions of every key. */
export function seesEverything(caller: Caller): boolean {
  return caller.patterns === undefined && hasScope(caller.scopes, "operator.read");
}

/** Whether the caller's token covers a possible session of this agent. The session need not exist. */
export function coversAgent({ patterns }: Caller, agentId: string): boolean {
  return patterns === undefined || mayMatchBeginning(patterns, `agent:${agentId}:`);
}

/** Returns the agents of which the caller's token covers at least one possible session. */
export function agentsFor({ agents, session }: Settings, caller: Caller): readonly AgentSettings[] {
  const { patterns } = caller;
  if (patterns === undefined) return agents;
  return agents.filter(({ id, default: isDefault }) => {
    const isShared = session.scope === "global" && isDefault && mayMatchBeginning(patterns, "global");
    return isShared || coversAgent(caller, id);
  });
}

/** Returns the store's folder to callers who see everything; an empty text to others. */
export function storePathFor({ store }: Settings, caller: Caller): string {
  return seesEverything(caller) ? store.dir : "";
}
