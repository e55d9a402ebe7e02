// Owns the lock of one process on a store directory. The operating system holds the lock for an open file, so
// it ends with the process. A file beside the lock says which process holds it since when. This file is only
// for information.

import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { asStoreProblem, StoreProblem } from "../problems.ts";

const LOCK_FILE = "gateway.lock";
const NOTE_FILE = "gateway.pid";
const SQLITE_BUSY = 5;

/** Describes the process that holds the lock, from the file beside the lock. */
function holder(noteFile: string): string {
  try {
    const pid = Number.parseInt(readFileSync(noteFile, "utf8"), 10);
    if (Number.isNaN(pid)) return "another process (its id could not be read)";
    return `process ${pid}, since ${statSync(noteFile).mtime.toISOString()}`;
  } catch {
    return "another process (it is starting or stopping)";
  }
}

/**
 * Locks a store directory for this process, and returns a function that unlocks it. If another gateway holds
 * the lock, throws a `StoreProblem` that names its process.
 */
export function lockStore(dir: string): () => void {
  const noteFile = join(dir, NOTE_FILE);
  const lockFile = join(dir, LOCK_FILE);
  let database: DatabaseSync | undefined;
  try {
    writeFileSync(lockFile, "", { flag: "a", mode: 0o600 });
    database = new DatabaseSync(lockFile, { timeout: 0 });
    // A transaction on an empty SQLite database serves as a lock that works on all platforms.
    database.exec("pragma journal_mode = memory; begin exclusive");
    writeFileSync(noteFile, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    database?.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) {
      throw new StoreProblem("in_use", dir, { detail: holder(noteFile) });
    }
    throw asStoreProblem(error, lockFile);
  }
  const held = database;
  return () => {
    rmSync(noteFile, { force: true });
    held.close();
  };
}

/**
 * Locks a store directory for a check, which creates no lock file: the file would belong to the user who
 * checks, and a gateway of another user could not open it. Without one, no gateway has used the store.
 */
export function lockForCheck(dir: string): () => void {
  return existsSync(join(dir, LOCK_FILE)) ? lockStore(dir) : () => {};
}
