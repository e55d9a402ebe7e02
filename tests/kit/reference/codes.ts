// The codes that a method may fail with, as the reference says: tests hold what they see against it.

import type { MethodSpec } from "../../../src/contract/params/shapes.ts";
import { METHODS, type MethodName } from "../../../src/contract/params.ts";

/** Codes that any method may answer. */
export const EVERY_METHOD = [
  ...["invalid_argument", "unknown_argument", "unknown_method", "missing_scope", "idempotency_conflict"],
  ...["rate_limited", "shutting_down", "store_unavailable", "internal"],
];

/** Codes that the reference says a method may answer with. */
export function codesOf(method: MethodName): readonly string[] {
  const { fails = [], params }: MethodSpec = METHODS[method];
  const named = "agentId" in ((params as { properties?: object }).properties ?? {}) ? ["not_visible"] : [];
  return [...new Set([...EVERY_METHOD, ...fails, ...named])];
}
