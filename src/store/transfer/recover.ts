// Recovers an embedded store that is damaged or has lost data. Builds a new store from the readable rows and
// the JSONL copies of the transcripts.
// No old file is changed or deleted: the database files move into a separate folder, and the copies stay
// where they are. If anything fails, nothing changes: the old files only move once the new store is complete.

import { copyFileSync, existsSync, linkSync, mkdtempSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { KeyRules } from "../../core/shapes/session-key.ts";
import { SCHEMA_VERSION } from "../schema/statements.ts";
import type { Tx } from "../sql.ts";
import { copiesIn, sizeOf } from "../sqlite/check.ts";
import { packFile } from "../sqlite/file.ts";
import { lockStore } from "../sqlite/lock.ts";
import { MARK_ENDING } from "../sqlite/mark.ts";
import { openSqlite, STORE_FILE } from "../sqlite/sqlite.ts";
import { distrust } from "../sqlite/trust.ts";
import { COPIED_TABLES } from "./copy.ts";
import { type Row, writeMessages } from "./copy-messages.ts";
import { bringBack } from "./recover-copies.ts";
import { tallyOf } from "./tally.ts";
import { giveStore, type Moved, type MoveJob, noStoreIn, told, withFolder, withStore } from "./transfer.ts";

export interface Recovered extends Moved {
  /** Folder to which the old files were moved. */
  readonly kept: string;
  /** Numbers of sessions and of messages that existed only in the copies. */
  readonly sessionsFromCopies: number;
  readonly messagesFromCopies: number;
  /** Tables that had unreadable rows. */
  readonly incomplete: readonly string[];
  /** Number of lines in the copies that could not be read. */
  readonly unreadLines: number;
}

/** Number of rows per statement. */
const BATCH_ROWS = 128;

type Writer = (rows: readonly Row[]) => Promise<void>;

/**
 * Reads the rows of a query and passes them to `write` in batches. Returns false if damage stopped the
 * reading before the last row.
 */
async function readRows(source: DatabaseSync, query: string, write: Writer): Promise<boolean> {
  let batch: Row[] = [];
  let isWhole = true;
  try {
    for (const row of source.prepare(query).iterate()) {
      batch.push(row as Row);
      if (batch.length < BATCH_ROWS) continue;
      await write(batch);
      batch = [];
    }
  } catch (error) {
    // SQLite reports a damaged page with `errcode`. Any other error is a bug.
    if ((error as { errcode?: number }).errcode === undefined) throw error;
    isWhole = false;
  }
  await write(batch);
  return isWhole;
}

/**
 * Writes the rows of a table from the first one on. If damage stops the reading, also writes the rows from
 * the last one back to the damage, and returns false.
 */
async function salvageTable(
  source: DatabaseSync,
  tx: Tx,
  table: (typeof COPIED_TABLES)[number],
  { redactor }: MoveJob["world"],
): Promise<boolean> {
  const columns = source.prepare("select name, pk from pragma_table_xinfo(?) where hidden = 0").all(table);
  if (columns.length === 0) return true;
  const names = columns.map(({ name }) => `"${String(name)}"`).join(", ");
  const keys = columns.filter(({ pk }) => Number(pk) > 0).map(({ name }) => `"${String(name)}"`);
  const write: Writer = async (rows) => {
    if (rows.length === 0) return;
    if (table === "messages") {
      const ids = rows.map(({ id }) => String(id));
      const found = await tx.selectFrom("messages").select("id").where("id", "in", ids).execute();
      const known = new Set(found.map(({ id }) => id));
      const added = rows.filter(({ id }) => !known.has(String(id))).map(({ seq: _, ...row }) => row);
      if (added.length > 0) await writeMessages(tx, added, redactor);
      return;
    }
    for (const row of rows) {
      await tx
        .insertInto(table)
        .values(row as never)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
  };
  const order = keys.length === 0 ? ["rowid"] : keys;
  const by = (way: string): string => order.map((key) => `${key} ${way}`).join(", ");
  if (await readRows(source, `select ${names} from "${table}" order by ${by("asc")}`, write)) return true;
  await readRows(source, `select ${names} from "${table}" order by ${by("desc")}`, write);
  return false;
}

/**
 * Opens a copy of the old database. Returns undefined if SQLite cannot read the copy, or if its schema
 * version differs from this program's.
 */
function openOld(file: string): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file);
    distrust(database);
    const version = Number(database.prepare("pragma user_version").get()?.user_version);
    if (version === SCHEMA_VERSION) return database;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === undefined) throw error;
  }
  database?.close();
  return undefined;
}

