// Owns reading untrusted values as texts, numbers or objects.

import { isObject } from "../core/json.ts";
import { head } from "../core/text/cut.ts";

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** Returns a non-blank text, trimmed and cut; else undefined. */
export function textIn(value: unknown, charsMax = 4_096): string | undefined {
  if (typeof value !== "string") return undefined;
  const text = head(value.trim(), charsMax);
  return text === "" ? undefined : text;
}

/** Returns one line without control characters. */
export function lineIn(value: unknown, charsMax: number): string | undefined {
  if (typeof value !== "string") return undefined;
  return textIn(value.slice(0, 4 * charsMax).replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, " "), charsMax);
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Returns a whole number from 0. */
export function countIn(value: unknown): number | undefined {
  const number = numberIn(value);
  return number !== undefined && number >= 0 && number <= Number.MAX_SAFE_INTEGER
    ? Math.round(number)
    : undefined;
}

/** Returns a price; 0 if negative or not a number. */
export function priceIn(value: unknown): number {
  return Math.max(0, numberIn(value) ?? 0);
}

/** Returns a time in ms since 1970 from a number or a date text; never later than `now`. */
export function timeIn(value: unknown, now: number): number | undefined {
  const at = typeof value === "string" ? Date.parse(value) : numberIn(value);
  return at === undefined || Number.isNaN(at) || at <= 0 ? undefined : Math.min(Math.round(at), now);
}

/** Returns the texts of a list; empty for other values. */
export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((item) => textIn(item) ?? []) : [];
}
