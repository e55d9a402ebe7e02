// The tables and queries of features, for the tests of query plans.

import type { Tx } from "../../src/store/sql.ts";

type Queries = Readonly<Record<string, (tx: Tx) => Promise<unknown>>>;

/** The exports of the file `plans.ts` of a feature's tests. */
interface FeaturePlans {
  readonly tables: readonly string[];
  /** Plans with indexes of only a few rows, which may be read completely. */
  readonly small: readonly string[];
  /** Queries for the embedded store. `key`: a session. */
  queries(key: string): Queries;
  /** SQL that fills the tables, whose runs are `r1` to `r<count>`. */
  rows(count: number): string;
  /** Queries on these rows, in PostgreSQL. */
  manyQueries(): Queries;
}

const ALL = Object.values(import.meta.glob<FeaturePlans>("../features/*/plans.ts", { eager: true }));

export const FEATURES: FeaturePlans = {
  tables: ALL.flatMap(({ tables }) => tables),
  small: ALL.flatMap(({ small }) => small),
  queries: (key) => Object.assign({}, ...ALL.map(({ queries }) => queries(key))),
  rows: (count) => ALL.map(({ rows }) => rows(count)).join("\n"),
  manyQueries: () => Object.assign({}, ...ALL.map(({ manyQueries }) => manyQueries())),
};
