// Decides which scopes a token has, and whether its rights are within those of another token. Each scope
// includes all less powerful ones.

import type { TokenScope } from "../shapes/settings/settings.ts";
import { matchesPattern } from "../text/pattern.ts";

/** All scopes, the most powerful first. */
export const SCOPES: readonly TokenScope[] = ["operator.admin", "operator.write", "operator.read"];

/**
 * Parts of `operator.admin` that a connection may request without the rest: pairing devices, and answering
 * permission requests. No token has them.
 */
const ADMIN_PARTS = ["operator.pairing", "operator.approvals"] as const;
export type AdminPart = (typeof ADMIN_PARTS)[number];

/** Returns the requested parts of `operator.admin`, if the token has that scope. */
export function adminParts(scopes: readonly string[], asked: readonly string[]): readonly AdminPart[] {
  return scopes.includes("operator.admin") ? ADMIN_PARTS.filter((part) => asked.includes(part)) : [];
}

/** Returns whether one of the token's scopes is the needed scope or includes it. */
export function hasScope(scopes: readonly string[], needed: TokenScope): boolean {
  return SCOPES.slice(0, SCOPES.indexOf(needed) + 1).some((scope) => scopes.includes(scope));
}

/** Returns whether a caller may answer permission requests. Only such callers see them without redaction. */
export function mayAnswerPermissions(caller: {
  readonly scopes: readonly string[];
  readonly parts?: readonly AdminPart[];
}): boolean {
  return hasScope(caller.scopes, "operator.admin") || caller.parts?.includes("operator.approvals") === true;
}

/** Returns these scopes and all that they include, the most powerful first. Drops unknown names. */
export function expandScopes(scopes: readonly string[]): readonly TokenScope[] {
  return SCOPES.filter((scope) => hasScope(scopes, scope));
}

export interface Rights {
  readonly scopes: readonly TokenScope[];
  /** Session key patterns. Absent: every session. */
  readonly patterns?: readonly string[];
}

/**
 * Returns whether one pattern of `outer` matches every key that `inner` matches. A `*` in `inner` stands for
 * any text, so only a `*` in `outer` can match it.
 */
function isCovered(inner: string, outer: readonly string[] | undefined): boolean {
  return outer === undefined || outer.some((pattern) => matchesPattern(pattern, inner));
}

/** Returns whether `inner` includes no right that `outer` lacks. */
export function isWithin(inner: Rights, outer: Rights): boolean {
  if (!inner.scopes.every((scope) => hasScope(outer.scopes, scope))) return false;
  if (inner.patterns === undefined) return outer.patterns === undefined;
  return inner.patterns.every((pattern) => isCovered(pattern, outer.patterns));
}

/** Returns the part of `rights` that `outer` includes. Drops a pattern that is covered only in part. */
export function limitedTo(rights: Rights, outer: Rights): Rights {
  const scopes = rights.scopes.filter((scope) => hasScope(outer.scopes, scope));
  if (rights.patterns === undefined) return { ...outer, scopes };
  return { scopes, patterns: rights.patterns.filter((pattern) => isCovered(pattern, outer.patterns)) };
}
