// Detects a loss of data: compares an embedded store with its high-water mark and with the JSONL copies of
// its transcripts. A store that is behind either of them has lost data.
// SL1: neither a killed process nor a power loss makes a store fail this comparison.
// SL2: it only reads, and reads a bounded amount.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isObject, jsonOf } from "../../core/json.ts";
import { copiesIn } from "./check.ts";
import type { LogPlace, LogView } from "./log.ts";
import { claimsAnything, type Mark } from "./mark.ts";

/** Tables whose numbers are never reused; the mark holds their last numbers. */
const NUMBERED = ["messages", "deliveries", "ledger", "cron_runs", "inbound"];
/** Number of newest sessions whose copies are compared with the store after an unplanned stop. */
const COMPARED = 200;
const TAIL_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
/** Ids that can have a copy. */
const PLAIN_ID = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const EMPTY = "nothing is left in it";
/** Maximum number of rounds that a log may have begun since the mark was written. */
const ROUNDS_MAX = 1_000_000;

/** Returns the last number that each numbered table has used. */
export function numbersGiven(database: DatabaseSync): Mark["rows"] {
  const rows = database.prepare("select name, seq from sqlite_sequence").all();
  const numbers = rows.map(({ name, seq }): [string, number] => [String(name), Number(seq)]);
  return Object.fromEntries(numbers.filter(([name]) => NUMBERED.includes(name)));
}

/** The part of a log's position that the comparison needs. The salts change when a new round begins. */
type Round = Pick<LogPlace, "salt" | "salt2" | "frames">;

/** Compares the round of a log with the round of the mark. */
export function roundOf(marked: Round, found: Round | undefined): "same" | "later" | "unknown" {
  if (found === undefined) return "unknown";
  if (found.salt === marked.salt && found.salt2 === marked.salt2) return "same";
  const rounds = (found.salt - marked.salt) >>> 0;
  return rounds > 0 && rounds <= ROUNDS_MAX ? "later" : "unknown";
}

interface Opened {
  readonly file: string;
  /** Opened for reading only. */
  readonly database: DatabaseSync;
  /** Schema version; 0: the database is empty. */
  readonly version: number;
  readonly view: LogView;
  /** Whether the database file alone holds the last frame that the mark names. */
  readonly hasPage: boolean;
}

function lostOfLog({ rows, log }: Mark, { file, database, view, hasPage }: Opened): string | undefined {
  if (log === undefined) return undefined;
  const found = view.index();
  const round = roundOf(log, found);
  // SQLite begins the log again (a new round) only after a checkpoint has put all of it into the database.
  if (round === "later") return undefined;
  if (round === "same") {
    const frames = found?.frames ?? 0;
    if (frames >= log.frames) return undefined;
    return `its log ${file}-wal can be read up to page ${frames} of ${log.frames} only`;
  }
  // Another program may have checkpointed the log and removed it.
  if (hasPage) return undefined;
  const given = numbersGiven(database);
  if (Object.entries(given).some(([name, seq]) => seq > (rows[name] ?? 0))) return undefined;
  return `its log ${file}-wal is missing or was replaced`;
}

function lostNumbers({ rows }: Mark, database: DatabaseSync): string | undefined {
  const given = numbersGiven(database);
  const behind = Object.entries(rows).filter(([name, seq]) => (given[name] ?? 0) < seq);
  if (behind.length === 0) return undefined;
  const words = behind.map(([name, seq]) => `${name} ends at ${given[name] ?? 0} and was at ${seq}`);
  return words.join(", ");
}

/** Returns what a store has lost since its mark was written; undefined: nothing. */
export function lostSinceMark(mark: Mark, opened: Opened): string | undefined {
  if (opened.version === 0) return claimsAnything(mark) ? EMPTY : undefined;
  return lostOfLog(mark, opened) ?? lostNumbers(mark, opened.database);
}

/** Returns the id in the last whole line of a copy; undefined if there is none. */
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
    // Skips a longer line. The JSONL copy writer compares it later, and never cuts a copy that is ahead.
    if (end < 0 || (start < 0 && tail.length < size)) return undefined;
    const value = jsonOf(tail.subarray(start + 1, end));
    return isObject(value) && typeof value.id === "string" ? value.id : undefined;
  } finally {
    closeSync(handle);
  }
}

/** Returns which copies of the newest sessions end with a message that the store lacks. */
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
