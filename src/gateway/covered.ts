// Decides which facts about the gateway a token may learn: its agents, and the store's folder.

import { mayMatchBeginning } from "../core/pattern.ts";
import type { AgentSettings, Settings } from "../core/settings.ts";
import { hasScope } from "../core/visibility.ts";
import type { Caller } from "./auth.ts";

/** Whether the caller may know how much goes on in sessions of any key. */
export function seesEverything(caller: Caller): boolean {
  return caller.patterns === undefined && hasScope(caller.scopes, "operator.read");
}

/** Whether the caller's token covers a possible session of this agent, which need not exist. */
export function coversAgent({ patterns }: Caller, agentId: string): boolean {
  return patterns === undefined || mayMatchBeginning(patterns, `agent:${agentId}:`);
}

/** The agents of which the caller's token covers at least one possible session. */
export function agentsFor({ agents, session }: Settings, caller: Caller): readonly AgentSettings[] {
  const { patterns } = caller;
  if (patterns === undefined) return agents;
  return agents.filter(({ id, default: isDefault }) => {
    const isShared = session.scope === "global" && isDefault && mayMatchBeginning(patterns, "global");
    return isShared || coversAgent(caller, id);
  });
}

/** The folder of the store, for callers who see everything; others get an empty text. */
export function storePathFor({ store }: Settings, caller: Caller): string {
  return seesEverything(caller) ? store.dir : "";
}
