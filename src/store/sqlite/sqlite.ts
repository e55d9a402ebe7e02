// Owns the embedded store: one database file, to which only one process writes. A file that is newer,
// damaged, not a Parley store or not writable is refused before anything is written to it.
// The rows of a transaction are on disk when its promise resolves; with durability "full" they also survive a
// power loss. Reads never wait for an open transaction. They see the last committed state that is on disk.
// Slow reads run in the read worker (sqlite/read-connection.ts).

import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createPaces } from "../../core/pace.ts";
import { ensureFolder } from "../../world/folders.ts";
import type { Clock } from "../../world/plain.ts";
import type { Log } from "../../world.ts";
import { asStoreProblem, StoreProblem } from "../problems.ts";
import { SCHEMA_VERSION } from "../schema/conversion.ts";
import type { Store } from "../sql.ts";
import { refuseDamagedFile, sizeOf } from "./check.ts";
import { BEGIN_COUNTING, committedRows, readingThrough, sqliteTransactions } from "./driver.ts";
import { StoreKeeper } from "./keeper.ts";
import { lockForCheck, lockStore } from "./lock.ts";
import { afterSync, LogSync } from "./log-sync.ts";
import { lostSinceMark } from "./loss.ts";
import { MarkWriter, readMark } from "./mark.ts";
import { PageCheck } from "./pages.ts";
import { ReadWorkerConnection } from "./read-connection.ts";
import type { ReadWorkerOptions } from "./read-worker.ts";
import { APPLICATION_ID, bringUp, versionProblem } from "./schema.ts";
import { distrust } from "./trust.ts";

interface SqliteOptions {
  /**
   * Absolute path of the store directory. If the directory does not exist, it is created, and only its owner
   * may access it.
   */
  readonly dir: string;
  /**
   * `full`: a commit survives a power loss. `normal`: a commit survives a crash of the process, but a power
   * loss may undo the last few commits.
   */
  readonly durability: "full" | "normal";
  readonly log: Log;
  /** Clock for work that is delayed after a commit. `StoreKeeper` describes the behaviour without a clock. */
  readonly clock?: Clock;
  /**
   * Called before a commit group begins, so that waiting callers can start their transactions and share the
   * commit. If absent, the group begins at once.
   */
  readonly gather?: () => Promise<void>;
}

export const STORE_FILE = "parley.sqlite";

/** Maximum wait for the lock of another program. It is short, because waiting blocks the process. */
const BUSY_TIMEOUT_MS = 250;
const OPENING = { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: false };
/** Cache size of the writer. A larger one does not make runs faster, and an idle gateway would keep it. */
const CACHE_KIB = 4_096;
/** Cache size of the read worker, which exists only after the first search. */
const SEARCH_CACHE_KIB = 16_384;
/**
 * Cache size of the reader. It is small, because the reader serves only raw SQL, and other reads while a
 * transaction is open. The writer serves all other reads.
 */
const READER_CACHE_KIB = 2_048;
/**
 * Length of the log, in pages, at which a commit checkpoints it (16 MB). A page that changed many times is
 * then written to the database only once, and a start after a crash reads little more than this.
 */
const CHECKPOINT_PAGES = 4_000;

/**
 * Opens the store of one gateway. Creates or converts it if necessary. Holds the lock of the directory until
 * `close`. Rejects with a `StoreProblem` if a person has to fix something.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { dir, log, durability, clock } = options;
  const file = join(dir, STORE_FILE);
  try {
    await ensureFolder(dir);
    if (!statSync(dir).isDirectory()) throw new StoreProblem("not_a_directory", dir);
  } catch (error) {
    throw asStoreProblem(error, dir);
  }
  const unlock = lockStore(dir);
  let writer: DatabaseSync | undefined;
  let look: Look | undefined;
  try {
    const isShort = refuseDamagedFile(dir, file);
    writeFileSync(file, "", { flag: "a", mode: 0o600 });
    look = lookBefore(file, isShort);
    if (look.isMarkDamaged)
      log.warn({ file }, "could not read the high-water mark; opening the store without it");
    writer = new DatabaseSync(file, OPENING);
    distrust(writer);
    const { version } = look;
    const journal = writer.prepare("pragma journal_mode = wal").get();
    if (journal?.journal_mode !== "wal") throw new StoreProblem("readonly", file);
    // SQLite syncs only checkpoints and new rounds of the log; `LogSync` syncs the commits. Deleted rows are
    // overwritten with zeros.
    writer.exec(`pragma synchronous = normal; pragma secure_delete = on; pragma cache_size = -${CACHE_KIB}`);
    // The version in a damaged header may be wrong, so that nothing fits.
    try {
      bringUp(writer, version);
    } catch (error) {
      const isMisfit =
        error instanceof Error && /duplicate column|already exists|no such/.test(error.message);
      throw isMisfit ? new StoreProblem("corrupt", file, { detail: error.message }) : error;
    }
    if (version > 0 && version !== SCHEMA_VERSION)
      log.info({ file, from: version, to: SCHEMA_VERSION }, "store converted");
    // Set only now, because a conversion may sort more rows than fit into memory.
    writer.exec(`pragma temp_store = memory; pragma wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    writer.exec(BEGIN_COUNTING);
    const reader = new DatabaseSync(file, OPENING);
    distrust(reader);
    reader.exec(`pragma query_only = on; pragma cache_size = -${READER_CACHE_KIB}`);
    look.database.close();
    const onFailure = (problem: StoreProblem): void => {
      log.error({ err: problem, file }, "could not sync the log; closed the store");
      keeper.stop();
      reader.close();
      writer?.close();
    };
    // With durability "normal", commits do not wait for the disk.
    const sync = durability === "full" ? new LogSync({ file, onFailure }) : undefined;
    const readWorker = new ReadWorkerConnection(workerStart(file));
    const keeper = new StoreKeeper({
      file,
      reader,
      sync,
      writer: new MarkWriter(file),
      durability,
      clock,
      log,
    });
    return storeOf({ dir, file, writer, reader, readWorker, unlock, keeper, sync, options });
  } catch (error) {
    if (look?.database.isOpen) look.database.close();
    writer?.close();
    unlock();
    throw asStoreProblem(error, file);
  }
}

/** Runs the checks of a starting gateway, and throws the same errors. Changes nothing. */
export function compareAsStart(dir: string): void {
  const file = join(dir, STORE_FILE);
  const unlock = lockForCheck(dir);
  try {
    const isShort = refuseDamagedFile(dir, file);
    // A journal is left by an interrupted transaction. SQLite would undo it, and so change the file.
    if (sizeOf(file) === 0 || sizeOf(`${file}-journal`) > 0) return;
    lookBefore(file, isShort).database.close();
  } catch (error) {
    throw asStoreProblem(error, file);
  } finally {
    unlock();
  }
}

