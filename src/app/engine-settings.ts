// The engine's settings, which always come from the newest settings.

import { labelOfSession } from "../core/rules/labels/labels.ts";
import type { Session } from "../core/shapes/session.ts";
import { liveView } from "../core/shapes/settings/live.ts";
import { dailyBudgets, type Settings } from "../core/shapes/settings/settings.ts";

/** Absent limits must be present as properties, because a change may add them. */
const NO_LIMITS = { maxChainTokens: undefined, maxChainCost: undefined };

export function engineSettings(settings: Settings) {
  return liveView(settings, ({ session, maxConcurrent, subagents, agents }) => ({
    labelOfSession: (one: Session) => labelOfSession(settings, one),
    queueMax: session.queueMax,
    ...(NO_LIMITS as object),
    ...session.agentToAgent,
    dailyBudgets: dailyBudgets({ agents }),
    maxConcurrent,
    maxSubagents: subagents.maxConcurrent,
  }));
}
