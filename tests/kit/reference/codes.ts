// The error codes that the reference lists for a method. Tests compare them with the codes that a gateway
// returns.

import { type MethodName, methodOf } from "../../../src/contract/methods.ts";

/** Codes that any method may return. */
export const EVERY_METHOD = [
  ...["invalid_argument", "unknown_argument", "unknown_method", "missing_scope", "idempotency_conflict"],
  ...["rate_limited", "shutting_down", "store_unavailable", "internal"],
];

/** Returns the error codes that the reference lists for a method. */
export function codesOf(method: MethodName): readonly string[] {
  const { errors = [], params } = methodOf(method);
  const named = "agentId" in params.properties ? ["not_visible"] : [];
  return [...new Set([...EVERY_METHOD, ...errors, ...named])];
}
