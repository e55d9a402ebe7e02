// Checks, reads and copies the file of an embedded store, even while another process has it open. Checking
// and reading change nothing, and use a single snapshot. A copy is one file without a log, and from its
// creation only its owner may read it.

import { closeSync, fdatasyncSync, openSync, type Stats, statSync, writeFileSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Db } from "../sql.ts";
import { committedRows } from "./driver.ts";
import {
  APPLICATION_ID,
  type SchemaDifference,
  schemaDifferences,
  shownObject,
  unreadableTable,
  versionProblem,
} from "./schema.ts";
import { distrust } from "./trust.ts";

/** Maximum time to wait for a program that has locked the file. */
const BUSY_TIMEOUT_MS = 5_000;
/** Number of pages that are copied before the abort signal is checked again. */
const COPY_PAGES = 1_000;
/**
 * SQLite result codes: the file is not a database, the database is damaged, another program has locked it.
 */
const NOT_A_DATABASE = 26;
const CORRUPT = 11;
const BUSY = 5;

/** Returns the size of a file in bytes, or 0 if it does not exist. */
export function sizeOf(file: string): number {
  return statOf(file)?.size ?? 0;
}

/**
 * Returns the size that a copy of the database, including the pages of its log, will have. Returns undefined
 * if the database cannot be read.
 */
export function databaseBytes(file: string): number | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    const opened = database;
    const read = (name: string) => Number(Object.values(opened.prepare(`pragma ${name}`).get() ?? {})[0]);
    return read("page_count") * read("page_size");
  } catch {
    return undefined;
  } finally {
    database?.close();
  }
}

/** Runs `work` with a snapshot of the file. */
export async function withFile<T>(file: string, work: (db: Db) => Promise<T>): Promise<T> {
  const database = openSnapshot(file);
  try {
    return await work(committedRows(database, file));
  } finally {
    database.close();
  }
}

/**
 * Syncs the log to disk before rows in it are read, because a running gateway may not have synced these rows
 * yet.
 */
function syncLog(file: string): void {
  const log = `${file}-wal`;
  if (statOf(log) === undefined) return;
  const handle = openSync(log, "r");
  try {
    fdatasyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function openSnapshot(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    distrust(database);
    // The first read fixes the snapshot.
    database.exec("begin");
    database.prepare("select count(*) from sqlite_schema").get();
    syncLog(file);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

const NAME_A_BACKUP = "Name a file that npx parley-gateway store backup wrote.";

/**
 * Returns a failure with an explanation for a file that could not be read, or undefined if the error is a
 * bug.
 */
export function fileFailure(error: unknown, file: string): Failure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, code } = error as { errcode?: number; code?: string };
  if (errcode === undefined && (code === undefined || !("syscall" in error))) return undefined;
  const result = (errcode ?? 0) & 0xff;
  if (result === NOT_A_DATABASE)
    return fail("store_unavailable", `${file} is not a store of this program`, { hint: NAME_A_BACKUP });
  if (result === CORRUPT) return refuseDamaged(file, error.message);
  if (result === BUSY) {
    return fail("store_unavailable", `${file} is locked by another program`, {
      hint: "Close the program that has it open, then try again.",
    });
  }
  return fail("store_unavailable", `${file} cannot be read or written: ${error.message}`, {
    hint: "Check the owner and the mode of the file and its directory.",
  });
}

function refuseDamaged(file: string, detail: string): Failure {
  return fail("store_unavailable", `${file} is damaged: ${detail}`, {
    hint: "Nothing was changed. Keep it, with any -wal and -shm beside it: an earlier backup may be whole.",
  });
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false });
}

/** A file of an embedded store, after it has passed the checks. */
export interface KnownFile {
  readonly version: number;
  /** Schema objects that differ from this program's schema. They are never copied. */
  readonly differences: readonly SchemaDifference[];
}

/** Suffixes of the files that SQLite opens together with a database. */
const BESIDE = ["", "-wal", "-shm", "-journal"];

/** Refuses pipes and devices, because opening one could block forever. */
function refuseIrregular(file: string): Result<void> {
  const found = statOf(file);
  if (found === undefined) return fail("store_unavailable", `there is no file ${file}`);
  if (found.isDirectory()) {
    return fail("store_unavailable", `${file} is a directory`, {
      hint: "Give the path of the database file in this directory.",
    });
  }
  const odd = BESIDE.map((ending) => `${file}${ending}`).find((name) => statOf(name)?.isFile() === false);
  if (odd === undefined) return ok(undefined);
  return fail("store_unavailable", `${odd} is not a regular file`, { hint: NAME_A_BACKUP });
}

/**
 * Extent of a check. `false`: only the schema. `"pages"`: also every page. `true`: also every index entry.
 */
interface Reading {
  readonly whole: boolean | "pages";
}

/**
 * Checks that a file is an undamaged store of this program, as far as `whole` says. If it is not, returns a
 * failure that describes the problem.
 */
export function checkFile(file: string, what: Reading): Result<KnownFile> {
  try {
    const regular = refuseIrregular(file);
    if (!regular.ok) return regular;
    const database = openSnapshot(file);
    try {
      return checkDatabase(database, file, what);
    } finally {
      database.close();
    }
  } catch (error) {
    const failure = fileFailure(error, file);
    if (failure === undefined) throw error;
    return failure;
  }
}

function checkDatabase(database: DatabaseSync, file: string, { whole }: Reading): Result<KnownFile> {
  const read = (name: string): unknown => Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
  const version = Number(read("user_version"));
  if (read("application_id") !== APPLICATION_ID || version === 0) {
    return fail("store_unavailable", `${file} is not a store of this program`, { hint: NAME_A_BACKUP });
  }
  const problem = versionProblem(database, version, file);
  if (problem !== undefined) return fail("store_unavailable", problem.message);
  const check = whole === "pages" ? "quick_check(1)" : "integrity_check(1)";
  const soundness = whole === false ? "ok" : read(check);
  if (soundness !== "ok") return refuseDamaged(file, String(soundness));
  const differences = schemaDifferences(database, version);
  const unreadable = whole === true ? unreadableTable(differences) : undefined;
  if (unreadable === undefined) return ok({ version, differences });
  const text = `${file} was altered: ${shownObject(unreadable)} is not a table of this program`;
  return fail("store_unavailable", text, {
    hint: "Use a backup that was not altered. Nothing was copied.",
  });
}

/** Copies a file to a new path, even while another process writes to it. */
export async function copyFile(from: string, to: string, signal: AbortSignal): Promise<void> {
  writeFileSync(to, "", { flag: "wx", mode: 0o600 });
  const source = openSnapshot(from);
  try {
    await backup(source, to, { rate: COPY_PAGES, progress: () => signal.throwIfAborted() });
  } finally {
    source.close();
  }
  signal.throwIfAborted();
  packFile(to);
}

/** Merges the log of a closed database into its file. */
export function packFile(file: string): void {
  const database = new DatabaseSync(file);
  try {
    // The copy is still in WAL mode, in which even reading requires a log file beside the database.
    database.exec("pragma journal_mode = delete");
  } finally {
    database.close();
  }
}
