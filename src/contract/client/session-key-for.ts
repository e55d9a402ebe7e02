// Computes the key that events have for a session that a program names.

import { canonicalKey } from "../../core/shapes/session-key.ts";
import type { HelloOk } from "../protocol.ts";
import { GatewayError } from "./error.ts";

/** Returns the canonical key of `main` or any other spelling, as the gateway of this greeting writes it. */
export function sessionKeyFor(text: string, { snapshot }: HelloOk): string {
  const { defaultAgentId, mainKey, scope } = snapshot.sessionDefaults;
  const rules = { defaultAgentId, mainKey, scope: scope === "global" ? scope : "per-sender" } as const;
  const key = canonicalKey(text, { agentId: defaultAgentId, bareNames: true }, rules);
  if (key.ok) return key.value;
  const { code, error, hint, details } = key;
  throw new GatewayError("INVALID_REQUEST", error, { details: { ...details, code, hint } });
}
