// Chooses the agent's permission option that matches the owner's decision.

import type { PermissionOption, RequestPermissionOutcome } from "@agentclientprotocol/sdk/unstable";
import type { PermissionAnswered, PermissionScope } from "../../core/shapes/permission.ts";

/** The scopes that the agent's options allow. With `always`, the agent's program remembers the answer. */
export function scopesOf(options: readonly PermissionOption[]): PermissionScope[] {
  return options.some(({ kind }) => kind === "allow_always") ? ["once", "always"] : ["once"];
}

/** Returns the agent's option for a decision. "Once" is preferred to "always", unless the scope is always. */
export function outcomeFor(
  { decision, scope }: Pick<PermissionAnswered, "decision" | "scope">,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  const kinds = decision === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  if (scope === "always") kinds.reverse();
  const found = kinds.flatMap((kind) => options.filter((option) => option.kind === kind))[0];
  return found === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: found.optionId };
}
