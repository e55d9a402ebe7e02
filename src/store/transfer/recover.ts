// Recovers an embedded store that is damaged or has lost data. Builds a new store from the readable rows, and
// from the newest backup where a page with sessions or messages cannot be read.
// No old file is changed or deleted: the database and the JSONL copies move into a separate folder. If
// anything fails, nothing changes: the old files only move once the new store is complete.

import { copyFileSync, existsSync, linkSync, mkdtempSync, renameSync, truncateSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { NOT_YET_USED } from "../../core/shapes/session.ts";
import { agentIdInKey, type KeyRules, kindOf } from "../../core/shapes/session-key.ts";
import { backupFolder, type StoreSettings } from "../../core/shapes/settings/settings.ts";
import { StoreProblem } from "../problems.ts";
import { getSession, insertSession } from "../queries/sessions/sessions.ts";
import { SCHEMA_VERSION } from "../schema/conversion.ts";
import { COPIED_TABLES } from "../schema/tables.ts";
import type { Tx } from "../sql.ts";
import { bytesInHeader, copiesIn, sizeOf } from "../sqlite/check.ts";
import { packFile } from "../sqlite/file.ts";
import { lockStore } from "../sqlite/lock.ts";
import { MARK_ENDING } from "../sqlite/mark.ts";
import { versionProblem } from "../sqlite/schema.ts";
import { openSqlite, STORE_FILE } from "../sqlite/sqlite.ts";
import { distrust } from "../sqlite/trust.ts";
import { type Row, writeMessages } from "./copy-messages.ts";
import { tallyOf } from "./tally.ts";
import {
  attempt,
  giveStore,
  type Moved,
  type MoveJob,
  noStoreIn,
  withFolder,
  withStore,
} from "./transfer.ts";

export interface Recovered extends Moved {
  /** Folder to which the old files were moved. */
  readonly kept: string;
  /** Tables that had unreadable rows. */
  readonly incomplete: readonly string[];
  /** The backup from which lost sessions and messages come. Absent if none was used. */
  readonly backup?: string;
}

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
  isWanted: (row: Row) => boolean = () => true,
): Promise<boolean> {
  const columns = source.prepare("select name, pk from pragma_table_xinfo(?) where hidden = 0").all(table);
  if (columns.length === 0) return true;
  const names = columns.map(({ name }) => `"${String(name)}"`).join(", ");
  const keys = columns.filter(({ pk }) => Number(pk) > 0).map(({ name }) => `"${String(name)}"`);
  const write: Writer = async (read) => {
    const rows = read.filter(isWanted);
    if (rows.length === 0) return;
    if (table === "messages") {
      // They keep their numbers, and so their order, which is that of the backup, too.
      const [ids, seqs] = [rows.map(({ id }) => String(id)), rows.map(({ seq }) => Number(seq))];
      const stored = tx.selectFrom("messages").select(["id", "seq"]);
      const same = await stored.where((eb) => eb.or([eb("id", "in", ids), eb("seq", "in", seqs)])).execute();
      const known = new Set(same.flatMap(({ id, seq }) => [id, seq]));
      const added = rows.filter(({ id, seq }) => !known.has(String(id)) && !known.has(Number(seq)));
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

/** Opens a database that has a schema. Returns undefined if SQLite cannot read it. */
function openReadable(file: string): { database: DatabaseSync; version: number } | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file);
    distrust(database);
    const version = Number(database.prepare("pragma user_version").get()?.user_version);
    // Without the schema, no table can be read.
    const schema = database.prepare("select count(*) as n from sqlite_schema").get();
    if (Number(schema?.n) > 0) return { database, version };
  } catch (error) {
    if ((error as { errcode?: number }).errcode === undefined) throw error;
  }
  database?.close();
  return undefined;
}

/**
 * Copies a database with its log, and opens the copy, which SQLite may change. Returns a problem if its
 * version cannot be used, and undefined if it cannot be read.
 */
