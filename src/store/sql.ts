// Types that every query needs: a database to read from, and transactions to write in. A transaction that
// throws leaves nothing behind. Transactions of one store run one after the other (embedded) or serialise on
// row locks (cluster): a transaction locks the rows it decides by first (`locks.ts`).

import type { Kysely, Transaction } from "kysely";
import type { Tables } from "./schema/tables.ts";

/** Allows reading. */
export type Db = Kysely<Tables>;
/** A transaction, which may write: functions that only read take a `Db`. */
export type Tx = Transaction<Tables>;

export type StoreKind = "sqlite" | "postgres";

export interface Store {
  readonly kind: StoreKind;
  /** Reads the last committed state, outside transactions. */
  readonly db: Db;
  /**
   * The same for slow queries: runs them outside the event loop's thread. Absent: `db` never blocks the event
   * loop.
   */
  readonly readWorker?: Db;
  /** Runs `work` in one write transaction. Its side effects must wait for the returned promise. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Why writes are refused at the moment, without a path. Absent: the store is not watched. */
  refusal?(): Promise<string | undefined>;
  /** Path of a transcript's JSONL copy, whether or not it exists; absent in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
  /** The same, if the copy exists: an empty transcript has none yet. */
  writtenTranscript(sessionId: string): string | undefined;
  /** Services for several processes that share the store. Absent: this process has it alone. */
  readonly shared?: SharedStore;
  close(): Promise<void>;
}

/** Services of a shared database besides its tables. */
export interface SharedStore {
  /** ms since 1970 by the database's clock, as last measured: never queries the database. */
  now(): number;
  /**
   * Runs a transaction on a reserved connection, ahead of all queued work: one at a time, for the few short
   * writes that keep the process alive, such as its lease.
   */
  urgently: Store["transaction"];
  /** Measures the database's clock again. Call it about once a second. */
  syncClock(): Promise<void>;
  /**
   * Sends messages to the other processes, outside any transaction. A message is a hint: it may be lost, and
   * the sender does not receive it. Rejects if messages are known to be lost. Each message is at most
   * `TRANSPORT_MESSAGE_MAX_BYTES` long.
   */
  notify(texts: readonly string[]): Promise<void>;
  /** Subscribes to messages of the other processes. `onGap`: some may have been lost; read the rows again. */
  listen(onText: (text: string) => void, onGap: () => void): Promise<() => Promise<void>>;
}

/** Maximum bytes of one message between processes: PostgreSQL takes less than 8,000. */
export const TRANSPORT_MESSAGE_MAX_BYTES = 7_800;

/**
 * PostgreSQL type of texts: ordered and compared by their bytes, as in the embedded database. It is part of
 * the migrations: never change it.
 */
export const POSTGRES_TEXT = 'text collate "C"';

/** Returns the kind of database that a query is for. */
export function kindOf(db: Db): StoreKind {
  return db.getExecutor().adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

/** Returns a column as a field, or no field if it is null. */
export function present<K extends string, V>(name: K, value: V | null): { [P in K]?: V } {
  return value === null ? {} : ({ [name]: value } as { [P in K]?: V });
}
