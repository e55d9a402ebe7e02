// Owns the way from the query builder to one `node:sqlite` connection: prepared statements and transactions.
// D1: one connection is used by one transaction at a time (`sqlite-groups.ts`).
// D2: no statement of a transaction runs after the database rolled it back by itself (full disk, I/O error).

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import {
  type CompiledQuery,
  type Dialect,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { asStoreProblem } from "./problems.ts";
import type { Store } from "./sql.ts";
import { type GroupConnection, groupedTransactions } from "./sqlite-groups.ts";
import { NO_TRANSACTIONS, transactionOpener } from "./transaction.ts";

/** Statements kept prepared; the one unused for the longest time goes first. */
const STATEMENTS_MAX = 256;

interface Prepared {
  readonly statement: StatementSync;
  readonly returnsRows: boolean;
}

class SqliteConnection implements GroupConnection {
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #statements = new Map<string, Prepared>();
  #inTransaction = false;

  constructor(database: DatabaseSync, file: string) {
    this.#database = database;
    this.#file = file;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      this.#refuseAfterSilentRollback();
      const { statement, returnsRows } = this.#prepared(query.sql);
      const parameters = query.parameters as SQLInputValue[];
      if (returnsRows) return { rows: statement.all(...parameters) as R[] };
      const { changes, lastInsertRowid } = statement.run(...parameters);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      throw asStoreProblem(error, this.#file);
    }
  }

  // biome-ignore lint/correctness/useYield: streaming is not offered; whoever asks learns it at once.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("queries of the embedded store are not streamed: read pages");
  }

  begin(): void {
    this.#control("begin immediate");
    this.#inTransaction = true;
  }

  commit(): void {
    this.#refuseAfterSilentRollback();
    this.#control("commit");
    this.#inTransaction = false;
  }

  rollback(): void {
    this.#inTransaction = false;
    if (this.#database.isOpen && this.#database.isTransaction) this.#control("rollback");
  }

  savepoint(): void {
    this.#refuseAfterSilentRollback();
    this.#control("savepoint part");
  }

  keepPart(): void {
    this.#refuseAfterSilentRollback();
    this.#control("release part");
  }

  undoPart(): void {
    this.#refuseAfterSilentRollback();
    this.#control("rollback to part");
    this.#control("release part");
  }

  #control(text: string): void {
    try {
      this.#prepared(text).statement.run();
    } catch (error) {
      throw asStoreProblem(error, this.#file);
    }
  }

  #refuseAfterSilentRollback(): void {
    if (this.#inTransaction && !this.#database.isTransaction) {
      throw new Error(`the store ${this.#file} gave up this transaction after an earlier error in it`);
    }
  }

  #prepared(sql: string): Prepared {
    const known = this.#statements.get(sql);
    if (known !== undefined) {
      this.#statements.delete(sql);
      this.#statements.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    this.#statements.set(sql, prepared);
    const [oldest] = this.#statements.keys();
    if (this.#statements.size > STATEMENTS_MAX && oldest !== undefined) this.#statements.delete(oldest);
    return prepared;
  }
}

function dialectOf(connection: SqliteConnection): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => ({
      ...NO_TRANSACTIONS,
      acquireConnection: async () => connection,
      releaseConnection: async () => {},
    }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

/** The query builder's dialect over an open connection for reading: each query is one step, nobody waits. */
export function sqliteDialect(database: DatabaseSync, file: string): Dialect {
  return dialectOf(new SqliteConnection(database, file));
}

/**
 * Transactions on an open connection, one after the other; those that are ready at once share a commit.
 * `gather`: lets everything ask that is about to.
 */
export function sqliteTransactions(
  database: DatabaseSync,
  file: string,
  gather?: () => Promise<void>,
): Store["transaction"] {
  const connection = new SqliteConnection(database, file);
  const open = transactionOpener<SqliteConnection>(dialectOf(connection));
  return groupedTransactions({ connection, open: () => open(connection), gather });
}
