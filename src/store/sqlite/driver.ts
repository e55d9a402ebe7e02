// Connects the query builder to one `node:sqlite` connection: prepared statements and transactions.
// D1: only one transaction at a time uses the connection (`sqlite/groups.ts`).
// D2: SQLite itself may roll back a transaction (full disk, I/O error). After that, no further statement of
//     this transaction runs.
// D3: SQLite plans each statement only once. If a limit, or a value for a column that a partial index tests,
//     were a parameter, SQLite would plan again for each new value. So these values are written into the SQL
//     text (tests/store/plans.test.ts).
// D4: a long transaction yields to other work between two statements. The order of its statements does not
//     change.

import type { DatabaseSync } from "node:sqlite";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type LimitNode,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  ValueNode,
} from "kysely";
import type { Pace, PaceOf } from "../../core/pace.ts";
import { databaseOn } from "../executor.ts";
import { asStoreProblem } from "../problems.ts";
import type { Db, Store } from "../sql.ts";
import { NO_TRANSACTIONS, transactionOpener } from "../transaction.ts";
import { type GroupConnection, type GroupHooks, groupedTransactions } from "./groups.ts";
import { afterSync, type LogSync } from "./log-sync.ts";
import { Statements } from "./statements.ts";

/**
 * Numbers a commit in SQLite's table of the last row numbers, as if commits were a table. This costs no
 * further page, because new messages change that table as well.
 */
const COUNT_COMMIT = "update sqlite_sequence set seq = seq + 1 where name = 'commits'";
/** Begins the numbers of a file that has none. */
export const BEGIN_COUNTING = `insert into sqlite_sequence (name, seq)
  select 'commits', 0 where not exists (select 1 from sqlite_sequence where name = 'commits')`;

interface TransactionParts {
  /**
   * Returns the pace of a new transaction, which decides when it must yield. If absent, transactions never
   * yield.
   */
  readonly paceOf?: PaceOf | undefined;
  /** Syncs commits to disk. If absent, the operating system writes them some time later. */
  readonly sync?: LogSync | undefined;
}

class SqliteConnection implements GroupConnection {
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #statements: Statements;
  readonly #paceOf: PaceOf | undefined;
  readonly #sync: LogSync | undefined;
  /** Pace of the current transaction. */
  #pace: Pace | undefined;
  #resting: Promise<void> | undefined;
  #inTransaction = false;
  /** Number of rows that the connection had changed at its last commit. */
  #changes = 0;

  constructor(database: DatabaseSync, file: string, { paceOf, sync }: TransactionParts = {}) {
    this.#database = database;
    this.#file = file;
    this.#statements = new Statements(database);
    this.#paceOf = paceOf;
    this.#sync = sync;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    while (this.#resting !== undefined) await this.#resting;
    // A statement waits for at most one pause that it begins itself, even if the next pause is already due.
    const rest = this.rest();
    if (rest !== undefined) await rest;
    try {
      this.#refuseAfterSilentRollback();
      const { rows, did } = this.#statements.run(query.sql, query.parameters);
      if (did === undefined) return { rows: rows as R[] };
      const { changes, lastInsertRowid } = did;
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      throw asStoreProblem(error, this.#file);
    }
  }

  // biome-ignore lint/correctness/useYield: streaming is not supported; the first call throws.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("the store cannot stream queries: read page by page");
  }

  /** Yields to other work if a pause is due. Afterwards the statements run in the order of the calls. */
  rest(): Promise<void> | undefined {
    this.#resting ??= this.#pace?.()?.then(() => {
      this.#resting = undefined;
    });
    return this.#resting;
  }

  begin(): void {
    this.#sync?.refuse();
    this.#pace = this.#paceOf?.("with this step");
    this.#control("begin immediate");
    this.#inTransaction = true;
  }

  commit(): Promise<void> | undefined {
    this.#refuseAfterSilentRollback();
    const isSynced = this.#sync !== undefined && this.#count();
    this.#control("commit");
    this.#inTransaction = false;
    return isSynced ? this.#sync?.commit() : undefined;
  }

  rollback(): void {
    this.#inTransaction = false;
    if (!this.#database.isOpen || !this.#database.isTransaction) return;
    try {
      this.#control("rollback");
    } catch {
      // A rollback must not throw. If it failed, the next `begin` fails and reports the error.
    }
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

  /** Numbers the commit (keeper.ts), unless the transaction has written nothing. Then it returns false. */
  #count(): boolean {
    const changes = Number(this.#statements.run("select total_changes() as n", []).rows[0]?.n);
    if (changes === this.#changes) return false;
    this.#control(COUNT_COMMIT);
    this.#changes = changes + 1;
    return true;
  }

  #control(text: string): void {
    try {
      this.#statements.prepare(text).statement.run();
    } catch (error) {
      throw asStoreProblem(error, this.#file);
    }
  }

  #refuseAfterSilentRollback(): void {
    if (this.#inTransaction && !this.#database.isTransaction) {
      throw new Error(`the store ${this.#file} rolled back this transaction after an earlier error in it`);
    }
  }
}

/**
 * Writes limits into the SQL text, because SQLite plans a query again for each new value of a limit that is a
 * parameter. A query has only a few different limits.
 */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    const { limit } = node;
    if (ValueNode.is(limit) && Number.isSafeInteger(limit.value)) this.append(`limit ${limit.value}`);
    else super.visitLimit(node);
  }
}

/**
 * Tells the query builder that it need not run queries one at a time: the connection itself keeps them in
 * order.
 */
class Adapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** Returns the dialect of one connection. */
function dialectOf(connection: DatabaseConnection): Dialect {
  return {
    createAdapter: () => new Adapter(),
    createDriver: () => ({
      ...NO_TRANSACTIONS,
      acquireConnection: async () => connection,
      releaseConnection: async () => {},
    }),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new QueryCompiler(),
  };
}

/** Returns a database that reads through one connection. */
export function readingThrough(connection: DatabaseConnection): Db {
  return databaseOn(dialectOf(connection), connection);
}

/**
 * Returns a database that reads committed rows. A query never waits for a transaction. `writer` is the
 * connection that writes the same file. While it has no open transaction, it also serves reads, except raw
 * SQL, because each commit empties the page caches of all other connections. Without `writer`, `reader`
 * serves all reads.
 */
export function committedRows(
  reader: DatabaseSync,
  file: string,
  { writer, sync }: { readonly writer?: DatabaseSync; readonly sync?: LogSync | undefined } = {},
): Db {
  const cold = new SqliteConnection(reader, file);
  if (writer === undefined) return readingThrough(cold);
  const warm = new SqliteConnection(writer, file);
  const isForWriter = ({ query }: CompiledQuery): boolean =>
    query.kind === "SelectQueryNode" && writer.isOpen && !writer.isTransaction;
  const reading: DatabaseConnection = {
    executeQuery: (query) => (isForWriter(query) ? warm : cold).executeQuery(query),
    streamQuery: () => cold.streamQuery(),
  };
  return readingThrough(afterSync(reading, sync));
}

/**
 * Runs transactions on an open connection, one after the other. Transactions that are queued at the same time
 * share a commit.
 */
export function sqliteTransactions(
  database: DatabaseSync,
  file: string,
  around: GroupHooks & TransactionParts = {},
): Store["transaction"] {
  const connection = new SqliteConnection(database, file, around);
  const open = transactionOpener<SqliteConnection>(dialectOf(connection));
  return groupedTransactions({ connection, open: () => open(connection), ...around });
}
