// Checks the plans of the queries that the loops of the outbox and of the deadlines run, on 100,000 rows without
// statistics: no query sorts, reads a whole table, or reads rows that are not due.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as deliveries from "../../src/store/queries/channels/deliveries.ts";
import * as deadlines from "../../src/store/queries/deadlines.ts";
import { firstSql } from "../../src/store/schema/outbox-schema.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { noteQueries, runUndone } from "../kit/store/noted-queries.ts";
import { openPostgresStore } from "../kit/store/postgres.ts";
import { deliveryStatements } from "./many-deliveries.ts";
import { silentLog, temporaryDir } from "./samples.ts";

const ROWS = 100_000;
const ROUTES = 2_000;
/** Indexes that lead to many rows that are not due. */
const TOO_WIDE = /deliveries_by_state|deliveries_in_route|PRIMARY KEY \(kind=\?\)/;

const deliveriesFrom = (numbers: string): string =>
  `insert into deliveries (id, session_key, run_id, kind, route_key, route_json, text, state, attempts, attempt_open,
      parts_sent, next_attempt_at, created_at)
    select 'd' || n, 'k' || n % 100, 'r' || n, case when n % 2 = 0 then 'send' else 'hook' end,
      'route' || n % ${ROUTES}, '{"channel": "c' || n % 3 || '", "to": "p"}', 'x', 'pending', 0, 0, 0, n, n
    from ${numbers}`;

const deadlinesFrom = (numbers: string): string =>
  `insert into deadlines (kind, key, due_at)
    select case n % 4 when 0 then 'child' when 1 then 'cron' when 2 then 'inbox' else 'inbound_files' end, 'k' || n, n
    from ${numbers}`;

const PLACE = { place: "texts c1 ", now: ROWS, limit: 16 };
const loops: Record<string, (tx: Tx) => Promise<unknown>> = {
  "the kinds that are due": (tx) => deadlines.storedKinds(tx, ROWS / 2),
  "the due deliveries of a place": (tx) => deliveries.dueDeliveries(tx, PLACE),
  "the first delivery of a queue": (tx) => sql`select d.seq ${sql.raw(firstSql("'route1'"))}`.execute(tx),
  "the start of an attempt": (tx) => deliveries.beginAttempt(tx, { id: "d2", partsSent: 0 }, "p"),
  "the end of an attempt": (tx) => deliveries.endAttempt(tx, { id: "d2", owner: "p" }, { kind: "sent" }, 5),
  "a delivery that is queued": (tx) =>
    deliveries.insertDelivery(tx, {
      ...{ id: "new", sessionKey: "k", kind: "send", text: "x", state: "pending", createdAt: 5 },
      route: { channel: "c1", to: "p" },
    }),
  "the undelivered results of a job": (tx) => deliveries.hasPendingDelivery(tx, ["r5", "r7"]),
  "a deadline that is taken": (tx) => deadlines.takeDeadline(tx, "child", ROWS),
  "a deadline that is taken by its key": (tx) => deadlines.takeDeadline(tx, "child", ROWS, "k4"),
  "a deadline that is set": (tx) => deadlines.setDeadline(tx, { kind: "child", key: "k4", dueAt: 5 }),
  "a deadline that is hurried": (tx) => deadlines.hurryDeadline(tx, { kind: "child", key: "k4", dueAt: 5 }),
  "the files of a session": (tx) => deadlines.deadlineKeysWith(tx, "inbound_files", 41, "agent:main:main"),
};

describe("embedded store", () => {
  const { dir, remove } = temporaryDir();
  let store: Store;
  let raw: DatabaseSync;
  beforeAll(async () => {
    store = await openSqlite({ dir, durability: "normal", log: silentLog });
    raw = new DatabaseSync(join(dir, STORE_FILE));
    const numbers = `(with recursive t (n) as (select 1 union all select n + 1 from t where n < ${ROWS}) select n from t)`;
    for (const statement of [deliveriesFrom(numbers), deadlinesFrom(numbers)]) raw.exec(statement);
  });
  afterAll(async () => {
    raw.close();
    await store.close();
    remove();
  });

  test.each(Object.keys(loops))("%s: rows are found by an index, in its order", async (name) => {
    const queries = await runUndone(store, (tx) =>
      noteQueries(tx, loops[name] as (tx: Tx) => Promise<unknown>),
    );
    const steps = queries.flatMap(({ sql: text, parameters }) =>
      raw
        .prepare(`explain query plan ${text}`)
        .all(...(parameters as string[]))
        .map((row) => String(row.detail)),
    );
    expect(steps.filter((step) => /^SCAN (deliveries|deadlines|[a-z]\b)/.test(step))).toEqual([]);
    expect(steps.filter((step) => step.includes("TEMP B-TREE") || TOO_WIDE.test(step))).toEqual([]);
  });
});

interface Step {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly Step[];
}

/** Returns the steps of a plan that read more than what is due. */
function wideSteps(step: Step): string[] {
  const { "Node Type": kind, "Relation Name": table = "", "Index Name": index = "" } = step;
  const isPartOfKey = index === "deadlines_pkey" && !step["Index Cond"]?.includes("key");
  const isWide = kind === "Seq Scan" || kind.includes("Sort") || TOO_WIDE.test(index) || isPartOfKey;
  return [...(isWide ? [`${kind} ${table} ${index}`] : []), ...(step.Plans ?? []).flatMap(wideSteps)];
}

describe.each(["without statistics", "with statistics of empty tables"])("PostgreSQL %s", (what) => {
  let opened: Awaited<ReturnType<typeof openPostgresStore>>;
  beforeAll(async () => {
    opened = await openPostgresStore({ own: true });
    await opened.store.transaction(async (tx) => {
      for (const table of ["deliveries", "deadlines"])
        await sql.raw(`alter table ${table} set (autovacuum_enabled = off)`).execute(tx);
    });
    if (what !== "without statistics") await sql`analyze deliveries, deadlines`.execute(opened.store.db);
    const numbers = `generate_series(1, ${ROWS}) n`;
    for (const statement of [...deliveryStatements(deliveriesFrom(numbers)), deadlinesFrom(numbers)])
      await opened.store.transaction((tx) => sql.raw(statement).execute(tx));
  });
  afterAll(() => opened.dispose());

  test.each(Object.keys(loops))("%s: rows are found by an index, in its order", async (name) => {
    const queries = await runUndone(opened.store, (tx) =>
      noteQueries(tx, loops[name] as (tx: Tx) => Promise<unknown>),
    );
    await opened.store.transaction(async (tx) => {
      for (const query of queries) {
        const explain = { ...query, sql: `explain (format json) ${query.sql}` };
        const { rows } = await tx.executeQuery<{ "QUERY PLAN": string }>(explain);
        const [{ Plan: plan }] = JSON.parse(rows[0]?.["QUERY PLAN"] ?? "") as [{ Plan: Step }];
        expect({ sql: query.sql, wide: wideSteps(plan) }).toEqual({ sql: query.sql, wide: [] });
      }
    });
  });
});
