// Chooses the agent's permission option that matches the owner's decision.
// An option that the program remembers is never chosen to allow something: it may cover much more than the
// request ("touch *"), and Parley could neither list nor undo it.

import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk/unstable";
import type { PermissionDecision } from "../../../core/shapes/permission.ts";

/** Returns the agent's option for a decision. */
export function outcomeFor(
  decision: PermissionDecision,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once"] : ["reject_once", "reject_always"];
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}
