// Moves a whole store: from an embedded store to PostgreSQL, to a backup file, and back from a backup file. A
// backup is an embedded database file, whichever kind of store it was made from. It can be restored into both
// kinds.
// The source is never written or migrated. A move copies a single snapshot of the source. A target that
// contains anything is refused. After a failure or a crash the target is still empty. No file is ever
// overwritten.
// Only rows are moved, not the schema: unknown triggers and views in the source are reported and left out.

import { existsSync, linkSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { sql } from "kysely";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { StoreSettings } from "../../core/shapes/settings/settings.ts";
import { ensureFolder } from "../../world/folders.ts";
import type { World } from "../../world.ts";
import { postgresAddress } from "../postgres/address.ts";
import { BULK_TIMEOUTS, beginBulkRead, beginBulkWrite, endBulkWrite } from "../postgres/bulk.ts";
import { openPostgres } from "../postgres/postgres.ts";
import { StoreConflict, StoreProblem } from "../problems.ts";
import { countFresh } from "../queries/processes.ts";
import { SCHEMA_VERSION } from "../schema/conversion.ts";
import { COPIED_TABLES } from "../schema/tables.ts";
import { type Db, kindOf, type Store, type Tx } from "../sql.ts";
import { copiesIn } from "../sqlite/check.ts";
import {
  checkFile,
  copyFile,
  fileFailure,
  type KnownFile,
  packFile,
  sizeOf,
  withFile,
} from "../sqlite/file.ts";
import { lockStore } from "../sqlite/lock.ts";
import { MARK_ENDING } from "../sqlite/mark.ts";
import { copyIntoOwnSchema, shownObject } from "../sqlite/schema.ts";
import { openSqlite, STORE_FILE } from "../sqlite/sqlite.ts";
import { type CopyWatch, copyRows } from "./copy.ts";
import type { Row } from "./copy-messages.ts";
import { dropUnseen, type Grants, grantsIn, tablesOf } from "./grants.ts";
import { type Tally, tallyOf } from "./tally.ts";

export interface Moved {
  /** Names of source and target for people, without secrets. */
  readonly from: string;
  readonly to: string;
  readonly tally: Tally;
  readonly bytes?: number;
  /**
   * Unknown schema objects of the source that were not copied, for example `trigger "x"`. Absent if there
   * were none.
   */
  readonly leftOut?: readonly string[];
  /** Rows of a backup that give rights and were not accepted. Absent if there were none. */
  readonly withheld?: readonly Grants[];
}

/** Parameters of a move. Aborting `signal` cancels it, and nothing is left behind. */
export interface MoveJob extends Omit<CopyWatch, "redactor"> {
  readonly settings: StoreSettings;
  readonly world: World;
  /** Chooses the kinds of grants to restore from a backup, which may come from anybody. Default: none. */
  accept?(grants: readonly Grants[]): Promise<readonly string[]>;
}

/** SQLSTATEs for invalid data and for exceeded limits of the server. */
const UNFIT_ROW = /^(22|54)...$/;

const otherVersion = (place: string) =>
  fail("store_unavailable", `${place} has the schema of another version`, {
    hint: "Use the program version that the store belongs to. Nothing was changed.",
  });

export const noStoreIn = (dir: string) =>
  fail("store_unavailable", `there is no embedded store in ${dir}`, {
    hint: "Check store.dir and --config: npx parley-gateway store shows where the store is.",
  });

/**
 * Runs a move, and converts problems that a person has to fix into failures. `named` is the setting or option
 * that contains the database's address.
 */
export async function attempt<T extends Moved>(
  { signal }: MoveJob,
  place: string,
  named: string,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) return fail("store_unavailable", "stopped; nothing was written or changed");
    if (error instanceof StoreProblem) {
      const code = error.problem === "bad_address" ? "invalid_argument" : "store_unavailable";
      return fail(code, error.message.replaceAll("store.postgresUrl", named));
    }
    if (error instanceof StoreConflict) {
      return fail("store_unavailable", `the database was in use (${error.message})`, {
        hint: "Nothing was changed. Try again; a gateway may be starting or stopping there.",
      });
    }
    const { code, message } = error as { code?: unknown; message?: string };
    // SQLite can store rows that PostgreSQL cannot, for example with a key that is too long for an index.
    if (typeof code === "string" && UNFIT_ROW.test(code))
      return fail("store_unavailable", `the database cannot store a row: ${message}`, {
        hint: "Nothing was changed.",
      });
    const failure = fileFailure(error, place);
    if (failure === undefined) throw error;
    return failure;
  }
}

