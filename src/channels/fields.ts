// Owns how what a platform says is looked into: nothing of it is believed to have a shape.

import { isObject } from "../core/json.ts";

/** An object of JSON, whatever it holds. */
export type Fields = Readonly<Record<string, unknown>>;

/** The object that a value is; undefined if it is none. */
export function objectOf(value: unknown): Fields | undefined {
  return isObject(value) ? value : undefined;
}

/** The objects of a list, of which so much is looked at; what else is in it is as if it were not there. */
export function objectsOf(value: unknown, max: number): readonly Fields[] {
  return Array.isArray(value) ? value.slice(0, max).filter(isObject) : [];
}

/** The parts of a list; none if it is none. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A whole number from 0 that JSON could carry without loss. */
export function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