async function openCopy(
  from: string,
  folder: string,
  { world }: MoveJob,
): Promise<DatabaseSync | StoreProblem | undefined> {
  const copy = join(folder, STORE_FILE);
  for (const ending of ["", "-wal"]) {
    if (existsSync(`${from}${ending}`)) copyFileSync(`${from}${ending}`, `${copy}${ending}`);
  }
  if (sizeOf(copy) === 0) return undefined;
  // SQLite reads nothing from a file without its end. With empty pages in its place, it reads the others.
  truncateSync(copy, Math.max(sizeOf(copy), bytesInHeader(copy) ?? 0));
  const first = openReadable(copy);
  if (first === undefined || first.version === SCHEMA_VERSION) return first?.database;
  const problem = versionProblem(first.database, first.version, from);
  first.database.close();
  if (problem !== undefined) return problem;
  // If the database is of an earlier version, tries to convert the copy.
  const open = () => openSqlite({ dir: folder, durability: "normal", log: world.log });
  await withStore(open, async () => {}).catch(() => {});
  const converted = openReadable(copy);
  if (converted === undefined || converted.version === SCHEMA_VERSION) return converted?.database;
  converted.database.close();
  return undefined;
}

/** Keeps the old files in a new folder, and returns its path. */
function keepOld(dir: string): string {
  const folder = mkdtempSync(join(dir, "damaged-"));
  const old = (ending: string): string => join(dir, `${STORE_FILE}${ending}`);
  const placeIn = (ending: string): string => join(folder, `${STORE_FILE}${ending}`);
  // Does not move the old database: it keeps its name until the new one replaces it, so a store always
  // exists.
  try {
    linkSync(old(""), placeIn(""));
  } catch {
    copyFileSync(old(""), placeIn(""));
  }
  // The mark stays, too: without it, a start would accept the old database without its log.
  if (existsSync(old(MARK_ENDING))) copyFileSync(old(MARK_ENDING), placeIn(MARK_ENDING));
  for (const ending of ["-wal", "-shm"]) {
    if (existsSync(old(ending))) renameSync(old(ending), placeIn(ending));
  }
  for (const name of copiesIn(dir)) renameSync(join(dir, name), join(folder, name));
  return folder;
}

async function backupsOf(settings: StoreSettings): Promise<string[]> {
  const folder = backupFolder(settings);
  const names = await readdir(folder).catch((): string[] => []);
  // Their names begin with the time.
  const own = names.filter((name) => /^parley-\d{4}-.*\.sqlite$/.test(name));
  return own
    .sort()
    .reverse()
    .map((name) => join(folder, name));
}

/** Tables whose lost rows a backup may still have. Other rows describe work that has continued since. */
const FROM_BACKUP = ["sessions", "session_ids", "messages"] as const;

/**
 * Writes all readable rows, and what the backup still has of sessions and messages that are lost. Returns the
 * tables that lost rows.
 */
async function salvage(
  tx: Tx,
  source: DatabaseSync,
  backup: DatabaseSync | undefined,
  { job: { world, signal }, keys }: { readonly job: MoveJob; readonly keys: KeyRules },
): Promise<string[]> {
  const damaged: string[] = [];
  for (const table of COPIED_TABLES) {
    signal.throwIfAborted();
    if (!(await salvageTable(source, tx, table, world))) damaged.push(table);
  }
  await sql`insert into session_ids (session_id, session_key, created_at)
    select session_id, key, created_at from sessions where true on conflict do nothing`.execute(tx);
  await sql`insert into session_ids (session_id, session_key, created_at)
    select session_id, session_key, min(created_at) from messages group by session_id
    on conflict do nothing`.execute(tx);
  const left = await tx.selectFrom("session_ids").select("session_id").execute();
  const ids = new Set<unknown>(left.map(({ session_id: id }) => id));
  if (backup !== undefined) {
    const lost = FROM_BACKUP.filter((table) => damaged.includes(table));
    // A deletion removes all rows of a session. One of which nothing is left may have been deleted.
    for (const table of lost) await salvageTable(backup, tx, table, world, (row) => ids.has(row.session_id));
  }
  if (damaged.includes("sessions")) await reviveSessions(tx, keys);
  return damaged;
}

