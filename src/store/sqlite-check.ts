// Owns the look at a database's file before it is opened: what SQLite would take for an empty one, or for a
// whole one, and is not.
// SK1: a file that lost its content, or its end, is never taken for a new store: that would throw away what
//      is left of it. Reads only.

import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreProblem } from "./problems.ts";
import { claimsAnything, MARK_ENDING, readMark } from "./sqlite-mark.ts";

/** What every file of SQLite begins with, of at most one page. */
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_AT = 16;
const CHANGES_AT = 24;
const PAGES_AT = 28;
const PAGES_VALID_FOR_AT = 92;
/** The readable copy of a transcript, by the name that the mirror gives it. */
const COPY = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$/;

/** 0: it is not there. A directory, a pipe or a device in its place is refused: opening it could hang. */
export function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === false) throw new StoreProblem("not_a_file", path);
  return found?.size ?? 0;
}

/** The JSONL copies of transcripts in a directory, by name. */
export function copiesIn(dir: string): string[] {
  return readdirSync(dir).filter((name) => COPY.test(name));
}

/** How long the file is by its own header; 0: the header does not tell. Undefined: there is none. */
function bytesInHeader(file: string): number | undefined {
  const header = Buffer.alloc(HEADER_BYTES);
  const handle = openSync(file, "r");
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(handle);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return undefined;
  // 1 stands for what two bytes can't hold.
  const pageBytes = header.readUInt16BE(PAGE_BYTES_AT) === 1 ? 65_536 : header.readUInt16BE(PAGE_BYTES_AT);
  const isCurrent = header.readUInt32BE(CHANGES_AT) === header.readUInt32BE(PAGES_VALID_FOR_AT);
  return isCurrent ? pageBytes * header.readUInt32BE(PAGES_AT) : 0;
}

/**
 * Whether SQLite finds a store in the file together with its log; tried on a copy, so that neither changes.
 */
function isWholeInLog(file: string): boolean {
  const dir = mkdtempSync(join(tmpdir(), "parley-look-"));
  try {
    const copy = join(dir, "copy.sqlite");
    copyFileSync(file, copy);
    copyFileSync(`${file}-wal`, `${copy}-wal`);
    const database = new DatabaseSync(copy);
    try {
      return Number(database.prepare("select count(*) as n from sqlite_schema").get()?.n) > 0;
    } finally {
      database.close();
    }
  } catch {
    return false;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * Refuses a file that is damaged in a way that opening it would not tell. One that isn't there is a new
 * store. Returns whether the end of the file is missing, and may still be in the log.
 */
export function refuseDamagedFile(dir: string, file: string): boolean {
  const refuse = (detail: string): never => {
    throw new StoreProblem("corrupt", file, { detail });
  };
  const [size, logSize] = [sizeOf(file), sizeOf(`${file}-wal`)];
  sizeOf(`${file}-shm`);
  if (size === 0) {
    const mark = readMark(file);
    if (mark !== undefined && mark !== "damaged" && claimsAnything(mark)) {
      refuse(`it is empty or gone, but its ${MARK_ENDING} file says that it held data`);
    }
    // A log without its database would be thrown away by SQLite as soon as the database is made anew.
    if (logSize > 0) refuse("it is empty, but its -wal file holds data");
    if (copiesIn(dir).length > 0) {
      refuse("it is empty or gone, but copies of its transcripts, <session id>.jsonl, are beside it");
    }
    return false;
  }
  const whole = size < PAGE_BYTES_MIN ? undefined : bytesInHeader(file);
  if (whole === undefined) {
    // A loss of power may leave any page half written that is whole in the log, the first one too.
    if (logSize > 0 && isWholeInLog(file)) return false;
    return refuse(
      size < PAGE_BYTES_MIN ? `it has ${size} bytes, and no database is so short` : "it is no database",
    );
  }
  if (logSize === 0 && size < whole) refuse("its end is missing");
  return size < whole;
}
