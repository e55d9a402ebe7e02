// Reads a database file of another program, which may be damaged or hostile: only ordinary tables are read,
// and their schema cannot call functions with side effects. Opening may write to the file (SQLite applies its
// log), so the caller passes a private copy.

import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { Fields } from "../core/json.ts";
import { distrust } from "./sqlite/trust.ts";

/** The file cannot be read: it is no database, or it is damaged. */
export class ForeignFileError extends Error {}

function asForeign(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ERR_SQLITE_ERROR" && code !== "ERR_OUT_OF_RANGE") return error;
  return new ForeignFileError((error as Error).message);
}

export class ForeignDatabase {
  readonly #database: DatabaseSync;

  /** Opens a file. Throws ForeignFileError if it is no database. */
  constructor(file: string) {
    try {
      this.#database = new DatabaseSync(file, { allowExtension: false });
    } catch (error) {
      throw asForeign(error);
    }
    try {
      distrust(this.#database);
      this.#database.exec("pragma query_only = on");
    } catch (error) {
      this.close();
      throw asForeign(error);
    }
  }

  /** The version of the layout, a number that the program chose. */
  get version(): number {
    const [row] = this.rows("pragma user_version");
    return Number(row?.user_version ?? 0);
  }

  /**
   * Returns the columns of an ordinary table. The list is empty if there is no such table, or if its content
   * is computed: such a table can need any amount of memory.
   */
  columnsOf(table: string): ReadonlySet<string> {
    const [known] = this.rows("select sql from sqlite_schema where type = 'table' and name = ?", table);
    if (typeof known?.sql !== "string" || /^\s*create\s+virtual/i.test(known.sql)) return new Set();
    const columns = [...this.rows("select name, hidden from pragma_table_xinfo(?)", table)];
    if (columns.some(({ hidden }) => hidden !== 0)) return new Set();
    return new Set(columns.map(({ name }) => String(name)));
  }

  /** Yields the rows of a query. Throws ForeignFileError at a damaged page. */
  *rows(query: string, ...values: readonly SQLInputValue[]): Generator<Fields> {
    try {
      for (const row of this.#database.prepare(query).iterate(...values)) yield row;
    } catch (error) {
      throw asForeign(error);
    }
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}
