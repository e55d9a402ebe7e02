// The engine's settings, which always come from the newest settings.

import type { Pool } from "../core/rules/pools.ts";
import type { Run } from "../core/shapes/run.ts";
import { isSubagentKey } from "../core/shapes/session-key.ts";
import { liveView } from "../core/shapes/settings/live.ts";
import { dailyBudgets, type Settings } from "../core/shapes/settings/settings.ts";

/** Name of the pool of execution slots for sub-agents, whose runs have a separate limit. */
const SUBAGENT_POOL = "subagents";

/** Absent limits must be present as properties, because a change may add them. */
const NO_LIMITS = { maxChainTokens: undefined, maxChainCost: undefined };

export function engineSettings(settings: Settings) {
  return liveView(settings, ({ session, maxConcurrent, subagents, agents }) => ({
    queueMax: session.queueMax,
    ...(NO_LIMITS as object),
    ...session.agentToAgent,
    dailyBudgets: dailyBudgets({ agents }),
    maxConcurrent,
    pools: { [SUBAGENT_POOL]: subagents.maxConcurrent },
  }));
}

/** Returns the pool of slots in which a run executes. */
export function slotPoolOf({ sessionKey }: Pick<Run, "sessionKey">): Pool {
  return isSubagentKey(sessionKey) ? SUBAGENT_POOL : undefined;
}
