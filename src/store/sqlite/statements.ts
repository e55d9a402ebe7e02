// Caches the prepared statements of one `node:sqlite` connection.

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

/** Maximum number of cached statements. The least recently used one is evicted first. */
const STATEMENTS_MAX = 256;

type Row = Record<string, unknown>;

interface Prepared {
  readonly statement: StatementSync;
  /** Names of the columns, or empty if the statement returns no rows. */
  readonly columns: readonly string[];
}

export interface Ran {
  readonly rows: Row[];
  /** Result of a statement that returns no rows. */
  readonly did?: { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
}

function rowOf(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at += 1) row[columns[at] as string] = values[at];
  return row;
}

export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run(sql: string, parameters: readonly unknown[]): Ran {
    const { statement, columns } = this.prepare(sql);
    const values = parameters as SQLInputValue[];
    if (columns.length === 0) return { rows: [], did: statement.run(...values) };
    const rows = statement.all(...values) as unknown as unknown[][];
    return { rows: rows.map((row) => rowOf(columns, row)) };
  }

  prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known !== undefined) {
      this.#prepared.delete(sql);
      this.#prepared.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    const columns = statement.columns().map(({ name }) => name);
    // Node makes arrays several times faster than objects.
    statement.setReturnArrays(true);
    const prepared = { statement, columns };
    this.#prepared.set(sql, prepared);
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size > STATEMENTS_MAX && oldest !== undefined) this.#prepared.delete(oldest);
    return prepared;
  }
}
