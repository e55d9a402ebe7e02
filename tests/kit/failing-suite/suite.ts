// Tests that must fail after they have started the PostgreSQL server. Only tests/exit-code.deep.test.ts runs
// them.

import { expect, test } from "vitest";
import { runSql, serverUrl } from "../store/postgres.ts";

test("fails after a query", async () => {
  const [row] = await runSql(await serverUrl(), "select 1 as one");
  expect(row).toEqual({ one: 2 });
});

test("passes after a query", async () => {
  expect(await runSql(await serverUrl(), "select 1 as one")).toEqual([{ one: 1 }]);
});
