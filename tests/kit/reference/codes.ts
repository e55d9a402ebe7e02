// The codes that a method may fail with, as the reference says: tests hold what they see against it.

import { type MethodName, methodOf } from "../../../src/contract/methods.ts";

/** Codes that any method may answer. */
export const EVERY_METHOD = [
  ...["invalid_argument", "unknown_argument", "unknown_method", "missing_scope", "idempotency_conflict"],
  ...["rate_limited", "shutting_down", "store_unavailable", "internal"],
];

/** Codes that the reference says a method may answer with. */
export function codesOf(method: MethodName): readonly string[] {
  const { errors = [], params } = methodOf(method);
  const named = "agentId" in params.properties ? ["not_visible"] : [];
  return [...new Set([...EVERY_METHOD, ...errors, ...named])];
}
