// Describes the rights of tokens in words.

import { SCOPES } from "../../../../src/core/rules/scopes.ts";
import type { TokenScope } from "../../../../src/core/shapes/settings/settings.ts";

const WORDS: Readonly<Record<TokenScope, string>> = {
  "operator.read": "Reads",
  "operator.write": "Reads and sends messages",
  "operator.admin": "Administers",
};

/** Returns the most powerful of the scopes, which includes the others. */
export function highest(scopes: readonly TokenScope[]): TokenScope | undefined {
  return SCOPES.find((scope) => scopes.includes(scope));
}

export function scopeWords(scopes: readonly TokenScope[]): string {
  const scope = highest(scopes);
  return scope === undefined ? "No rights" : WORDS[scope];
}

/** Returns the choices of scopes that include at most this scope, least powerful first. */
export function scopeOptions(most: TokenScope): (readonly [TokenScope, string])[] {
  const allowed = SCOPES.slice(SCOPES.indexOf(most)).toReversed();
  return allowed.map((scope) => [scope, `${WORDS[scope]} (${scope})`] as const);
}

/** Splits typed text into patterns of session keys. */
export function patternsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((one) => one !== "");
}
