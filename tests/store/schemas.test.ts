// Compares the schemas of the two databases and checks their migrations. Moved stores and mixed versions rely
// on both.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import { waitsOfCall } from "../../src/store/queries/runs/waits.ts";
import { POSTGRES_MIGRATIONS } from "../../src/store/schema/postgres-schema.ts";
import { SCHEMA_VERSION } from "../../src/store/schema/sqlite-schema.ts";
import type { Db } from "../../src/store/sql.ts";
import { STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { COPIED_TABLES } from "../../src/store/transfer/copy.ts";
import { quietWorld, temporaryFolder } from "../kit/engine/engine.ts";
import { freshUrl, inEmbedded, inPostgres, undoMigrations } from "./transfer/moves.ts";

interface Column {
  readonly table: string;
  readonly name: string;
  readonly required: number;
}

test("both databases have the same columns and the same required columns in every table that is moved", async () => {
  const embedded = await inEmbedded(temporaryFolder(), async ({ db }) => {
    const { rows } = await sql<Column>`select m.name as "table", c.name,
        case when c."notnull" = 1 or c.pk > 0 then 1 else 0 end as required
      from sqlite_schema m join pragma_table_xinfo(m.name) c where m.type = 'table'`.execute(db);
    return rows;
  });
  const shared = await inPostgres(await freshUrl(), async ({ db }) => {
    const { rows } = await sql<Column>`select table_name as "table", column_name as name,
        case when is_nullable = 'NO' then 1 else 0 end as required
      from information_schema.columns where table_schema = current_schema()`.execute(db);
    return rows;
  });
  const shown = (columns: readonly Column[]) =>
    columns
      .filter(({ table, name }) => COPIED_TABLES.some((copied) => copied === table) && name !== "archived")
      .map(({ table, name, required }) => `${table}.${name}${required === 1 ? "" : "?"}`)
      .sort();
  expect(shown(shared).length).toBeGreaterThan(100);
  expect(shown(shared)).toEqual(shown(embedded));
});

/** Returns the statements of a migration that would break a running process of the previous version. */
function takesAway(migration: string): string[] {
  const plain = migration.replace(/--.*$/gm, "");
  const words = [
    /\bdrop\s+(table|column|index|constraint|function|trigger|type|schema|default)\b/gi,
    /\brename\b/gi,
    /\balter\s+column\s+\S+\s+(set\s+not\s+null|type|set\s+data\s+type)\b/gi,
    /\badd\s+(constraint|check|unique|primary|foreign)\b/gi,
    /\bcreate\s+unique\s+index\b/gi,
    /\btruncate\b/gi,
    /\badd\s+column\s+[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)(?<!\bdefault\b[^,;]*)/gi,
  ];
  return words.flatMap((word) => plain.match(word) ?? []);
}

test.each([
  ["alter table runs drop column pool", 1],
  ["alter table runs rename column pool to slots", 1],
  ["ALTER TABLE runs ALTER COLUMN pool SET NOT NULL", 1],
  ["alter table runs alter column hop type int", 1],
  ["alter table runs add constraint one check (hop < 3)", 1],
  ["create unique index one on runs (pool)", 1],
  ["alter table runs add column mood text not null", 1],
  ["drop index runs_by_end; truncate holdings", 2],
  ["alter table runs add column mood text not null default ''", 0],
  ["alter table runs add column mood text default '' not null", 0],
  ["alter table runs add column mood text; create index runs_by_mood on runs (mood)", 0],
  ["create table moods (name text not null primary key)", 0],
  ["-- nothing to drop table for", 0],
])("in the migration %j the rule finds %i incompatible changes", (migration, found) => {
  expect(takesAway(migration)).toHaveLength(found);
});

test("PG2: migrations only add tables and columns, because an older process may still be running", () => {
  expect(POSTGRES_MIGRATIONS.slice(1).flatMap(takesAway)).toEqual([]);
});

/**
 * Sessions with usage, as stored before the cost of a session had its own column. The second session was
 * reset.
 */
const SPENT = [
  ...["kept", "reset", "unused"].map(
    (
      key,
    ) => `insert into sessions (key, session_id, agent_id, kind, created_at, updated_at, spawned_by, spawn_depth,
      external, system_sent, aborted_last_run, input_tokens, output_tokens, total_tokens, context_tokens)
      values ('${key}', '${key} now', 'main', 'other', 1, 1, ${key === "unused" ? "'gone'" : "null"}, 0, 0, 0, 0, 0, 0, 0, 0)`,
  ),
  ...[
    ["r1", "kept", "kept now", 0.25],
    ["r2", "kept", "kept now", 0.5],
    ["r3", "reset", "reset before", 4],
    ["r4", "reset", "reset now", 0.125],
  ].flatMap(([run, key, id, cost], at) => [
    `insert into runs (run_id, session_key, session_id, agent_id, lane_seq, kind, state, input_json, chain_id, hop, attempt,
      crashes, accepted_at, timeout_ms) values ('${run}', '${key}', '${id}', 'main', ${at}, 'turn', 'ok', '{}', 'c', 0, 1, 0, 1, 0)`,
    `insert into ledger (run_id, session_key, agent_id, provider, model, input, output, cache_read, cache_write,
      total_tokens, cost, at) values ('${run}', '${key}', 'main', 'p', 'm', 1, 1, 0, 0, 2, ${cost}, 1)`,
  ]),
].join(";\n");
const SPENT_ROWS = [
  { key: "kept", cost: 0.75, orphaned: 0 },
  { key: "reset", cost: 0.125, orphaned: 0 },
  { key: "unused", cost: 0, orphaned: 1 },
];
const spentRows = (db: Db) =>
  db.selectFrom("sessions").select(["key", "cost", "orphaned"]).orderBy("key").execute();

test("embedded store: after migration, a session's cost is the cost of the runs in its current transcript", async () => {
  const dir = temporaryFolder();
  await inEmbedded(dir, async () => {});
  const file = new DatabaseSync(join(dir, STORE_FILE));
  file.exec(`${undoMigrations({ to: 3 })} ${SPENT};`);
  file.close();
  await inEmbedded(dir, async ({ db }) => expect(await spentRows(db)).toEqual(SPENT_ROWS));
});

test("PostgreSQL store: after migration, a session's cost is the cost of the runs in its current transcript", async () => {
  const url = await freshUrl();
  const open = (more: { migrations?: readonly string[] } = {}) =>
    openPostgres({ url, world: quietWorld(), ...more });
  const before = await open({ migrations: POSTGRES_MIGRATIONS.slice(0, 1) });
  for (const statement of SPENT.split(";\n")) await sql.raw(statement).execute(before.db);
  await before.close();
  const after = await open();
  expect(await spentRows(after.db)).toEqual(SPENT_ROWS);
  await after.close();
});

/** The turns of some sessions with their states, oldest first. */
const TURNS: Record<string, readonly [transcript: string, state: string, kind?: string][]> = {
  failed: [
    ["now", "ok"],
    ["now", "error"],
  ],
  late: [["now", "timeout"]],
  mended: [
    ["now", "error"],
    ["now", "ok"],
  ],
  busy: [
    ["now", "error"],
    ["now", "queued"],
  ],
  noted: [
    ["now", "error"],
    ["now", "ok", "append"],
  ],
  reset: [["before", "error"]],
  refused: [["now", "error", "append"]],
};
/**
 * Rows of a store of an earlier version: sessions, their turns, and the answer to a message of another
 * session.
 */
const EARLIER = [
  ...Object.entries(TURNS).flatMap(([key, turns]) => [
    `insert into sessions (key, session_id, agent_id, kind, created_at, updated_at, spawn_depth, external, system_sent,
      aborted_last_run, input_tokens, output_tokens, total_tokens, context_tokens)
      values ('${key}', '${key} now', 'main', 'other', 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)`,
    ...turns.map(
      (
        [transcript, state, kind = "turn"],
        at,
      ) => `insert into runs (run_id, session_key, session_id, agent_id,
        lane_seq, kind, state, input_json, chain_id, hop, attempt, crashes, accepted_at, ended_at, timeout_ms, flow_step)
        values ('${key} ${at}', '${key}', '${key} ${transcript}', 'main', ${at}, '${kind}', '${state}', '{}', 'c', 0, 1,
        0, 1, ${state === "queued" ? "null" : 2}, 0, ${key === "mended" ? "'round1'" : "null"})`,
    ),
  ]),
  ...["busy 1", "failed 1"].flatMap((run) =>
    ["open", "answered"].map(
      (
        state,
      ) => `insert into job_waits (call_id, flow_id, waiter_run_id, waiter_session_key, target_session_key,
        state, deadline_at) values ('call of ${run}', 'f ${state}', '${run}', 'k', 'child', '${state}', 5)`,
    ),
  ),
  ...["failed 0", "mended 1"].flatMap((run) =>
    [7, 8].map(
      (at) => `insert into messages (id, session_id, session_key, run_id, role, entry_json, created_at)
        values ('${run} ${at}', 's', 'k', '${run}', 'assistant', '{}', ${at})`,
    ),
  ),
  ...[
    ["sent", "send", "k"],
    ["pending", "send", "k"],
    ["pending", "announce", "k"],
    ["pending", "hook", "one"],
    ["pending", "hook", "two"],
    ["pending", "hook", "one"],
  ].map(
    (
      [state, kind, session],
      at,
    ) => `insert into deliveries (id, session_key, kind, route_key, route_json, text,
      state, attempts, attempt_open, parts_sent, next_attempt_at, created_at, settled_at)
      values ('d${at}', '${session}', '${kind}', 'route', '{"channel": "c", "to": "x", "accountId": "a"}', '', '${state}',
      0, 0, 0, ${at}, 0, ${state === "sent" ? 1 : "null"})`,
  ),
].join(";\n");
const SINCE = POSTGRES_MIGRATIONS.length - POSTGRES_MIGRATIONS.findIndex((one) => one.includes("heard_at"));

async function expectFilled({ db }: { readonly db: Db }): Promise<void> {
  const rows = await db.selectFrom("sessions").select(["key", "failed_run"]).execute();
  expect(Object.fromEntries(rows.map(({ key, failed_run }) => [key, failed_run]))).toEqual({
    ...{ failed: "failed 1", late: "late 0", busy: "busy 0", noted: "noted 0" },
    ...{ mended: null, reset: null, refused: null },
  });
  const heard = db.selectFrom("runs").select(["run_id", "heard_at"]).where("heard_at", "is not", null);
  expect(await heard.execute()).toEqual([{ run_id: "mended 1", heard_at: 7 }]);
  expect((await waitsOfCall(db, "call of failed 1")).map(({ state }) => state)).toEqual([
    "answered",
    "ended",
  ]);
  const wait = { callId: "call of busy 1", kind: "job", waiterRunId: "busy 1", waiterSessionKey: "k" };
  expect(await waitsOfCall(db, wait.callId)).toEqual(
    ["answered", "open"].map((state) => ({
      ...{ ...wait, targetId: `f ${state}`, targetSessionKey: "child", state, deadlineAt: 5 },
    })),
  );
  expect(await db.selectFrom("deadlines").selectAll().orderBy("due_at").execute()).toEqual([
    { kind: "texts c a", key: "route", due_at: 1 },
    { kind: "hooks c x", key: "route one", due_at: 3 },
    { kind: "hooks c x", key: "route two", due_at: 4 },
  ]);
}

test("after migration, failed turns, first answers, waits for jobs and due deliveries are found: embedded", async () => {
  const dir = temporaryFolder();
  await inEmbedded(dir, async () => {});
  const file = new DatabaseSync(join(dir, STORE_FILE));
  file.exec(`${undoMigrations({ to: SCHEMA_VERSION - SINCE })} ${EARLIER};`);
  file.close();
  await inEmbedded(dir, expectFilled);
});

test("after migration, failed turns, first answers, waits for jobs and due deliveries are found: PostgreSQL", async () => {
  const url = await freshUrl();
  const migrations = POSTGRES_MIGRATIONS.slice(0, -SINCE);
  const before = await openPostgres({ url, world: quietWorld(), migrations });
  for (const statement of EARLIER.split(";\n")) await sql.raw(statement).execute(before.db);
  await before.close();
  await inPostgres(url, expectFilled);
});
