// Decides which scopes a token has: each includes the smaller ones.

import type { TokenScope } from "../shapes/settings/settings.ts";

/** All scopes, from most to least. */
export const SCOPES: readonly TokenScope[] = ["operator.admin", "operator.write", "operator.read"];

/** Returns whether one of the token's scopes is, or includes, the needed one. */
export function hasScope(scopes: readonly string[], needed: TokenScope): boolean {
  return SCOPES.slice(0, SCOPES.indexOf(needed) + 1).some((scope) => scopes.includes(scope));
}

/** Returns the scopes and all that they include, most first. Unknown names are left out. */
export function expandScopes(scopes: readonly string[]): readonly TokenScope[] {
  return SCOPES.filter((scope) => hasScope(scopes, scope));
}
