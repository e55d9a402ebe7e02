// Chooses the agent's permission option that matches the owner's decision.

import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk/unstable";
import type { PermissionDecision } from "../../core/shapes/permission.ts";

/** Returns the agent's option for a decision. "Once" is preferred to "always". */
export function outcomeFor(
  decision: PermissionDecision,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}
