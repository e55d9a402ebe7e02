// Caches the prepared statements of one `node:sqlite` connection.

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

/** Maximum number of cached statements. The least recently used one is evicted first. */
const STATEMENTS_MAX = 256;

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

export interface Ran {
  readonly rows: Record<string, unknown>[];
  /** Result of a statement that returns no rows. */
  readonly did?: { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint };
}

export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  run(sql: string, parameters: readonly unknown[]): Ran {
    const { statement, returnsRows } = this.prepared(sql);
    const values = parameters as SQLInputValue[];
    if (returnsRows) return { rows: statement.all(...values) };
    return { rows: [], did: statement.run(...values) };
  }

  prepared(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known !== undefined) {
      this.#prepared.delete(sql);
      this.#prepared.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    this.#prepared.set(sql, prepared);
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size > STATEMENTS_MAX && oldest !== undefined) this.#prepared.delete(oldest);
    return prepared;
  }
}
