// The simulation's interface to a database: several processes open it one after the other (embedded) or in
// parallel (server); a dying process loses its uncommitted writes; and stories read it from outside.

import type { Store } from "../../../src/store/sql.ts";
import type { Log } from "../../../src/world.ts";

/** A process's connection to the database. */
export interface Connection {
  readonly store: Store;
  /** Ends the process at once, with its open transaction. */
  kill(): void;
}

export type Row = Readonly<Record<string, unknown>>;

export interface Database {
  /** Maximum number of processes that may have it open at once. */
  readonly processesMax: number;
  /** `gather`: awaited before transactions begin that share a commit. */
  open(log: Log, gather?: () => Promise<void>): Promise<Connection>;
  /** Returns committed rows; `values` replace the query's question marks. */
  look(query: string, ...values: readonly (string | number)[]): Promise<readonly Row[]>;
  /** Resolves when no operation is under way that ends on its own. */
  idle(): Promise<void>;
  /** Deletes the database with its contents. */
  remove(): Promise<void>;
}

/** Makes an empty database. `dir`: an empty folder for its files. */
export type NewDatabase = (dir: string) => Promise<Database>;
