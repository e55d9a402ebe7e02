// Owns the claim of one process on a store directory.
// L1: the lock is the operating system's, on an open file: it goes when the process goes, however it goes.
// L2: the note beside it (who, since when) only informs; nobody's right is ever decided by it.

import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { asStoreProblem, StoreProblem } from "./problems.ts";

const LOCK_FILE = "gateway.lock";
const NOTE_FILE = "gateway.pid";
const SQLITE_BUSY = 5;

/** Who holds the directory, as far as the note tells. */
function holder(noteFile: string): string {
  try {
    const pid = Number.parseInt(readFileSync(noteFile, "utf8"), 10);
    if (Number.isNaN(pid)) return "another process, whose note can't be read";
    return `process ${pid}, since ${statSync(noteFile).mtime.toISOString()}`;
  } catch {
    return "another process, which has only just started or is about to end";
  }
}

/**
 * Claims a store directory for this process and says how to give it back. A directory that another gateway
 * holds is a `StoreProblem` that names its process.
 */
export function lockStore(dir: string): () => void {
  const noteFile = join(dir, NOTE_FILE);
  const lockFile = join(dir, LOCK_FILE);
  let database: DatabaseSync | undefined;
  try {
    writeFileSync(lockFile, "", { flag: "a", mode: 0o600 });
    database = new DatabaseSync(lockFile, { timeout: 0 });
    // An open transaction on an empty database is an advisory lock that works alike on every platform.
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