/** Makes the sessions whose rows are lost, and moves those of the backup on to what has happened since. */
async function reviveSessions(tx: Tx, keys: KeyRules): Promise<void> {
  const lost = tx.selectFrom("session_ids").selectAll().orderBy("created_at", "desc");
  for (const row of await lost.execute()) {
    const { session_key: key, session_id: sessionId, created_at: createdAt } = row;
    if ((await getSession(tx, key)) !== undefined) continue;
    await tx.deleteFrom("session_ids").where("session_id", "=", sessionId).execute();
    await insertSession(tx, {
      ...NOT_YET_USED,
      key,
      sessionId,
      createdAt,
      updatedAt: createdAt,
      spawnDepth: 0,
      external: false,
      agentId: agentIdInKey(key) ?? keys.defaultAgentId,
      kind: kindOf(key, keys),
    });
    await tx.updateTable("session_ids").set(row).where("session_id", "=", sessionId).execute();
  }
  await sql`update sessions set
    next_lane_seq = max(next_lane_seq,
      1 + coalesce((select max(lane_seq) from runs where session_key = sessions.key), 0)),
    session_id = coalesce((select later.session_id from session_ids later join session_ids known
        on known.session_id = sessions.session_id and later.created_at > known.created_at
      where later.session_key = sessions.key order by later.created_at desc limit 1), session_id)`.execute(
    tx,
  );
}

/** Rebuilds the store of `settings.dir`. No gateway may run on it. */
export function recoverStore(job: MoveJob, keys: KeyRules): Promise<Result<Recovered>> {
  const { dir, postgresUrl } = job.settings;
  const file = join(dir, STORE_FILE);
  return attempt<Recovered>(job, file, "store.postgresUrl", async () => {
    if (postgresUrl !== undefined) {
      return fail("store_unavailable", "only an embedded store can be recovered", {
        hint: "Restore the database with the tools of its server. Nothing was changed.",
      });
    }
    if (!existsSync(file) && copiesIn(dir).length === 0) return noStoreIn(dir);
    const unlock = lockStore(dir);
    try {
      return await withFolder(join(dir, "recovering"), (folder) => rebuild(job, keys, folder));
    } finally {
      unlock();
    }
  });
}

async function rebuild(job: MoveJob, keys: KeyRules, folder: string): Promise<Result<Recovered>> {
  const { dir } = job.settings;
  const file = join(dir, STORE_FILE);
  const backups = await backupsOf(job.settings);
  const place = (name: string): string => mkdtempSync(join(folder, name));
  const source = await openCopy(file, place("old-"), job);
  if (source instanceof StoreProblem) throw source;
  if (source === undefined) {
    const [newest] = backups;
    const wayOut = newest === undefined ? "" : `, and run npx parley-gateway store restore ${newest}`;
    return fail("store_unavailable", `nothing in ${file} can be read`, {
      hint: `Move it away, with any -wal, -shm, -mark and .jsonl files${wayOut}. Nothing was changed.`,
    });
  }
  let used: string | undefined;
  let backup: DatabaseSync | undefined;
  for (const name of backups) {
    const opened = await openCopy(name, place("backup-"), job);
    if (!(opened instanceof DatabaseSync)) continue;
    backup = opened;
    used = name;
    break;
  }
  try {
    const open = () => openSqlite({ dir: folder, durability: "normal", log: job.world.log });
    const salvaged = await withStore(open, async (store) => {
      const incomplete = await store.transaction((tx) => salvage(tx, source, backup, { job, keys }));
      return { incomplete, tally: await tallyOf(store.db) };
    });
    const made = join(folder, STORE_FILE);
    packFile(made);
    job.signal.throwIfAborted();
    const kept = keepOld(dir);
    giveStore(made, dir);
    const isUsed = backup !== undefined && FROM_BACKUP.some((table) => salvaged.incomplete.includes(table));
    return ok({
      from: dir,
      to: dir,
      kept,
      ...salvaged,
      ...optional({ backup: isUsed ? used : undefined }),
    });
  } finally {
    source.close();
    backup?.close();
  }
}
