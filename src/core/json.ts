// Reads untrusted JSON. A value of the wrong kind counts as missing; nothing throws.

import { JSON_MARKS_MAX, JsonMeter } from "./meter.ts";
import { fail, ok, type Result } from "./shapes/errors.ts";
import { head } from "./text/cut.ts";

/** A JSON object with unknown content. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns whether a value is an object: neither null nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Formats a value as JSON with sorted property names, so that equal values give equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const given = Object.entries(value).filter(([, field]) => field !== undefined);
  const fields = given.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field)}`).join(",")}}`;
}

/** Returns a text as it stands in JSON, without the quotes. */
export function jsonWithin(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Returns the value if it is an object, otherwise an empty object. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** Returns the value if it is an object, otherwise undefined. */
export function objectOf(value: unknown): Fields | undefined {
  return isObject(value) ? value : undefined;
}

/** Returns the objects among the first `max` items of a list; ignores other items. */
export function objectsOf(value: unknown, max: number): readonly Fields[] {
  return listOf(value).slice(0, max).filter(isObject);
}

/** Returns the value if it is a list, otherwise an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the value if it is a non-empty text, otherwise undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/**
 * Returns the trimmed text, cut to `charsMax` characters. Returns undefined if the value is not a text or is
 * blank.
 */
export function trimmedOf(value: unknown, charsMax: number): string | undefined {
  return typeof value === "string" ? textOf(head(value.trim(), charsMax)) : undefined;
}

/** Returns the value if it is a finite number, otherwise undefined. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Returns the value if it is a safe integer, otherwise undefined. */
export function integerOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

/** Returns the value if it is a safe integer of at least 0, otherwise undefined. */
export function countOf(value: unknown): number | undefined {
  const count = integerOf(value);
  return count !== undefined && count >= 0 ? count : undefined;
}

/**
 * Parses JSON from outside. Returns undefined if the text is not valid JSON. Refuses a text whose parsing
 * would block other work; a shorter one cannot.
 */
export function readJson(text: string | Uint8Array): Result<unknown> {
  if (text.length > JSON_MARKS_MAX) {
    const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
    const problem = new JsonMeter("body").add(bytes);
    if (problem !== undefined) return fail("too_large", problem);
  }
  return ok(ownJson(text));
}

/** Parses JSON from outside. Returns undefined if the text is not valid JSON, or has too many values. */
export function jsonOf(text: string | Uint8Array): unknown {
  const read = readJson(text);
  return read.ok ? read.value : undefined;
}

/** Parses JSON that a gateway has written, of any size. Returns undefined if the text is not valid JSON. */
export function ownJson(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : new TextDecoder().decode(text));
  } catch {
    return undefined;
  }
}
