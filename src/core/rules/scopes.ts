// Decides which scopes a token has. Each scope includes the smaller ones.

import type { TokenScope } from "../shapes/settings/settings.ts";

/** All scopes, the most powerful first. */
export const SCOPES: readonly TokenScope[] = ["operator.admin", "operator.write", "operator.read"];

/** Returns whether one of the token's scopes is the needed scope or includes it. */
export function hasScope(scopes: readonly string[], needed: TokenScope): boolean {
  return SCOPES.slice(0, SCOPES.indexOf(needed) + 1).some((scope) => scopes.includes(scope));
}

/** Returns these scopes and all that they include, the most powerful first. Drops unknown names. */
export function expandScopes(scopes: readonly string[]): readonly TokenScope[] {
  return SCOPES.filter((scope) => hasScope(scopes, scope));
}
