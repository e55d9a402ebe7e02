// Owns reading untrusted JSON from a platform.

import { isObject } from "../core/json.ts";

/** A JSON object with unknown content. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value if it is an object, else undefined. */
export function objectOf(value: unknown): Fields | undefined {
  return isObject(value) ? value : undefined;
}

/** Returns the objects among the first `max` items of a list; ignores other items. */
export function objectsOf(value: unknown, max: number): readonly Fields[] {
  return Array.isArray(value) ? value.slice(0, max).filter(isObject) : [];
}

/** Returns the items of a list; empty if it is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the value if it is a non-empty string. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the value if it is a safe integer from 0. */
export function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
