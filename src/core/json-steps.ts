// Encodes plain data with long texts as JSON, in steps between which other work can run.

import { jsonWithin } from "./json.ts";
import type { Pace } from "./pace.ts";

/** Texts longer than this are encoded in pieces. */
const LONG_CHARS = 256 * 1024;
const PIECE_CHARS = 64 * 1024;

/**
 * Returns JSON that parses to the same value as the JSON of `JSON.stringify`. The text may differ, because a
 * surrogate pair that is split between two pieces is escaped.
 */
export async function jsonInSteps(value: object, pace: Pace): Promise<string> {
  const long = new Set(longTexts(value));
  if (long.size === 0) return JSON.stringify(value);
  const encoded = new Map<string, readonly string[]>();
  for (const text of long) {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; at += PIECE_CHARS) {
      pieces.push(jsonWithin(text.slice(at, at + PIECE_CHARS)));
      const rest = pace();
      if (rest !== undefined) await rest;
    }
    encoded.set(text, ['"', ...pieces, '"']);
  }
  return [...piecesOf(value, encoded)].join("");
}

function longTexts(value: unknown): string[] {
  if (typeof value === "string") return value.length > LONG_CHARS ? [value] : [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(longTexts) : [];
}

function* piecesOf(value: unknown, encoded: ReadonlyMap<string, readonly string[]>): Generator<string> {
  const known = typeof value === "string" ? encoded.get(value) : undefined;
  if (known !== undefined) yield* known;
  else if (typeof value !== "object" || value === null || longTexts(value).length === 0)
    yield JSON.stringify(value) ?? "null";
  else {
    const isList = Array.isArray(value);
    const fields = Object.entries(value).filter(([, field]) => isList || field !== undefined);
    yield isList ? "[" : "{";
    for (const [at, [name, field]] of fields.entries()) {
      if (at > 0) yield ",";
      if (!isList) yield `${JSON.stringify(name)}:`;
      yield* piecesOf(field, encoded);
    }
    yield isList ? "]" : "}";
  }
}