/** Copies the old files and opens the copy, which SQLite may change. */
async function copyOld(dir: string, folder: string, { world }: MoveJob): Promise<DatabaseSync | undefined> {
  const copy = join(folder, STORE_FILE);
  for (const ending of ["", "-wal"]) {
    const file = join(dir, `${STORE_FILE}${ending}`);
    if (existsSync(file)) copyFileSync(file, `${copy}${ending}`);
  }
  if (sizeOf(copy) === 0) return undefined;
  // If the database is of an older version, tries to migrate the copy.
  const open = () => openSqlite({ dir: folder, durability: "normal", log: world.log });
  if (openOld(copy) === undefined) await withStore(open, async () => {}).catch(() => {});
  return openOld(copy);
}

/** Keeps the old files in a new folder, and returns its path. */
function keepOld(dir: string): string {
  const folder = mkdtempSync(join(dir, "damaged-"));
  const old = (ending: string): string => join(dir, `${STORE_FILE}${ending}`);
  const kept = (ending: string): string => join(folder, `${STORE_FILE}${ending}`);
  // Does not move the old database: it keeps its name until the new one replaces it, so a store always
  // exists.
  if (existsSync(old(""))) {
    try {
      linkSync(old(""), kept(""));
    } catch {
      copyFileSync(old(""), kept(""));
    }
  }
  // The mark stays, too: without it, a start would accept the old database without its log.
  if (existsSync(old(MARK_ENDING))) copyFileSync(old(MARK_ENDING), kept(MARK_ENDING));
  for (const ending of ["-wal", "-shm"]) {
    if (existsSync(old(ending))) renameSync(old(ending), kept(ending));
  }
  return folder;
}

type Salvaged = Omit<Recovered, "kept" | "from" | "to">;

async function rebuild(job: MoveJob, keys: KeyRules, folder: string, old: string): Promise<Salvaged> {
  const { world, settings, signal } = job;
  const source = await copyOld(settings.dir, old, job);
  const open = () => openSqlite({ dir: folder, durability: "normal", log: world.log });
  try {
    return await withStore(open, async (store) => {
      const incomplete = await store.transaction(async (tx) => {
        const damaged: string[] = [];
        for (const table of source === undefined ? [] : COPIED_TABLES) {
          signal.throwIfAborted();
          if (!(await salvageTable(source as DatabaseSync, tx, table, world))) damaged.push(table);
        }
        return source === undefined && sizeOf(join(settings.dir, STORE_FILE)) > 0 ? COPIED_TABLES : damaged;
      });
      const found = { sessions: 0, messages: 0, unread: 0 };
      for (const name of copiesIn(settings.dir)) {
        signal.throwIfAborted();
        const one = await bringBack(store, join(settings.dir, name), world.redactor, { keys, incomplete });
        found.sessions += one.sessions;
        found.messages += one.messages;
        found.unread += one.unread;
      }
      return {
        tally: await tallyOf(store.db),
        incomplete,
        ...{
          sessionsFromCopies: found.sessions,
          messagesFromCopies: found.messages,
          unreadLines: found.unread,
        },
      };
    });
  } finally {
    source?.close();
  }
}

/** Rebuilds the store of `settings.dir`. No gateway may run on it. */
export function recoverStore(job: MoveJob, keys: KeyRules): Promise<Result<Recovered>> {
  const { dir, postgresUrl } = job.settings;
  return told<Recovered>(job, join(dir, STORE_FILE), "store.postgresUrl", async () => {
    if (postgresUrl !== undefined) {
      return fail("store_unavailable", "only an embedded store can be recovered", {
        hint: "Restore the database with the tools of its server. Nothing was changed.",
      });
    }
    if (!existsSync(dir)) return noStoreIn(dir);
    const unlock = lockStore(dir);
    try {
      if (!existsSync(join(dir, STORE_FILE)) && copiesIn(dir).length === 0) return noStoreIn(dir);
      return await withFolder(join(dir, "recovering"), async (folder) => {
        const old = mkdtempSync(join(folder, "old-"));
        const salvaged = await rebuild(job, keys, folder, old);
        const made = join(folder, STORE_FILE);
        packFile(made);
        job.signal.throwIfAborted();
        const kept = keepOld(dir);
        giveStore(made, dir);
        return ok({ from: dir, to: dir, kept, ...salvaged });
      });
    } finally {
      unlock();
    }
  });
}