interface Look {
  /**
   * Read-only connection. It is closed only after the writer was opened, so that SQLite reads the WAL only
   * once.
   */
  readonly database: DatabaseSync;
  readonly version: number;
  readonly isMarkDamaged: boolean;
}

/** Checks a store file before it is opened for writing. Throws if the file has lost data. */
function lookBefore(file: string, isShort: boolean): Look {
  const mark = readMark(file);
  const isMarkDamaged = mark === "damaged";
  // If there is a journal, opening the file undoes an interrupted transaction, which needs write access.
  const readOnly = sizeOf(`${file}-journal`) === 0;
  const database = new DatabaseSync(file, { readOnly, timeout: BUSY_TIMEOUT_MS });
  try {
    distrust(database);
    const version = checkedVersion(database, file);
    const lost = lostSinceMark(isMarkDamaged ? undefined : mark, file, database, version);
    if (lost !== undefined) throw new StoreProblem("behind", file, { detail: lost });
    // Of a file that is too short, the missing end may not be in the log either.
    const check = isShort ? database.prepare("pragma quick_check(1)").get() : { quick_check: "ok" };
    const found = String(Object.values(check ?? {})[0]);
    if (found !== "ok") throw new StoreProblem("corrupt", file, { detail: `its end is missing: ${found}` });
    return { database, version, isMarkDamaged };
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Checks that the file is a store of this program and returns its schema version, or 0 for an empty file.
 * Only reads.
 */
function checkedVersion(database: DatabaseSync, file: string): number {
  const read = (name: string): number => Number(database.prepare(`pragma ${name}`).get()?.[name]);
  const version = read("user_version");
  const tables = Number(database.prepare("select count(*) as n from sqlite_schema").get()?.n);
  if (tables > 0 && read("application_id") !== APPLICATION_ID) {
    throw new StoreProblem("corrupt", file, { detail: "it is a database of another program" });
  }
  const problem = versionProblem(database, version, file);
  if (problem !== undefined) throw problem;
  return version;
}

function workerStart(file: string): ReadWorkerOptions {
  return { file, busyTimeoutMs: BUSY_TIMEOUT_MS, cacheKib: SEARCH_CACHE_KIB };
}

interface Parts {
  readonly dir: string;
  readonly file: string;
  readonly writer: DatabaseSync;
  readonly reader: DatabaseSync;
  readonly readWorker: ReadWorkerConnection;
  readonly unlock: () => void;
  readonly keeper: StoreKeeper;
  readonly sync: LogSync | undefined;
  readonly options: SqliteOptions;
}

function storeOf(parts: Parts): Store {
  const { file, reader, readWorker, writer, sync } = parts;
  const db = committedRows(reader, file, { writer, sync });
  const { clock, gather, log } = parts.options;
  const pages = clock === undefined ? undefined : new PageCheck({ start: workerStart(file), clock, log });
  const transcriptPath = (sessionId: string): string => join(parts.dir, `${sessionId}.jsonl`);
  const transaction = sqliteTransactions(writer, file, {
    gather,
    sync,
    paceOf: clock === undefined ? undefined : createPaces({ clock, gather }),
    onCommitted: () => parts.keeper.noteCommit(),
  });
  let open = true;
  return {
    kind: "sqlite",
    db,
    readWorker: readingThrough(afterSync(readWorker, sync)),
    transaction,
    emptyLog: () => {
      parts.keeper.emptyAtCommit();
      // If it fails, the next commit empties the log.
      transaction(async () => {}).catch(() => {});
    },
    transcriptPath,
    writtenTranscript: (sessionId) => {
      const path = transcriptPath(sessionId);
      return existsSync(path) ? path : undefined;
    },
    close: async () => {
      if (!open) return;
      open = false;
      while (sync?.pending !== undefined) await sync.pending.catch(() => {});
      const readWorkerEnded = Promise.all([readWorker.close(), pages?.close()]);
      parts.keeper.closing();
      const hasFailed = !writer.isOpen;
      if (!hasFailed) {
        sync?.close();
        reader.close();
        writer.close();
      }
      await readWorkerEnded;
      if (hasFailed) sync?.close();
      parts.keeper.finish();
      parts.unlock();
    },
  };
}
