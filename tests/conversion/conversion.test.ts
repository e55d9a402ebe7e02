// Converts stores that the real program of version 0.1 wrote, on both databases.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { SCHEMA_VERSION } from "../../src/store/schema/conversion.ts";
import type { Db } from "../../src/store/sql.ts";
import { checkFile } from "../../src/store/sqlite/file.ts";
import { STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { restoreStore } from "../../src/store/transfer/transfer.ts";
import { temporaryFolder } from "../kit/engine/engine.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { runSql } from "../kit/store/postgres.ts";
import { until } from "../kit/until.ts";
import {
  AS_BEFORE,
  freshUrl,
  good,
  inEmbedded,
  inPostgres,
  jobOn,
  schemaOf,
} from "../store/transfer/moves.ts";
import { oldFile, oldSchema } from "./old-stores.ts";

const OPEN = {
  sqlite: async <T>(work: (db: Db) => Promise<T>, dir = oldFile()) => inEmbedded(dir, ({ db }) => work(db)),
  postgres: async <T>(work: (db: Db) => Promise<T>, url?: string) =>
    inPostgres(url ?? (await oldSchema()), ({ db }) => work(db)),
};
const KINDS = ["sqlite", "postgres"] as const;

/** Returns all objects of a file, with their definitions. */
async function sqliteObjects(db: Db): Promise<string[]> {
  const { rows } = await sql<Record<string, unknown>>`
    select type, name, sql as text from sqlite_schema where type <> 'table'
    union all select m.name, c.name, json_array(c.type, c."notnull", c.dflt_value, c.pk, c.hidden)
      from sqlite_schema m join pragma_table_xinfo(m.name) c where m.type = 'table'
    union all select 'table', name, json_array(strict, wr) from pragma_table_list where schema = 'main'
    union all select 'version', user_version, '' from pragma_user_version`.execute(db);
  return rows.map((row) => JSON.stringify(row).replaceAll(/(\\n|\s)+/g, " ")).sort();
}

async function postgresObjects(db: Db): Promise<string[]> {
  const { rows } = await sql<Record<string, unknown>>`
    select table_name as kind, column_name as name, concat_ws(' ', data_type, collation_name, is_nullable,
        column_default, is_identity, generation_expression) as text
      from information_schema.columns where table_schema = current_schema()
    union all select 'index', indexname, indexdef from pg_indexes where schemaname = current_schema()
    union all select 'trigger', tgname, pg_get_triggerdef(t.oid) from pg_trigger t
      join pg_class c on c.oid = tgrelid where relnamespace = current_schema()::regnamespace and not tgisinternal
    union all select 'function', proname, pg_get_functiondef(p.oid) from pg_proc p
      where pronamespace = current_schema()::regnamespace
    union all select 'table', relname, concat_ws(' ', relpersistence, reloptions) from pg_class
      where relnamespace = current_schema()::regnamespace and relkind = 'r'
    union all select 'version', '', version::text from schema_version`.execute(db);
  return rows.map((row) => JSON.stringify(row).replaceAll(/\bt_[0-9a-f]{32}\b/g, "schema")).sort();
}

test("a new file and converted files have the same schema", async () => {
  const fresh = await OPEN.sqlite(sqliteObjects, temporaryFolder());
  expect(fresh.length).toBeGreaterThan(400);
  const converted = oldFile();
  expect(await OPEN.sqlite(sqliteObjects, converted)).toEqual(fresh);
  expect(good(checkFile(join(converted, STORE_FILE), { whole: true }))).toEqual({
    version: SCHEMA_VERSION,
    differences: [],
  });
  const before = temporaryFolder();
  await inEmbedded(before, async () => {});
  const file = new DatabaseSync(join(before, STORE_FILE));
  file.exec(AS_BEFORE);
  file.close();
  expect(await OPEN.sqlite(sqliteObjects, before)).toEqual(fresh);
});

test("a new schema and converted schemas of PostgreSQL are the same", async () => {
  const url = await freshUrl();
  const fresh = await OPEN.postgres(postgresObjects, url);
  expect(fresh.length).toBeGreaterThan(400);
  expect(await OPEN.postgres(postgresObjects)).toEqual(fresh);
  const schema = schemaOf(url);
  await runSql(
    url,
    `set search_path to ${schema}; create table job_waits (call_id text);
    alter table runs add column pool text; alter table runs add column resuming bigint not null default 0;
    alter table runs add column crashes_in_row bigint not null default 0;
    alter table runs add column calls_answered bigint not null default 0;
    create index runs_in_pool on runs (pool) where state = 'running';
    create trigger session_worded after update of first_words on sessions for each row
      execute function session_named();
    update schema_version set version = 45`,
  );
  expect(await OPEN.postgres(postgresObjects, url)).toEqual(fresh);
});

/** Returns what the conversion computes, and what it keeps. */
async function contentOf(db: Db) {
  const unfinished = await db
    .selectFrom("runs")
    .select(["session_key", "state", "queue", "ready_at"])
    .where("ended_at", "is", null)
    .orderBy("run_id")
    .execute();
  const days = await sql<{ ledger: number; days: number }>`select
    (select sum(total_tokens) from ledger) as ledger, (select sum(tokens) from agent_days) as days`.execute(
    db,
  );
  // A route of a web hook is one queue for each session.
  const heads =
    await sql`select route_key || ' ' || session_key as key, next_attempt_at as due from deliveries d
    where settled_at is null and seq = (select min(seq) from deliveries f where f.settled_at is null
      and f.route_key = d.route_key and f.session_key = d.session_key) order by key`.execute(db);
  const timers = await sql`select key, due_at as due from deadlines where kind like 'hooks %'
    order by key`.execute(db);
  const waits = await db.selectFrom("waits").select(["kind", "state"]).orderBy("call_id").execute();
  return { unfinished, days: days.rows[0], timers: timers.rows, heads: heads.rows, waits };
}

describe.each(KINDS)("a store of version 0.1 after its conversion: %s", (kind) => {
  test("the outbox has timers, runs have queues, usage has sums, and waits are in one table", async () => {
    const { unfinished, days, timers, heads, waits } = await OPEN[kind](contentOf);
    const key = expect.stringMatching(/^agent:main:subagent:/);
    expect(unfinished).toEqual([
      { session_key: "agent:research:shell", state: "waiting", queue: "0research", ready_at: null },
      { session_key: "agent:main:main", state: "waiting", queue: "0main", ready_at: null },
      { session_key: "agent:research:main", state: "running", queue: "1research", ready_at: null },
      { session_key: "agent:main:main", state: "queued", queue: "0main", ready_at: null },
      { session_key: key, state: "running", queue: "2main", ready_at: null },
    ]);
    expect(days?.ledger).toBeGreaterThan(1_000);
    expect(days?.days).toBe(days?.ledger);
    expect(heads.length).toBeGreaterThan(4);
    expect(timers).toEqual(heads);
    expect(waits.map((wait) => `${wait.kind} ${wait.state}`).sort()).toEqual([
      ...["job open", "run answered", "run open"],
    ]);
  });

  test("a gateway serves its sessions, transcripts, jobs and questions, and ends what was accepted", async () => {
    const store =
      kind === "sqlite" ? { dir: oldFile() } : { dir: temporaryFolder(), postgresUrl: await oldSchema() };
    const gateway = await startProcess({
      config: {
        store: { ...store, retention: 0 },
        agents: { list: [{ id: "main", default: true }, { id: "research" }] },
        tools: {
          exec: { approval: "always" },
          sessions: { visibility: "all" },
          agentToAgent: { enabled: true },
        },
      },
    });
    const client = await gateway.connect();
    const list = async () => (await client.request("sessions.list", { limit: 50 })).sessions;
    const main = async () => (await list()).find((row) => row.key === "agent:main:main");
    expect(await list()).toHaveLength(7);
    await until(async () => (await main())?.state === "waiting");
    expect(await main()).toMatchObject({ label: "orchard", queuedRuns: 1 });
    const said = async (sessionKey: string) =>
      JSON.stringify((await client.request("chat.history", { sessionKey, limit: 100 })).messages);
    expect(await said("agent:main:main")).toContain("Result: the files are counted");
    const found = await client.request("sessions.search", { query: "release" });
    expect(JSON.stringify(found)).toContain("agent:research:main");
    const jobs = await client.request("cron.list", {});
    expect(jobs.jobs.map((job) => job.name).sort()).toEqual(["morning", "once"]);
    const questions = await client.request("permissions.list", {});
    expect(questions.permissions).toMatchObject([{ sessionKey: "agent:research:shell" }]);
    await client.request("chat.abort", { sessionKey: "agent:research:main" });
    await until(async () => (await said("agent:main:main")).includes('"the queued text"'));
    await client.request("chat.abort", { sessionKey: "agent:main:notes" });
    expect(await gateway.end("SIGTERM")).toBe(0);
  });
});

test("a backup of version 0.1 is restored into both databases", async () => {
  const file = join(oldFile(), STORE_FILE);
  const dir = temporaryFolder();
  const url = await freshUrl();
  for (const target of [dir, { url }]) {
    const { tally } = good(await restoreStore(jobOn(target), file));
    expect(tally).toMatchObject({ sessions: 7, unfinishedRuns: 5 });
  }
  const expected = await OPEN.sqlite(contentOf);
  expect(await OPEN.sqlite(contentOf, dir)).toEqual(expected);
  expect(await OPEN.postgres(contentOf, url)).toEqual(expected);
});
