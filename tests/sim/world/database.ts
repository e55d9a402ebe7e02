// The simulation's interface to a database. Processes open it one after the other (embedded) or in parallel
// (server). A dying process loses its uncommitted writes. The story reads committed rows from outside.

import type { Store } from "../../../src/store/sql.ts";
import type { Log } from "../../../src/world.ts";

/** A process's connection to the database. */
export interface Connection {
  readonly store: Store;
  /** Ends the connection at once and rolls back its open transaction. */
  kill(): void;
}

export type Row = Readonly<Record<string, unknown>>;

export interface Database {
  /** Maximum number of processes with an open connection. */
  readonly processesMax: number;
  /** Opens a connection. `gather`: awaited before each group of transactions that share a commit. */
  open(log: Log, gather?: () => Promise<void>): Promise<Connection>;
  /** Returns committed rows. `values` replace the question marks of the query. */
  look(query: string, ...values: readonly (string | number)[]): Promise<readonly Row[]>;
  /** Resolves when every operation that can finish without a further step of the story has finished. */
  idle(): Promise<void>;
  /** Deletes the database with its contents. */
  remove(): Promise<void>;
}

/** Makes an empty database. `dir`: an empty folder for its files. */
export type NewDatabase = (dir: string) => Promise<Database>;
