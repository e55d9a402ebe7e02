// Notes the queries of some work, for tests of their plans.

import type { CompiledQuery, KyselyPlugin } from "kysely";
import { expect } from "vitest";
import type { Store, Tx } from "../../../src/store/sql.ts";

/** Work in a transaction. */
type Work<T = unknown> = (tx: Tx) => Promise<T>;

/** Runs the work and returns its queries. */
export async function noteQueries(tx: Tx, work: Work): Promise<CompiledQuery[]> {
  const queries: CompiledQuery[] = [];
  const noting: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      queries.push(tx.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await work(tx.withPlugin(noting));
  expect(queries.length).toBeGreaterThan(0);
  return queries;
}

/** Runs the work in a transaction, undoes it, and returns its result. */
export async function runUndone<T>(store: Store, work: Work<T>): Promise<T> {
  const undo = new Error("undo");
  let result: { readonly value: T } | undefined;
  const outcome = store.transaction(async (tx) => {
    result = { value: await work(tx) };
    throw undo;
  });
  await expect(outcome).rejects.toBe(undo);
  if (result === undefined) throw new Error("the work did not end");
  return result.value;
}
