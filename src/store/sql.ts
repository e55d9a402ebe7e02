// Owns what every query needs: a database to read from, and transactions to write in.
// S1: writes happen in transactions only, and a transaction that throws leaves nothing behind.
// S2: transactions of one store run one after the other (embedded) or serialise on row locks (cluster).

import type { Kysely, Transaction } from "kysely";
import type { Tables } from "./tables.ts";

/** Enough to read. */
export type Db = Kysely<Tables>;
/** Enough to write. Whoever asks for a `Tx` may change rows; whoever asks for a `Db` may not. */
export type Tx = Transaction<Tables>;

export interface Store {
  readonly kind: "sqlite";
  /** For queries outside a transaction: the last committed state. */
  readonly db: Db;
  /** Runs `work` in one write transaction. Its side effects must wait for the returned promise. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** Where the readable copy of a transcript lies; absent in a cluster. */
  transcriptPath(sessionId: string): string | undefined;
  close(): Promise<void>;
}
