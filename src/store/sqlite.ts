// Owns the embedded store: one database file, one process that writes it.
// Q1: a file that is newer, damaged, foreign or not ours to write is refused before anything is written to
//      it.
// Q2: what a transaction wrote is on disk when its promise resolves (durability "full": also after power
//      loss).
// Q3: reading never waits for an open transaction; it sees the last committed state.
// Q4: what may take long is read by a thread of its own (sqlite-aside.ts).

import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { ensureFolder } from "../world/folders.ts";
import type { Log } from "../world.ts";
import { lockStore } from "./lock.ts";
import { APPLICATION_ID, migrate, SCHEMA_VERSION } from "./migrations.ts";
import { asStoreProblem, StoreProblem } from "./problems.ts";
import type { Store } from "./sql.ts";
import { AsideConnection } from "./sqlite-aside.ts";
import { refuseDamagedFile } from "./sqlite-check.ts";
import { asideDialect, sqliteDialect, sqliteTransactions } from "./sqlite-driver.ts";
import { distrust } from "./sqlite-trust.ts";
import type { Tables } from "./tables.ts";

interface SqliteOptions {
  /** Absolute path of the store directory; made, for its owner only, if it does not exist. */
  readonly dir: string;
  /**
   * `full`: a commit survives power loss. `normal`: it survives the process, and a power loss may cost the
   * last few.
   */
  readonly durability: "full" | "normal";
  readonly log: Log;
  /** Lets everything ask for a transaction that is about to: those share a commit. Default: nobody waits. */
  readonly gather?: () => Promise<void>;
}

/** The database's name in the store directory. */
export const STORE_FILE = "parley.sqlite";

/** How long a statement waits for another program's lock. Waiting blocks the process, so it is short. */
const BUSY_TIMEOUT_MS = 250;
const CACHE_KIB = 16_384;
/**
 * Pages that the log holds before it is written into the database: 16 MB. Pages that change again and again
 * are then written there once for many changes; a start after a crash reads that much at most.
 */
const CHECKPOINT_PAGES = 4_000;

/**
 * Opens, and if need be makes or migrates, the store of one gateway. Holds the directory's lock until
 * `close`. What a person has to put right rejects with a `StoreProblem`.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { dir } = options;
  const file = join(dir, STORE_FILE);
  await makeDirectory(dir);
  const unlock = lockStore(dir);
  let writer: DatabaseSync | undefined;
  try {
    refuseDamagedFile(dir, file);
    writeFileSync(file, "", { flag: "a", mode: 0o600 });
    writer = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: false });
    distrust(writer);
    const version = checkedVersion(writer, file);
    const journal = writer.prepare("pragma journal_mode = wal").get();
    if (journal?.journal_mode !== "wal") throw new StoreProblem("readonly", file);
    writer.exec(`pragma synchronous = ${options.durability}; pragma cache_size = -${CACHE_KIB}`);
    migrate(writer, version);
    if (version > 0 && version !== SCHEMA_VERSION)
      options.log.info({ file, from: version, to: SCHEMA_VERSION }, "store migrated");
    // Only now: a migration may sort more than fits.
    writer.exec(`pragma temp_store = memory; pragma wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    const reader = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: false });
    distrust(reader);
    reader.exec(`pragma query_only = on; pragma cache_size = -${CACHE_KIB}`);
    const { gather } = options;
    return storeOf({ dir, file, writer, reader, unlock, gather });
  } catch (error) {
    writer?.close();
    unlock();
    throw asStoreProblem(error, file);
  }
}

async function makeDirectory(dir: string): Promise<void> {
  try {
    await ensureFolder(dir);
    if (!statSync(dir).isDirectory()) throw new StoreProblem("not_a_directory", dir);
  } catch (error) {
    throw asStoreProblem(error, dir);
  }
}

/** The file's schema version; 0 for an empty one. Reads only. */
function checkedVersion(database: DatabaseSync, file: string): number {
  const read = (name: string): number => Number(database.prepare(`pragma ${name}`).get()?.[name]);
  const version = read("user_version");
  const tables = Number(database.prepare("select count(*) as n from sqlite_schema").get()?.n);
  if (tables > 0 && read("application_id") !== APPLICATION_ID) {
    throw new StoreProblem("corrupt", file, { detail: "it is another program's database" });
  }
  if (version > SCHEMA_VERSION) {
    throw new StoreProblem("newer", file, { detail: `version ${version}, known up to ${SCHEMA_VERSION}` });
  }
  return version;
}

interface Parts {
  readonly dir: string;
  readonly file: string;
  readonly writer: DatabaseSync;
  readonly reader: DatabaseSync;
  readonly unlock: () => void;
  readonly gather: SqliteOptions["gather"];
}

function storeOf(parts: Parts): Store {
  const db = new Kysely<Tables>({ dialect: sqliteDialect(parts.reader, parts.file) });
  const { file } = parts;
  const aside = new AsideConnection({ file, busyTimeoutMs: BUSY_TIMEOUT_MS, cacheKib: CACHE_KIB });
  let open = true;
  return {
    kind: "sqlite",
    db,
    aside: new Kysely<Tables>({ dialect: asideDialect(aside) }),
    transaction: sqliteTransactions(parts.writer, parts.file, parts.gather),
    transcriptPath: (sessionId) => join(parts.dir, `${sessionId}.jsonl`),
    close: async () => {
      if (!open) return;
      open = false;
      const asideEnded = aside.close();
      parts.reader.close();
      parts.writer.close();
      parts.unlock();
      await asideEnded;
    },
  };
}
