// Checks access to sessions that may have no row any more: for events, runs and deliveries.
// `core/visibility` decides from caller and key alone; a node has access to no session.

import { accessRulesOf, operatorViewer } from "../access/access.ts";
import { type Access, decideAccess } from "../core/rules/visibility.ts";
import { agentIdInKey } from "../core/shapes/session-key.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { Caller } from "./auth.ts";

/** Cached decisions; the cache is cleared when it is full. */
const DECISIONS_MAX = 10_000;

/** Whether the caller's token covers a session. An answer stays valid for the life of a connection. */
export function createGate(
  settings: Settings,
  caller: Caller,
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
