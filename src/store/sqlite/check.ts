// Checks a database file before SQLite opens it. SQLite would treat an emptied file as a new database, and
// may not notice that the end of a file is missing. Such a file is refused, because a new store in its place
// would destroy the remaining data. The checks only read.

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

/** Size of the header of an SQLite file, in bytes. */
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
/** Smallest possible size of a page, in bytes. */
const PAGE_BYTES_MIN = 512;
const PAGE_BYTES_AT = 16;
const CHANGES_AT = 24;
const PAGES_AT = 28;
const PAGES_VALID_FOR_AT = 92;
/** Matches the file name of a transcript's JSONL copy. */
const COPY = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$/;

/**
 * Returns the size of a file in bytes, or 0 if it does not exist. Throws for a directory, a pipe or a device,
 * because opening one could block forever.
 */
export function sizeOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === false) throw new StoreProblem("not_a_file", path);
  return found?.size ?? 0;
}

/** Returns the names of the JSONL copies of transcripts in a directory. */
export function copiesIn(dir: string): string[] {
  return readdirSync(dir).filter((name) => COPY.test(name));
}

/**
 * Returns the file size according to the file's own header. Returns 0 if the size in the header is outdated,
 * and undefined if there is no header.
 */
export function bytesInHeader(file: string): number | undefined {
  const header = Buffer.alloc(HEADER_BYTES);
  const handle = openSync(file, "r");
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(handle);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return undefined;
  // 65,536 does not fit into two bytes, so the header contains 1 instead.
  const pageBytes = header.readUInt16BE(PAGE_BYTES_AT) === 1 ? 65_536 : header.readUInt16BE(PAGE_BYTES_AT);
  const isCurrent = header.readUInt32BE(CHANGES_AT) === header.readUInt32BE(PAGES_VALID_FOR_AT);
  return isCurrent ? pageBytes * header.readUInt32BE(PAGES_AT) : 0;
}

/**
 * Returns whether SQLite can read a database from the file and its log together. Opens copies of both, so
 * that neither of them changes.
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
 * Throws if the file is damaged, or if it is empty or missing although other files show that it held data.
 * Returns true if the end of the file is missing but may still be in the log.
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
    // If SQLite created the database again, it would delete this -wal file.
    if (logSize > 0) refuse("it is empty, but its -wal file holds data");
    if (copiesIn(dir).length > 0) {
      refuse("it is empty or gone, but copies of its transcripts, <session id>.jsonl, are beside it");
    }
    return false;
  }
  const whole = size < PAGE_BYTES_MIN ? undefined : bytesInHeader(file);
  if (whole === undefined) {
    // After a power loss any page may be half written, even the first one. If the log contains it, nothing is
    // lost.
    if (logSize > 0 && isWholeInLog(file)) return false;
    return refuse(
      size < PAGE_BYTES_MIN ? `it has only ${size} bytes, too few for a database` : "it is not a database",
    );
  }
  if (logSize === 0 && size < whole) refuse("its end is missing");
  return size < whole;
}
