// Compiles frequent queries once, because for a small query the query builder takes as long as the database.
// The query builder generates the text of a prepared query, with placeholders for its values, so nobody
// writes the SQL by hand. The text must not depend on the values.
// PostgreSQL uses one plan of a prepared query for all values (postgres/connection.ts), so each query must
// find its rows by an index. A constant that a partial index requires must be in the text itself.
// If the query builder has a plugin (only in tests), each query is compiled again with its values.

import { createHash } from "node:crypto";
import type { CompiledQuery, QueryResult } from "kysely";
import type { StoreKind } from "./schema/definition.ts";
import { type Db, kindOf } from "./sql.ts";

/** A query of the query builder, or of raw SQL. */
interface Query<R> {
  compile(db: Db): CompiledQuery<R>;
}

/** Marks the position of a value in a query. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A compiled query with a name. Every process gives the same text the same name. */
interface PreparedQuery<R> extends CompiledQuery<R> {
  readonly statementName: string;
}

/** Returns the name of a prepared query, or undefined if the query is not prepared. */
export function statementName(query: CompiledQuery): string | undefined {
  return (query as Partial<PreparedQuery<unknown>>).statementName;
}

/**
 * Returns a function that runs the query of `build`, which is compiled once per kind of database. Always pass
 * the same fields: set an unused one to null instead of omitting it.
 */
export function prepared<V extends object, R>(
  build: (db: Db, values: V) => Query<R>,
): (db: Db, values: V) => Promise<QueryResult<R>> {
  const made = new Map<StoreKind, PreparedQuery<R>>();
  return (db, values) => {
    const executor = db.getExecutor();
    if (executor.plugins.length > 0) return executor.executeQuery(build(db, values).compile(db));
    const kind = kindOf(db);
    let query = made.get(kind);
    if (query === undefined) {
      const placeholders = Object.keys(values).map((name) => [name, new Placeholder(name)]);
      const compiled = build(db, Object.fromEntries(placeholders) as V).compile(db);
      const digest = createHash("sha256").update(compiled.sql).digest("hex");
      query = { ...compiled, statementName: digest.slice(0, 16) };
      made.set(kind, query);
    }
    const parameters = query.parameters.map((one) =>
      one instanceof Placeholder ? (values as Readonly<Record<string, unknown>>)[one.name] : one,
    );
    return executor.executeQuery({ ...query, parameters });
  };
}
