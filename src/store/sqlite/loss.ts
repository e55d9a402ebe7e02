// Detects a loss of data. A store is compared with its high-water mark and with the JSONL copies of its
// transcripts. If it is behind either of them, it has lost data.
// SL1: a killed process or a power failure alone is never reported as a loss.
// SL2: the comparison only reads, and it reads a limited amount.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isObject, jsonOf } from "../../core/json.ts";
import { copiesIn } from "./check.ts";
import type { LogPlace, LogView } from "./log.ts";
import { claimsAnything, type Mark } from "./mark.ts";

/** Tables whose row numbers are never reused. The mark contains their last numbers. */
const NUMBERED = ["messages", "deliveries", "ledger", "cron_runs", "inbound"];
/** Number of newest sessions whose copies are compared with the store after an unplanned stop. */
const COMPARED = 200;
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
/** Session ids that are safe file names, and can therefore have a copy. */
const PLAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const EMPTY = "nothing is left in it";
/** Maximum number of rounds that the log may have begun since the mark was written. */
const ROUNDS_MAX = 1_000_000;

/** Returns the last row number that was used in each table of `NUMBERED`. */
export function numbersGiven(database: DatabaseSync): Mark["rows"] {
  const rows = database.prepare("select name, seq from sqlite_sequence").all();
  const numbers = rows.map(({ name, seq }): [string, number] => [String(name), Number(seq)]);
  return Object.fromEntries(numbers.filter(([name]) => NUMBERED.includes(name)));
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
  /** Whether the database file itself contains the last frame of the log that the mark names. */
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
 * nothing was lost.
 */
export function lostSinceMark(mark: Mark, opened: Opened): string | undefined {
  if (opened.version === 0) return claimsAnything(mark) ? EMPTY : undefined;
  return lostOfLog(mark, opened) ?? lostNumbers(mark, opened.database);
}

/** Returns the id in the last complete line of a copy, or undefined if there is none. */
function lastIdIn(file: string): string | undefined {
  let handle: number;
  try {
    handle = openSync(file, "r");
  } catch {
    return undefined;
  }
  try {
    const { size } = fstatSync(handle);
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(handle, tail, 0, tail.length, size - tail.length);
    const end = tail.lastIndexOf(NEWLINE);
    const start = end <= 0 ? -1 : tail.lastIndexOf(NEWLINE, end - 1);
    // The last line is longer than the part that was read. It is not checked here: the writer of the copies
    // compares it later, and keeps a copy with messages that the store lacks.
    if (end < 0 || (start < 0 && tail.length < size)) return undefined;
    const value = jsonOf(tail.subarray(start + 1, end));
    return isObject(value) && typeof value.id === "string" ? value.id : undefined;
  } finally {
    closeSync(handle);
  }
}

/**
 * Describes the copies, among those of the newest sessions, that end with a message that the store lacks.
 * Returns undefined if there are none.
 */
export function lostSinceCopies(
  { database, version }: Pick<Opened, "database" | "version">,
  dir: string,
): string | undefined {
  if (version === 0) return copiesIn(dir).length > 0 ? EMPTY : undefined;
  const newest = database
    .prepare("select session_id from sessions where archived = 0 order by updated_at desc, key desc limit ?")
    .all(COMPARED)
    .map(({ session_id }) => String(session_id))
    .filter((id) => PLAIN_ID.test(id));
  const known = database.prepare("select 1 from messages where id = ?");
  const ahead = newest.filter((sessionId) => {
    const id = lastIdIn(join(dir, `${sessionId}.jsonl`));
    return id !== undefined && id !== sessionId && known.get(id) === undefined;
  });
  const [first] = ahead;
  if (first === undefined) return undefined;
  const others = ahead.length === 1 ? "" : ` and ${ahead.length - 1} more`;
  return `the copy ${first}.jsonl${others} holds messages that it does not have`;
}
