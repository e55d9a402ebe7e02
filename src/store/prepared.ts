// Owns queries that are made once and run often: the query builder makes a statement of its objects each
// time it is asked, which for a small query costs as much as the database does.
// PQ1: a prepared query is the builder's own, with places where its values go: nobody writes it a second
//      time.
// PQ2: its text does not depend on its values. One that does is no prepared query.
// PQ3: where somebody looks at each query (a plugin, in tests), it is made anew, with its values.

import type { CompiledQuery, QueryResult } from "kysely";
import { type Db, kindOf, type StoreKind } from "./sql.ts";

type Values = Readonly<Record<string, unknown>>;

/** What the query builder makes: of its methods, or of text. */
interface Query<R> {
  compile(db: Db): CompiledQuery<R>;
}

/** Stands in a query where a value goes. */
class Placeholder {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A place for each of the values, which are the same ones each time. */
function placeholdersFor<V extends object>(values: V): V {
  return Object.fromEntries(Object.keys(values).map((name) => [name, new Placeholder(name)])) as V;
}

/**
 * A query that `build` makes once for each kind of database, of places instead of values. Each time the same
 * values have to be given: one that is unset is null, not left out.
 */
export function prepared<V extends object, R>(
  build: (db: Db, values: V) => Query<R>,
): (db: Db, values: V) => Promise<QueryResult<R>> {
  const made = new Map<StoreKind, CompiledQuery<R>>();
  return (db, values) => {
    if (db.getExecutor().plugins.length > 0) return db.executeQuery(build(db, values).compile(db));
    const kind = kindOf(db);
    let query = made.get(kind);
    if (query === undefined) {
      query = build(db, placeholdersFor(values)).compile(db);
      made.set(kind, query);
    }
    const parameters = query.parameters.map((one) =>
      one instanceof Placeholder ? (values as Values)[one.name] : one,
    );
    return db.executeQuery({ ...query, parameters });
  };
}
