// Checks a database file before it is opened. SQLite opens an emptied file as a new database and may not
// notice a missing end; a store that lost its content or its end is refused, because a new store would
// overwrite the rest of it. Reads only.

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
import { StoreProblem } from "../problems.ts";
import { claimsAnything, MARK_ENDING, readMark } from "./mark.ts";

/** Bytes of the header of each SQLite file, and the size of its smallest page. */
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_AT = 16;
const CHANGES_AT = 24;
const PAGES_AT = 28;
const PAGES_VALID_FOR_AT = 92;
/** Matches the file name of a transcript's JSONL copy. */
const COPY = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$/;

/**
 * Bytes of a file; 0 if it does not exist. Refuses a directory, a pipe or a device: opening it could hang.
 */
export function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === false) throw new StoreProblem("not_a_file", path);
  return found?.size ?? 0;
}

/** The JSONL copies of transcripts in a directory, by name. */
export function copiesIn(dir: string): string[] {
  return readdirSync(dir).filter((name) => COPY.test(name));
}

/** File size according to its own header; 0: the header does not say. Undefined: there is no header. */
function bytesInHeader(file: string): number | undefined {
  const header = Buffer.alloc(HEADER_BYTES);
  const handle = openSync(file, "r");
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(handle);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return undefined;
  // Two bytes cannot hold 65,536: the header has 1 instead.
  const pageBytes = header.readUInt16BE(PAGE_BYTES_AT) === 1 ? 65_536 : header.readUInt16BE(PAGE_BYTES_AT);
  const isCurrent = header.readUInt32BE(CHANGES_AT) === header.readUInt32BE(PAGES_VALID_FOR_AT);
  return isCurrent ? pageBytes * header.readUInt32BE(PAGES_AT) : 0;
}

/**
 * Whether SQLite finds a whole store in the file and its log. Tries it on a copy, so that neither changes.
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
 * Refuses a damaged file that SQLite would open without an error. A missing file is a new store.
 * Returns whether the end of the file is missing and may still be in the log.
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
    // When SQLite creates the database again, it deletes the -wal file that was left.
    if (logSize > 0) refuse("it is empty, but its -wal file holds data");
    if (copiesIn(dir).length > 0) {
      refuse("it is empty or gone, but copies of its transcripts, <session id>.jsonl, are beside it");
    }
    return false;
  }
  const whole = size < PAGE_BYTES_MIN ? undefined : bytesInHeader(file);
  if (whole === undefined) {
    // A power loss may leave any page half written, also the first one, if the log has all of it.
    if (logSize > 0 && isWholeInLog(file)) return false;
    return refuse(
      size < PAGE_BYTES_MIN ? `it has ${size} bytes, and no database is so short` : "it is no database",
    );
  }
  if (logSize === 0 && size < whole) refuse("its end is missing");
  return size < whole;
}
