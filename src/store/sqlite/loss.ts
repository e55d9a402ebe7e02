// Detects a loss of data: a store that is behind its high-water mark has lost some.
// SL1: a killed process or a power failure alone is never reported as a loss.

import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { copiesIn } from "./check.ts";
import { claimsAnything, type Mark } from "./mark.ts";

/** Returns the numbers that only grow: of the last commit, and of the last row in each numbered table. */
export function numbersGiven(database: DatabaseSync): Mark["rows"] {
  const rows = database.prepare("select name, seq from sqlite_sequence").all();
  return Object.fromEntries(rows.map(({ name, seq }) => [String(name), Number(seq)]));
}

/**
 * Describes the data that a store has lost since its high-water mark was written. Returns undefined if
 * nothing was lost. An empty database beside copies of transcripts has lost data, also without a mark.
 * `version`: the schema version, or 0 if the database is empty.
 */
export function lostSinceMark(
  mark: Mark | undefined,
  file: string,
  database: DatabaseSync,
  version: number,
): string | undefined {
  if (version === 0) {
    const held = mark === undefined ? copiesIn(dirname(file)).length > 0 : claimsAnything(mark);
    return held ? "nothing is left in it" : undefined;
  }
  const given = numbersGiven(database);
  const behind = Object.entries(mark?.rows ?? {}).filter(([name, seq]) => (given[name] ?? 0) < seq);
  if (behind.length === 0) return undefined;
  const words = behind.map(
    ([name, seq]) => `${name} ends at row ${given[name] ?? 0}, but had row ${seq} before`,
  );
  return words.join(", ");
}