export async function withStore<T>(
  open: () => Promise<Store>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await open();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/**
 * Runs `work` with a temporary private folder. The folder is next to `beside`, where a store has enough
 * space.
 */
export async function withFolder<T>(beside: string, work: (folder: string) => Promise<T>): Promise<T> {
  await ensureFolder(dirname(beside));
  const folder = mkdtempSync(`${beside}-`);
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Counts of the rows that were read from a file, and the unknown schema objects of that file. */
interface ReadOut {
  readonly tally: Tally;
  readonly leftOut?: readonly string[];
}

/** Calls `work` with a database that holds the rows of a file in this version's schema. */
async function withSource(
  file: string,
  { version, differences }: KnownFile,
  { settings, world }: MoveJob,
  work: (source: Db) => Promise<Result<Tally>>,
): Promise<Result<ReadOut>> {
  const read = await (version === SCHEMA_VERSION
    ? withFile(file, work)
    : // The file must not change, so a copy of it is migrated.
      withFolder(join(settings.dir, "moving"), async (folder) => {
        copyIntoOwnSchema(file, join(folder, STORE_FILE), version);
        const open = () => openSqlite({ dir: folder, durability: "normal", log: world.log });
        return withStore(open, (store) => work(store.db));
      }));
  if (!read.ok) return read;
  const leftOut = differences.filter(({ kind }) => kind !== "missing").map(shownObject);
  return ok({ tally: read.value, ...(leftOut.length === 0 ? {} : { leftOut }) });
}

function notEmpty(place: string, held: readonly string[], wayOut: string): Result<void> {
  if (held.length === 0) return ok(undefined);
  return fail("store_unavailable", `${place} is not empty: it has ${held.join(", ")}`, {
    hint: `${wayOut}. Nothing was changed.`,
  });
}

async function refuseTaken(tx: Tx, place: string, nowMs: number): Promise<Result<void>> {
  const living = await countFresh(tx, nowMs);
  if (living > 0) {
    const gateways = living === 1 ? "a running gateway" : `${living} running gateways`;
    return fail("store_unavailable", `${place} is in use by ${gateways}`, {
      hint: "Stop these gateways first; npx parley-gateway store lists them. Nothing was changed.",
    });
  }
  const wayOut = "Name an empty database, or another schema with ?schema=name";
  return notEmpty(place, await nonEmptyTables(tx), wayOut);
}

/** Fills an empty PostgreSQL store in one transaction. */
async function fillPostgres(source: Db, url: string, job: MoveJob): Promise<Result<Tally>> {
  const { world } = job;
  const { place } = postgresAddress(url);
  const open = () => openPostgres({ url, world, timeouts: BULK_TIMEOUTS, writersMax: 1, readersMax: 1 });
  return withStore(open, (target) =>
    target.transaction(async (tx): Promise<Result<Tally>> => {
      if (!(await beginBulkWrite(tx))) return otherVersion(place);
      const free = await refuseTaken(tx, place, world.clock.now());
      if (!free.ok) return free;
      await tx.deleteFrom("sessions").execute();
      await tx.deleteFrom("session_ids").execute();
      await copyRows(source, tx, { ...job, redactor: world.redactor });
      if (job.withheld !== undefined) await dropUnseen(tx);
      await endBulkWrite(tx);
      return ok(await tallyOf(tx));
    }),
  );
}

/** Copies the embedded store of `settings.dir` to PostgreSQL, and leaves it unchanged. */
export function migrateStore(job: MoveJob, url: string): Promise<Result<Moved>> {
  const { dir } = job.settings;
  const file = join(dir, STORE_FILE);
  return attempt<Moved>(job, file, "--to", async () => {
    const { place } = postgresAddress(url);
    if (!existsSync(file)) return noStoreIn(dir);
    const unlock = lockStore(dir);
    try {
      const known = checkFile(file, { whole: true });
      if (!known.ok) return known;
      const filled = await withSource(file, known.value, job, (source) => fillPostgres(source, url, job));
      return filled.ok ? ok({ from: dir, to: place, ...filled.value }) : filled;
    } finally {
      unlock();
    }
  });
}

/** Writes a snapshot of the whole store to a new file. A gateway may be running. */
export function backupStore(job: MoveJob, name: string): Promise<Result<Moved>> {
  const file = resolve(name);
  return attempt<Moved>(job, file, "store.postgresUrl", async () => {
    if (existsSync(file)) {
      const isFolder = statSync(file).isDirectory();
      return fail("store_unavailable", `${file} already exists; a backup never overwrites a file`, {
        hint: isFolder ? "It is a directory: name a file in it." : "Name another file, or move it away.",
      });
    }
    const { postgresUrl: url, dir } = job.settings;
    if (url === undefined && !existsSync(join(dir, STORE_FILE))) return noStoreIn(dir);
    return withFolder(`${file}.unfinished`, async (folder) => {
      const made = join(folder, STORE_FILE);
      const from = await (url === undefined
        ? copyEmbedded(job, made)
        : readPostgres(job, url, folder).then((read) => {
            if (read.ok) packFile(made);
            return read;
          }));
      if (!from.ok) return from;
      const sound = checkFile(made, { whole: true });
      const source = url === undefined ? join(from.value, STORE_FILE) : from.value;
      if (!sound.ok) return { ...sound, error: sound.error.replaceAll(made, source) };
      const tally = await withFile(made, tallyOf);
      const bytes = sizeOf(made);
      job.signal.throwIfAborted();
      giveName(made, file);
      return ok({ from: from.value, to: file, tally, bytes });
    });
  });
}

/** Gives the finished file its name. Fails if another file with this name has appeared in the meantime. */
function giveName(made: string, file: string): void {
  try {
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    // Some file systems do not support hard links.
    renameSync(made, file);
  }
}

async function copyEmbedded({ settings, signal }: MoveJob, made: string): Promise<Result<string>> {
  const file = join(settings.dir, STORE_FILE);
  const known = checkFile(file, { whole: false });
  if (!known.ok) return known;
  await copyFile(file, made, signal);
  return ok(settings.dir);
}

/** Copies a PostgreSQL store into an embedded store in `dir`. */
async function readPostgres(job: MoveJob, url: string, dir: string): Promise<Result<string>> {
  const { world } = job;
  const { place } = postgresAddress(url);
  const timeouts = BULK_TIMEOUTS;
  const from = () => openPostgres({ url, world, asItIs: true, timeouts, writersMax: 1, readersMax: 1 });
  const to = () => openSqlite({ dir, durability: "normal", log: world.log });
  return withStore(from, (source) =>
    withStore(to, (target) =>
      source.transaction(async (moment): Promise<Result<string>> => {
        if (!(await beginBulkRead(moment))) return otherVersion(place);
        await target.transaction((tx) => copyRows(moment, tx, { ...job, redactor: job.world.redactor }));
        return ok(place);
      }),
    ),
  );
}

/** Fills an empty store from a backup file. No gateway may run on it. */
export function restoreStore(job: MoveJob, name: string): Promise<Result<Moved>> {
  const file = resolve(name);
  return attempt<Moved>(job, file, "store.postgresUrl", async () => {
    const { postgresUrl: url, dir } = job.settings;
    const known = checkFile(file, { whole: true });
    if (!known.ok) return known;
    const to = url === undefined ? dir : postgresAddress(url).place;
    let withheld: readonly Grants[] = [];
    const withhold = async (source: Db): Promise<MoveJob> => {
      const grants = await grantsIn(source);
      const accepted = grants.length === 0 ? [] : ((await job.accept?.(grants)) ?? []);
      withheld = grants.filter(({ kind }) => !accepted.includes(kind));
      return { ...job, withheld: tablesOf(withheld.map(({ kind }) => kind)) };
    };
    const filled = await (url === undefined
      ? placeFile(job, file, known.value, withhold)
      : withSource(file, known.value, job, async (source) =>
          fillPostgres(source, url, await withhold(source)),
        ));
    if (!filled.ok) return filled;
    return ok({ from: file, to, ...filled.value, ...(withheld.length === 0 ? {} : { withheld }) });
  });
}

/** Fails if a directory already contains a store that is not empty. */
async function refuseHeld(dir: string): Promise<Result<void>> {
  const file = join(dir, STORE_FILE);
  if (sizeOf(file) === 0 && sizeOf(`${file}-wal`) === 0) return ok(undefined);
  const wayOut = `Move ${STORE_FILE} away, with any -wal and -shm, or name another directory in store.dir`;
  if (!checkFile(file, { whole: true }).ok) return notEmpty(dir, ["a store that cannot be read"], wayOut);
  return notEmpty(dir, await withFile(file, nonEmptyTables), wayOut);
}

/** Moves a finished store into a directory. */
export function giveStore(made: string, dir: string): void {
  const to = join(dir, STORE_FILE);
  // Removes the log of an earlier database, because SQLite would use it.
  for (const beside of ["-wal", "-shm"]) rmSync(`${to}${beside}`, { force: true });
  renameSync(made, to);
  // The old high-water mark does not match. It goes last, so that until then a start is refused.
  rmSync(`${to}${MARK_ENDING}`, { force: true });
}

/** Moves existing JSONL copies into a separate folder. They may hold messages that the backup lacks. */
function setCopiesAside(dir: string): void {
  const names = copiesIn(dir);
  if (names.length === 0) return;
  const folder = mkdtempSync(join(dir, "copies-before-restore-"));
  for (const name of names) renameSync(join(dir, name), join(folder, name));
}

/** Creates a store from the rows in a file, and moves it into the directory. */
async function placeFile(
  job: MoveJob,
  from: string,
  known: KnownFile,
  withhold: (source: Db) => Promise<MoveJob>,
): Promise<Result<ReadOut>> {
  const { world } = job;
  const { dir } = job.settings;
  await ensureFolder(dir);
  const unlock = lockStore(dir);
  try {
    const free = await refuseHeld(dir);
    if (!free.ok) return free;
    return await withFolder(join(dir, "restoring"), async (folder) => {
      const made = join(folder, STORE_FILE);
      const open = () => openSqlite({ dir: folder, durability: "normal", log: world.log });
      const filled = await withSource(from, known, job, async (source) => {
        const chosen = await withhold(source);
        return withStore(open, async (target) => {
          await target.transaction(async (tx) => {
            await copyRows(source, tx, { ...chosen, redactor: world.redactor });
            await dropUnseen(tx);
          });
          return ok(await tallyOf(target.db));
        });
      });
      if (!filled.ok) return filled;
      packFile(made);
      job.signal.throwIfAborted();
      setCopiesAside(dir);
      giveStore(made, dir);
      return filled;
    });
  } finally {
    unlock();
  }
}

/**
 * A store with at least this many sessions does not count as empty, because the start of a gateway creates
 * fewer.
 */
const SESSIONS_MAX = 1_000;
/** Columns that are set in every new session. */
const OF_EVERY_SESSION = new Set([
  "row_id",
  "key",
  "session_id",
  "agent_id",
  "kind",
  "created_at",
  "updated_at",
  "archived",
]);

/** Returns the copied tables that this database has. A file of an older version lacks some of them. */
async function copiedTables(db: Db): Promise<readonly string[]> {
  if (kindOf(db) === "postgres") return COPIED_TABLES;
  const { rows } = await sql<{ name: string }>`select name from sqlite_schema where type = 'table'`.execute(
    db,
  );
  const names = new Set(rows.map(({ name }) => name));
  return COPIED_TABLES.filter((table) => names.has(table));
}

/** Returns whether a session has only default values, and no run was ever accepted for it. */
function isUntouched(row: Row): boolean {
  return Object.entries(row).every(
    ([name, value]) =>
      OF_EVERY_SESSION.has(name) || (name === "next_lane_seq" ? value === 1 : value === null || value === 0),
  );
}

/** Returns the names of the tables with content; an empty list means that the store is empty. */
async function nonEmptyTables(db: Db): Promise<string[]> {
  const held: string[] = [];
  for (const table of await copiedTables(db)) {
    if (table === "session_ids") continue;
    const limit = table === "sessions" ? SESSIONS_MAX : 1;
    const { rows } = await sql<Row>`select * from ${sql.table(table)} limit ${sql.lit(limit)}`.execute(db);
    const isEmpty = table === "sessions" ? rows.length < limit && rows.every(isUntouched) : rows.length === 0;
    if (!isEmpty) held.push(table);
  }
  return held;
}
