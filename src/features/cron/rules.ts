// Owns the rule which sessions make scheduled jobs by the tool `cron`.

import { openToStrangers } from "../../core/rules/prompt/memory.ts";
import type { SpawnChain } from "../../core/rules/sandbox-policy.ts";
import { rootKeyOf } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";

/**
 * Returns why the agent of a session may not make jobs, or undefined if it may. Strangers must have no say in
 * it, because a job lasts, and runs as the session. Sub-agents end, and nobody gets the answers of a job's
 * own session.
 */
export function jobsDenied(chain: SpawnChain, settings: Settings): string | undefined {
  if (!settings.cron.enabled) return "cron.enabled is false";
  if (chain[0].spawnedBy !== undefined) return "a sub-agent makes no jobs, because its session ends";
  if (rootKeyOf(chain[0].key)?.form === "cron") return "the session of a scheduled job makes no other jobs";
  return openToStrangers(chain, settings);
}
