// Compiles frequent queries once: for a small query the query builder costs as much as the database.
// The query builder makes each prepared query, with placeholders for its values: nobody writes it a second
// time. Its text must not depend on its values.
// PostgreSQL keeps the plan of a prepared query for all values (postgres/connection.ts), so each of them must
// find its rows by an index: a constant that an index depends on is part of the text.
// With a plugin (in tests) each query is compiled again, with its values.

import { createHash } from "node:crypto";
import type { CompiledQuery, QueryResult } from "kysely";
import { type Db, kindOf, type StoreKind } from "./sql.ts";

type Values = Readonly<Record<string, unknown>>;

/** A query of the builder, or of raw text. */
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

/** A compiled query with a name of its own: the same text has the same name in every process. */
interface PreparedQuery<R> extends CompiledQuery<R> {
  readonly statementName: string;
}

/** Returns the name of a prepared query. Undefined: the query is not prepared. */
export function statementName(query: CompiledQuery): string | undefined {
  return (query as Partial<PreparedQuery<unknown>>).statementName;
}

/** Returns a placeholder for each value. */
function placeholdersFor<V extends object>(values: V): V {
  return Object.fromEntries(Object.keys(values).map((name) => [name, new Placeholder(name)])) as V;
}

/**
 * Returns a function that runs the query of `build`, compiled once per kind of database with placeholders.
 * Pass the same fields each time: an unset one is null, not left out.
 */
export function prepared<V extends object, R>(
  build: (db: Db, values: V) => Query<R>,
): (db: Db, values: V) => Promise<QueryResult<R>> {
  const made = new Map<StoreKind, PreparedQuery<R>>();
  return (db, values) => {
    if (db.getExecutor().plugins.length > 0) return db.executeQuery(build(db, values).compile(db));
    const kind = kindOf(db);
    let query = made.get(kind);
    if (query === undefined) {
      const compiled = build(db, placeholdersFor(values)).compile(db);
      const digest = createHash("sha256").update(compiled.sql).digest("hex");
      query = { ...compiled, statementName: digest.slice(0, 16) };
      made.set(kind, query);
    }
    const parameters = query.parameters.map((one) =>
      one instanceof Placeholder ? (values as Values)[one.name] : one,
    );
    return db.executeQuery({ ...query, parameters });
  };
}
