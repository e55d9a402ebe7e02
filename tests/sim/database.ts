// Owns what the simulation asks of a database: to be opened by several processes one after the other (embedded) or side
// by side (a server), to lose what a dying process had not committed, and to be looked at from outside.

import type { Store } from "../../src/store/sql.ts";
import type { Log } from "../../src/world.ts";

/** A process's way to the database. */
export interface Connection {
  readonly store: Store;
  /** The process is gone from one moment to the next: its open transaction with it, at once. */
  kill(): void;
}

export type Row = Readonly<Record<string, unknown>>;

export interface Database {
  /** Processes that may have it open at once. */
  readonly processesMax: number;
  /** `gather`: awaited before transactions begin that share a commit. */
  open(log: Log, gather?: () => Promise<void>): Promise<Connection>;
  /** Rows as they are committed; `values` stand for the query's question marks. */
  look(query: string, ...values: readonly (string | number)[]): Promise<readonly Row[]>;
  /** Resolves once nothing is under way in it that ends by itself. */
  idle(): Promise<void>;
  /** Takes it away with all that is in it. */
  remove(): Promise<void>;
}

/** Makes an empty database. `dir`: an empty folder, for what belongs to it on disk. */
export type NewDatabase = (dir: string) => Promise<Database>;
