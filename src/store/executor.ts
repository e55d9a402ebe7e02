// Sends queries to one connection. The query builder's own executor awaits several promises for each query,
// which takes longer than a small query itself.
// Its own executor sends queries that can be aborted, and all queries if it has a plugin (only in tests).

import {
  type AbortableQueryOptions,
  type CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type DialectAdapter,
  Kysely,
  type QueryCompiler,
  type QueryExecutor,
  type QueryResult,
} from "kysely";
import type { Tables } from "./schema/tables.ts";
import type { Db } from "./sql.ts";

/** Parts of a dialect that all its connections share. */
type Shared = readonly [compiler: QueryCompiler, adapter: DialectAdapter];

class Executor extends DefaultQueryExecutor {
  readonly #connection: () => DatabaseConnection;

  constructor(shared: Shared, connection: () => DatabaseConnection) {
    super(...shared, { provideConnection: async (use) => use(connection()) });
    this.#connection = connection;
  }

  override executeQuery<R>(query: CompiledQuery, options?: AbortableQueryOptions): Promise<QueryResult<R>> {
    if (options?.signal !== undefined) return super.executeQuery<R>(query, options);
    try {
      return this.#connection().executeQuery<R>(query);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/**
 * Returns a function that makes an executor for a connection. The executor calls `connection` for each query;
 * it may throw to refuse the query.
 */
export function executorsOf(dialect: Dialect): (connection: () => DatabaseConnection) => QueryExecutor {
  const shared: Shared = [dialect.createQueryCompiler(), dialect.createAdapter()];
  return (connection) => new Executor(shared, connection);
}

/** Returns a database that reads through one connection. */
export function databaseOn(dialect: Dialect, connection: DatabaseConnection): Db {
  const executor = executorsOf(dialect)(() => connection);
  return new Kysely<Tables>({ config: { dialect }, dialect, driver: dialect.createDriver(), executor });
}
