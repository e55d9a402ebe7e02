// Types for all queries: a database to read from, and transactions to write in. A transaction that throws has
// no effect. In the embedded store, transactions run one after the other. In a cluster they run concurrently,
// so a transaction first locks the rows that its decision depends on (`locks.ts`).

import {
  type Compilable,
  type Kysely,
  type RawBuilder,
  type SelectQueryBuilder,
  type SqlBool,
  sql,
  type Transaction,
} from "kysely";
import type { StoreKind } from "./schema/definition.ts";
import type { Tables } from "./schema/tables.ts";

/** A database that can be read. */
export type Db = Kysely<Tables>;
/** A transaction, which can read and write. Functions that only read take a `Db`. */
export type Tx = Transaction<Tables>;

export interface Store {
  readonly kind: StoreKind;
  /** Reads the last committed state, outside any transaction. */
  readonly db: Db;
  /**
   * Like `db`, but runs slow queries in another thread, so that they do not block the event loop. Absent if
   * queries of `db` never block the event loop.
   */
  readonly readWorker?: Db;
  /**
   * Runs `work` in one write transaction. Start side effects only after the returned promise has resolved.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Returns the reason why the store currently refuses writes, without a path. Absent if the store is not
   * monitored.
   */
  refusal?(): Promise<string | undefined>;
  /**
   * Returns the path of a transcript's JSONL copy, whether or not the file exists. Undefined in a cluster.
   */
  transcriptPath(sessionId: string): string | undefined;
  /** Like `transcriptPath`, but undefined if the file does not exist: an empty transcript has no copy yet. */
  writtenTranscript(sessionId: string): string | undefined;
  /**
   * Writes the log into the database file and empties it, so that it holds no deleted text. Does so later if
   * a reader needs the log. Absent if the log is the server's.
   */
  emptyLog?(): void;
  /** Services for processes that share the store. Absent if only this process uses it. */
  readonly shared?: SharedStore;
  close(): Promise<void>;
}

/** Services of a shared database in addition to its tables. */
export interface SharedStore {
  /**
   * Returns the current time by the database's clock, in ms since 1970. Estimates it from the last
   * measurement, without a query.
   */
  now(): number;
  /**
   * Runs a transaction on a reserved connection, ahead of all queued work. Only for the few short writes that
   * keep the process alive, such as renewing its lease. Urgent transactions run one at a time.
   */
  urgently: Store["transaction"];
  /**
   * Measures the database's clock again, and checks that messages arrive. Call it about once a second.
   */
  syncClock(): Promise<void>;
  /** Returns whether messages of the other processes have not arrived for a while. */
  isDeaf(): boolean;
  /** The address at which other processes reach only this one. */
  readonly address: string;
  /**
   * Sends messages to the other processes, or to one `address`, outside any transaction. A message is a hint
   * and may be lost. The sender does not receive its own messages. Rejects if messages are known to be lost.
   * The maximum length of a message is `TRANSPORT_MESSAGE_MAX_BYTES`.
   */
  notify(texts: readonly string[], address?: string): Promise<void>;
  /**
   * Subscribes to the messages of the other processes. `onGap` is called when messages may have been lost;
   * the subscriber must then read the affected rows again.
   */
  listen(onText: (text: string) => void, onGap: () => void): Promise<() => Promise<void>>;
}

/** Maximum size of one message between processes. PostgreSQL accepts less than 8,000 bytes. */
export const TRANSPORT_MESSAGE_MAX_BYTES = 7_800;

/** Returns the kind of database behind a `Db`. */
export function kindOf(db: Db): StoreKind {
  return db.getExecutor().adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

/** Returns texts as the one parameter that `isInList` expects. */
export function listOf(db: Db, texts: readonly string[]): string | readonly string[] {
  return kindOf(db) === "sqlite" ? JSON.stringify(texts) : texts;
}

/** Returns a condition that matches rows whose column holds one of the texts in `list` (`listOf`). */
export function isInList(db: Db, column: string, list: ReturnType<typeof listOf>): RawBuilder<SqlBool> {
  return kindOf(db) === "sqlite"
    ? sql`${sql.ref(column)} in (select value from json_each(${list}))`
    : sql`${sql.ref(column)} = any(${list}::text[])`;
}

/**
 * Returns a condition that matches rows whose column holds one of these texts. They are one parameter, so the
 * statement is the same for any number of texts.
 */
export function isAmong(db: Db, column: string, texts: readonly string[]): RawBuilder<SqlBool> {
  return isInList(db, column, listOf(db, texts));
}

/** Returns the number of rows of a query. */
export async function countRows<DB, T extends keyof DB, O>(
  query: SelectQueryBuilder<DB, T, O>,
): Promise<number> {
  const count = query.clearSelect().select((eb) => eb.fn.countAll().as("n"));
  const { n } = (await count.executeTakeFirstOrThrow()) as { readonly n: string | number | bigint };
  return Number(n);
}

/** Runs a statement. Returns whether it inserted, changed or deleted any row. */
export async function changesRows(tx: Tx, statement: Compilable): Promise<boolean> {
  return ((await tx.executeQuery(statement)).numAffectedRows ?? 0n) > 0n;
}

/** A row with the fields of a record, in which null stands for an absent field. */
export type Nulls<T> = { [K in keyof T]-?: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] };

/** Returns the row without the fields that are null. */
export function withoutNulls<T extends object>(row: Nulls<T>): T {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as T;
}
