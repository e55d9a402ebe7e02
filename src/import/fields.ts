// Owns how a value of foreign make is looked at: as a text, a number or an object, or as nothing.

import { isObject } from "../core/json.ts";

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** A text that is not blank, trimmed and cut; anything else is none. */
export function textIn(value: unknown, charsMax = 4_096): string | undefined {
  if (typeof value !== "string") return undefined;
  const text = value.trim().slice(0, charsMax).toWellFormed();
  return text === "" ? undefined : text;
}

/** One line without control characters. */
export function lineIn(value: unknown, charsMax: number): string | undefined {
  if (typeof value !== "string") return undefined;
  return textIn(value.slice(0, 4 * charsMax).replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, " "), charsMax);
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** A count: a whole number that is not negative. */
export function countIn(value: unknown): number | undefined {
  const number = numberIn(value);
  return number !== undefined && number >= 0 && number <= Number.MAX_SAFE_INTEGER
    ? Math.round(number)
    : undefined;
}

/** A price: what is negative or no number is none. */
export function priceIn(value: unknown): number {
  return Math.max(0, numberIn(value) ?? 0);
}

/** A moment, in ms since 1970: a number, or a date as text; never later than `now`. */
export function timeIn(value: unknown, now: number): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : numberIn(value);
  return at === undefined || Number.isNaN(at) || at <= 0 ? undefined : Math.min(Math.round(at), now);
}

/** The texts of a list; of anything else, none. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((item) => textIn(item) ?? []) : [];
}
