// Owns a file of the embedded kind as it is looked at, read and copied from outside, whoever has it open.
// SF1: looking and reading change nothing in it, and what is read of it is of one moment.
// SF2: a copy is one file by itself, without a log beside it, and its owner's alone from its first byte on.

import { type Stats, statSync, writeFileSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { type Failure, fail, ok, type Result } from "../core/errors.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./migrations.ts";
import type { Db } from "./sql.ts";
import { sqliteDialect } from "./sqlite-driver.ts";
import { type SchemaDifference, schemaDifferences, shownObject, unreadableTable } from "./sqlite-schema.ts";
import { distrust } from "./sqlite-trust.ts";
import type { Tables } from "./tables.ts";

/** How long reading waits for somebody who has the file for itself. */
const BUSY_TIMEOUT_MS = 5_000;
/** Pages that are copied between two looks at the signal. */
const COPY_PAGES = 1_000;
/** Results of SQLite: the file is no database; its pages contradict each other; somebody has it locked. */
const NOT_A_DATABASE = 26;
const CORRUPT = 11;
const BUSY = 5;

/** Bytes of a file; 0: there is none. */
export function sizeOf(file: string): number {
  return statOf(file)?.size ?? 0;
}

/** Reads one moment of a file. */
export async function withFile<T>(file: string, work: (db: Db) => Promise<T>): Promise<T> {
  const database = openSnapshot(file);
  try {
    return await work(new Kysely<Tables>({ dialect: sqliteDialect(database, file) }));
  } finally {
    database.close();
  }
}

function openSnapshot(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    distrust(database);
    // The first read fixes the moment.
    database.exec("begin");
    database.prepare("select count(*) from sqlite_schema").get();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** What is wrong with a file that could not be read, in words; undefined: the error is a bug. */
export function fileFailure(error: unknown, file: string): Failure | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, code } = error as { errcode?: number; code?: string };
  if (errcode !== undefined) {
    const result = errcode & 0xff;
    if (result === NOT_A_DATABASE) return fail("store_unavailable", `${file} is no store of this program`);
    if (result === CORRUPT) return damaged(file, error.message);
    if (result === BUSY) {
      return fail("store_unavailable", `${file} is locked by another program`, {
        hint: "Close the program that has it open, and try again.",
      });
    }
    return fail("store_unavailable", `${file} cannot be read or written: ${error.message}`);
  }
  if (code === undefined || !("syscall" in error)) return undefined;
  return fail("store_unavailable", `${file} cannot be read or written: ${error.message}`);
}

function damaged(file: string, detail: string): Failure {
  return fail("store_unavailable", `${file} is damaged: ${detail}`, {
    hint: "Nothing was changed. Keep it, with any -wal and -shm beside it: an earlier backup may be whole.",
  });
}

function statOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false });
}

/** A file of the embedded kind that was looked at. */
export interface KnownFile {
  readonly version: number;
  /** Differences from the schema that this program makes. They are never copied. */
  readonly differences: readonly SchemaDifference[];
}

/** What SQLite opens beside a file. */
const BESIDE = ["", "-wal", "-shm", "-journal"];

/** Opening a pipe or a device would wait for somebody else, or never end. */
function refuseIrregular(file: string): Result<void> {
  const found = statOf(file);
  if (found === undefined) return fail("store_unavailable", `there is no file ${file}`);
  if (found.isDirectory()) {
    return fail("store_unavailable", `${file} is a directory`, { hint: "Name the file in it." });
  }
  const odd = BESIDE.map((ending) => `${file}${ending}`).find((name) => statOf(name)?.isFile() === false);
  if (odd === undefined) return ok(undefined);
  return fail("store_unavailable", `${odd} is not a regular file`, { hint: "Name a backup file." });
}

/** How much is read: its schema; each page; each page and each entry of an index. */
interface Reading {
  readonly whole: boolean | "pages";
}

/**
 * Looks at a store of this program; anything else is a failure that says what it is. `whole`: all of it is
 * read, and must be sound.
 */
export function checkFile(file: string, what: Reading): Result<KnownFile> {
  try {
    const regular = refuseIrregular(file);
    if (!regular.ok) return regular;
    const database = openSnapshot(file);
    try {
      return checked(database, file, what);
    } finally {
      database.close();
    }
  } catch (error) {
    const failure = fileFailure(error, file);
    if (failure === undefined) throw error;
    return failure;
  }
}

function checked(database: DatabaseSync, file: string, { whole }: Reading): Result<KnownFile> {
  const read = (name: string): unknown => Object.values(database.prepare(`pragma ${name}`).get() ?? {})[0];
  const version = Number(read("user_version"));
  if (read("application_id") !== APPLICATION_ID || version === 0) {
    return fail("store_unavailable", `${file} is no store of this program`);
  }
  if (version > SCHEMA_VERSION) {
    const known = `schema version ${version}, known up to ${SCHEMA_VERSION}`;
    return fail("store_unavailable", `${file} was written by a newer version of this program (${known})`, {
      hint: "Use that version. Nothing was changed.",
    });
  }
  const check = whole === "pages" ? "quick_check(1)" : "integrity_check(1)";
  const soundness = whole === false ? "ok" : read(check);
  if (soundness !== "ok") return damaged(file, String(soundness));
  const differences = schemaDifferences(database, version);
  const unreadable = whole === true ? unreadableTable(differences) : undefined;
  if (unreadable === undefined) return ok({ version, differences });
  const text = `${file} was altered: ${shownObject(unreadable)} is not the table of this program`;
  return fail("store_unavailable", text, {
    hint: "Use a backup that nobody changed. Nothing was copied.",
  });
}

/** Copies a file, whoever writes it meanwhile, to a place where none is. */
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

/** Makes one file by itself of one that nobody has open. */
export function packFile(file: string): void {
  const database = new DatabaseSync(file);
  try {
    // As it was copied it would want a log beside it, even to be read.
    database.exec("pragma journal_mode = delete");
  } finally {
    database.close();
  }
}
