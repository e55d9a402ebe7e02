// Reads values that the source stores in several forms.

import { fieldsOf, numberOf, trimmedOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { Route } from "../../core/shapes/route.ts";

const TEXT_CHARS_MAX = 4_096;

/**
 * Returns the value if it is a text that is not blank, trimmed and shortened to `charsMax`, else undefined.
 */
export function textIn(value: unknown, charsMax = TEXT_CHARS_MAX): string | undefined {
  return trimmedOf(value, charsMax);
}

/** Returns a text as one line without control characters, or undefined for other values. */
export function lineIn(value: unknown, charsMax: number): string | undefined {
  if (typeof value !== "string") return undefined;
  return textIn(value.slice(0, 4 * charsMax).replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, " "), charsMax);
}

/** Returns the value, rounded to a whole number, if it is a number of at least 0; else undefined. */
export function countIn(value: unknown): number | undefined {
  const number = numberOf(value);
  return number !== undefined && number >= 0 && number <= Number.MAX_SAFE_INTEGER
    ? Math.round(number)
    : undefined;
}

/** Returns the value if it is a price, or 0 if it is negative or not a number. */
export function priceIn(value: unknown): number {
  return Math.max(0, numberOf(value) ?? 0);
}

/** Returns the prices of a model, or the costs of a call. */
export function pricesIn(value: unknown) {
  const { input, output, cacheRead, cacheWrite } = fieldsOf(value);
  return {
    input: priceIn(input),
    output: priceIn(output),
    cacheRead: priceIn(cacheRead),
    cacheWrite: priceIn(cacheWrite),
  };
}

/** Returns the place of a chat on a channel, without the prefix that names the channel. */
export function routeIn(
  channel: string,
  to: string,
  accountId: string | undefined,
  threadId?: string,
): Route {
  return {
    channel,
    to: to.toLowerCase().startsWith(`${channel}:`) ? to.slice(channel.length + 1) : to,
    ...optional({ accountId: accountId === "default" ? undefined : accountId, threadId }),
  };
}

/** Converts a number or a date text to ms since 1970. A later time than `now` becomes `now`. */
export function timeIn(value: unknown, now: number): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : numberOf(value);
  return at === undefined || Number.isNaN(at) || at <= 0 ? undefined : Math.min(Math.round(at), now);
}

/** Returns the texts of a list, or an empty list for other values. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((item) => textIn(item) ?? []) : [];
}
