// Owns the way from the query builder to one `node:sqlite` connection: prepared statements and transactions.
// D1: one connection is used by one transaction at a time (`sqlite-groups.ts`).
// D2: no statement of a transaction runs after the database rolled it back by itself (full disk, I/O error).
// D3: a statement's plan is made once. A limit as a parameter, or one that is compared with a column of a
//     partial index, would have it made anew each time: those stand in the text (tests/store/plans.test.ts).
// D4: between two statements of a transaction that has worked for some time, all other work gets a turn. The
//     statements keep their order.

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
import type { Pace, PaceOf } from "../core/pace.ts";
import { asStoreProblem } from "./problems.ts";
import type { Store } from "./sql.ts";
import { type GroupConnection, type GroupHooks, groupedTransactions } from "./sqlite-groups.ts";
import { Statements } from "./sqlite-statements.ts";
import { NO_TRANSACTIONS, transactionOpener } from "./transaction.ts";

class SqliteConnection implements GroupConnection {
  readonly #database: DatabaseSync;
  readonly #file: string;
  readonly #statements: Statements;
  readonly #paceOf: PaceOf | undefined;
  /** Of the transaction that is under way. */
  #pace: Pace | undefined;
  #resting: Promise<void> | undefined;
  #inTransaction = false;

  /** `paceOf`: gives the pace of a transaction that begins. Absent: it never lets other work go first. */
  constructor(database: DatabaseSync, file: string, paceOf?: PaceOf) {
    this.#database = database;
    this.#file = file;
    this.#statements = new Statements(database);
    this.#paceOf = paceOf;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    while (this.#resting !== undefined) await this.#resting;
    // Behind a rest of its own a statement runs, however late it is by then.
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

  // biome-ignore lint/correctness/useYield: streaming is not offered; whoever asks learns it at once.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error("queries of the embedded store are not streamed: read pages");
  }

  /** Statements go on in the order in which they asked. */
  rest(): Promise<void> | undefined {
    this.#resting ??= this.#pace?.()?.then(() => {
      this.#resting = undefined;
    });
    return this.#resting;
  }

  begin(): void {
    this.#pace = this.#paceOf?.("with this step");
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
    if (!this.#database.isOpen || !this.#database.isTransaction) return;
    try {
      this.#control("rollback");
    } catch {
      // It never fails: what could not be undone makes the next `begin` fail, which somebody is told.
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

  #control(text: string): void {
    try {
      this.#statements.prepared(text).statement.run();
    } catch (error) {
      throw asStoreProblem(error, this.#file);
    }
  }

  #refuseAfterSilentRollback(): void {
    if (this.#inTransaction && !this.#database.isTransaction) {
      throw new Error(`the store ${this.#file} gave up this transaction after an earlier error in it`);
    }
  }
}

/**
 * Writes limits out in the text: with one as a parameter, the database makes the query's plan anew each time
 * it is bound. There are few different ones.
 */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    const { limit } = node;
    if (ValueNode.is(limit) && Number.isSafeInteger(limit.value)) this.append(`limit ${limit.value}`);
    else super.visitLimit(node);
  }
}

/** Several may ask at once, which spares each query a lock: the connection itself keeps them in order. */
class Adapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

/** The query builder's dialect over one connection, for reading. */
export function dialectOf(connection: DatabaseConnection): Dialect {
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

/**
 * The query builder's dialect for reading committed rows: each query is one step and waits for nothing.
 * `writer` is the connection that writes the same file. It reads while it has no transaction open, because
 * each of its commits empties the page cache of every other connection. Default: `reader` reads all.
 */
export function sqliteDialect(reader: DatabaseSync, file: string, writer?: DatabaseSync): Dialect {
  const cold = new SqliteConnection(reader, file);
  if (writer === undefined) return dialectOf(cold);
  const warm = new SqliteConnection(writer, file);
  const isForWriter = ({ query }: CompiledQuery): boolean =>
    query.kind === "SelectQueryNode" && writer.isOpen && !writer.isTransaction;
  return dialectOf({
    executeQuery: (query) => (isForWriter(query) ? warm : cold).executeQuery(query),
    streamQuery: () => cold.streamQuery(),
  });
}

/**
 * Transactions on an open connection, one after the other; those that are ready at once share a commit.
 */
export function sqliteTransactions(
  database: DatabaseSync,
  file: string,
  around: GroupHooks & { readonly paceOf?: PaceOf | undefined } = {},
): Store["transaction"] {
  const connection = new SqliteConnection(database, file, around.paceOf);
  const open = transactionOpener<SqliteConnection>(dialectOf(connection));
  return groupedTransactions({ connection, open: () => open(connection), ...around });
}
