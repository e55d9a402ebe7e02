// Detects a loss of data: a store that is behind its high-water mark has lost some.
// SL1: a killed process or a power failure alone is never reported as a loss.
// SL2: the comparison only reads, and it reads a limited amount.

import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { copiesIn } from "./check.ts";
import type { LogPlace, LogView } from "./log.ts";
import { claimsAnything, type Mark } from "./mark.ts";

/** Maximum number of rounds that the log may have begun since the mark was written. */
const ROUNDS_MAX = 1_000_000;

/** Returns the last row number that was used in each table whose numbers are never reused. */
export function numbersGiven(database: DatabaseSync): Mark["rows"] {
  const rows = database.prepare("select name, seq from sqlite_sequence").all();
  return Object.fromEntries(rows.map(({ name, seq }) => [String(name), Number(seq)]));
}

/** Parts of a log's position that identify its round and its length. The salts change with each new round. */
type Round = Pick<LogPlace, "salt" | "salt2" | "frames">;

/** Compares the current round of the log with the round in the mark. */
export function roundOf(marked: Round, found: Round | undefined): "same" | "later" | "unknown" {
  if (found === undefined) return "unknown";
  if (found.salt === marked.salt && found.salt2 === marked.salt2) return "same";
  const rounds = (found.salt - marked.salt) >>> 0;
  return rounds > 0 && rounds <= ROUNDS_MAX ? "later" : "unknown";
}

interface Opened {
  readonly file: string;
  /** Opened read-only. */
  readonly database: DatabaseSync;
  /** Schema version, or 0 if the database is empty. */
  readonly version: number;
  readonly view: LogView;
  readonly hasPage: boolean;
}

function lostOfLog({ rows, log }: Mark, { file, database, view, hasPage }: Opened): string | undefined {
  if (log === undefined) return undefined;
  const found = view.index();
  const round = roundOf(log, found);
  // SQLite begins a new round only after a checkpoint has written the whole log to the database.
  if (round === "later") return undefined;
  if (round === "same") {
    const frames = found?.frames ?? 0;
    if (frames >= log.frames) return undefined;
    return `its log ${file}-wal can be read up to page ${frames} of ${log.frames} only`;
  }
  // Another program may have checkpointed and removed the log.
  if (hasPage) return undefined;
  const given = numbersGiven(database);
  if (Object.entries(given).some(([name, seq]) => seq > (rows[name] ?? 0))) return undefined;
  return `its log ${file}-wal is missing or was replaced`;
}

function lostNumbers({ rows }: Mark, database: DatabaseSync): string | undefined {
  const given = numbersGiven(database);
  const behind = Object.entries(rows).filter(([name, seq]) => (given[name] ?? 0) < seq);
  if (behind.length === 0) return undefined;
  const words = behind.map(
    ([name, seq]) => `${name} ends at row ${given[name] ?? 0}, but had row ${seq} before`,
  );
  return words.join(", ");
}

/**
 * Describes the data that a store has lost since its high-water mark was written. Returns undefined if
 * nothing was lost. An empty database beside copies of transcripts has lost data, also without a mark.
 */
export function lostSinceMark(mark: Mark | undefined, opened: Opened): string | undefined {
  if (opened.version === 0) {
    const held = mark === undefined ? copiesIn(dirname(opened.file)).length > 0 : claimsAnything(mark);
    return held ? "nothing is left in it" : undefined;
  }
  return mark && (lostOfLog(mark, opened) ?? lostNumbers(mark, opened.database));
}
