// Owns what every query needs: a database to read from, and transactions to write in.
// S1: writes happen in transactions only, and a transaction that throws leaves nothing behind.
// S2: transactions of one store run one after the other (embedded) or serialise on row locks (cluster): what
//     a transaction decides by, it has locked before (`locks.ts`).

import type { Kysely, Transaction } from "kysely";
import type { Tables } from "./tables.ts";

/** Enough to read. */
export type Db = Kysely<Tables>;
/** Enough to write. Whoever asks for a `Tx` may change rows; whoever asks for a `Db` may not. */
export type Tx = Transaction<Tables>;

export type StoreKind = "sqlite" | "postgres";

export interface Store {
  readonly kind: StoreKind;
  /** For queries outside a transaction: the last committed state. */
  readonly db: Db;
  /**
   * The same, for questions that may take long: never on the event loop's time. Absent: `db` never is.
   */
  readonly readWorker?: Db;
  /** Runs `work` in one write transaction. Its side effects must wait for the returned promise. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Why writing is refused at the moment, in words without a place. Absent: nobody watches. */
  refusal?(): Promise<string | undefined>;
  /** Where the readable copy of a transcript lies, or will; absent in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
  /** The same once the copy exists: a transcript in which nothing was said has none yet. */
  writtenTranscript(sessionId: string): string | undefined;
  /** What several processes need to share the store. Absent: this process has it alone. */
  readonly shared?: SharedStore;
  close(): Promise<void>;
}

/** What a database that many processes share gives them beside its tables. */
export interface SharedStore {
  /** ms since 1970 by the database's clock, as far as is known: never asks the database. */
  now(): number;
  /**
   * A transaction that waits behind nobody's work, on a connection of its own: one at a time, for the few
   * short things by which the process stays alive.
   */
  urgently: Store["transaction"];
  /** Looks at the database's clock again. To be called about once a second. */
  syncClock(): Promise<void>;
  /**
   * Sends messages to the other processes, outside any transaction. A message is a hint: it may be lost, and
   * the sender does not receive it. Rejects if messages are known to be lost. Each message is at most
   * `TRANSPORT_MESSAGE_MAX_BYTES` long.
   */
  notify(texts: readonly string[]): Promise<void>;
  /** Hears the other processes. `onGap`: some hints may have been lost; look at the rows. */
  listen(onText: (text: string) => void, onGap: () => void): Promise<() => Promise<void>>;
}

/** Bytes of one text on the wire between processes: PostgreSQL takes less than 8,000. */
export const TRANSPORT_MESSAGE_MAX_BYTES = 7_800;

/**
 * The type of texts on PostgreSQL: ordered and compared by their bytes, as the embedded database does it.
 * Part of the migrations: never changed.
 */
export const POSTGRES_TEXT = 'text collate "C"';

/** Which database a query is written for. */
export function kindOf(db: Db): StoreKind {
  return db.getExecutor().adapter.supportsTransactionalDdl ? "postgres" : "sqlite";
}

/** A column as a field that is there only when it is set. */
export function present<K extends string, V>(name: K, value: V | null): { [P in K]?: V } {
  return value === null ? {} : ({ [name]: value } as { [P in K]?: V });
}
