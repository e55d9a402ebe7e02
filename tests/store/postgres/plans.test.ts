// Runs every frequent query on tables with tens of thousands of rows. The server's plan shows how many rows a
// query has read. That number must not grow with the number of sessions, runs and messages.

import { CompiledQuery, sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Scope } from "../../../src/core/rules/visibility.ts";
import { holdForAbort, holdForDeletion, holdForEnd } from "../../../src/store/locks.ts";
import * as deadlines from "../../../src/store/queries/deadlines.ts";
import { listSessions } from "../../../src/store/queries/sessions/session-lists.ts";
import { searchTranscripts } from "../../../src/store/queries/transcripts/transcript-search.ts";
import type { Tx } from "../../../src/store/sql.ts";
import { plainRedactor } from "../../kit/redactor.ts";
import { noteQueries, runUndone } from "../../kit/store/noted-queries.ts";
import { openPostgresStore, type PostgresStore, runSql } from "../../kit/store/postgres.ts";
import { FEATURES } from "../feature-plans.ts";
import { deliveryStatements } from "../many-deliveries.ts";
import { BUSY, INBOX, LISTS, PLAN_ROWS, QUERIES, TREE } from "../planned-queries.ts";

/**
 * Maximum number of rows that a query may read from one table. A page in order reads at most 10,000. A search
 * for a common name stops after 4,000 matches.
 */
const LOOKED_AT_MAX = 14_000;

/** Returns the statements that fill the tables. `rows`: how many rows the largest tables get. */
function fill(rows: number): string {
  const half = rows / 2;
  const deliveries = `insert into deliveries (id, session_key, kind, route_key, route_json, text, state, attempts, attempt_open, parts_sent,
    next_attempt_at, created_at)
  select 'd' || n, 'k' || n % 100, 'send', 'route' || n % 20, '{}', 'x', case when n % 100 = 0 then 'pending' else 'sent' end,
    0, 0, 0, n, n
  from generate_series(1, ${half}) n`;
  return `
alter table sessions disable trigger user;
insert into sessions (key, session_id, agent_id, kind, label, created_at, updated_at, archived_at, spawned_by,
    spawn_depth, external, system_sent, aborted_last_run, input_tokens, output_tokens, total_tokens, context_tokens)
  select case when n = 1 then '${BUSY}' else 'agent:a' || n % 50 || ':chat:' || n end, 's' || n, 'a' || n % 50,
    (array['main', 'group', 'cron', 'other'])[1 + n % 4], 'label ' || n, n, n,
    case when n % 10 = 0 then n end, case when n % 20 = 1 then 'agent:a1:chat:' || n % 5000 end, 0, 0, 0, 0, 0, 0, 0, 0
  from generate_series(1, ${half}) n;
insert into session_names select row_id, lower(concat_ws(chr(10), key, label)) from sessions;
alter table sessions enable trigger user;
insert into messages (id, session_id, session_key, run_id, role, entry_json, created_at)
  select 'm' || n, 's' || n % 1000, 'agent:a' || n % 50 || ':chat:' || n % 1000, 'r' || n / 4,
    (array['user', 'assistant', 'toolResult'])[1 + n % 3], '{"role": "user", "content": []}', n
  from generate_series(1, ${rows}) n;
insert into message_texts (seq, part, words)
  select seq, 0, array_to_tsvector(array['common', 'w' || seq % 5000, 'rare' || seq]) from messages
  where role <> 'toolResult';
insert into runs (run_id, session_key, session_id, agent_id, lane_seq, kind, state, input_json, chain_id, hop,
    attempt, crashes, owner, queue, ready_at, accepted_at, ended_at, timeout_ms, flow_id, parent_run_id, call_id)
  select 'r' || n, case when n % 2 = 0 then '${BUSY}' else 'agent:a1:chat:' || n % 5000 end, 's1', 'main', n, 'turn',
    case when n > ${rows} - 20 and n % 2 = 0 then 'queued' when n between 1 and 59 and n % 2 = 1 then 'running'
      else 'ok' end,
    '{}', 'c' || n / 20, 0, 1, 0, 'p' || n % 3, (n % 4) || 'main', case when n > ${rows} - 20 and n % 2 = 0 then n end, n,
    case when n between 60 and ${rows} - 20 then n end, 0, 'f' || n / 10, 'r' || n / 5, 'call' || n
  from generate_series(1, ${rows}) n;
insert into sessions (key, session_id, agent_id, kind, created_at, updated_at, spawn_depth, external, system_sent,
    aborted_last_run, input_tokens, output_tokens, total_tokens, context_tokens)
  select '${INBOX}', 'inbox', 'main', 'other', 1, ${rows}, 0, 1, 0, 0, 0, 0, 0, 0;
insert into runs (run_id, session_key, session_id, agent_id, lane_seq, kind, state, input_json, chain_id, hop,
    attempt, crashes, accepted_at, ended_at, timeout_ms)
  select 'i' || n, '${INBOX}', 'inbox', 'main', n, 'append', 'ok', '{}', 'i' || n, 0, 1, 0, n, n, 0
  from generate_series(1, ${half}) n;
insert into inbox_marks (run_id, session_key, session_id, offered_at, in_turn_at)
  select 'i' || n, '${INBOX}', 'inbox', n, case when n > 10 then n end from generate_series(1, ${half}) n;
insert into waits (call_id, waiter_run_id, waiter_session_key, target_run_id, target_session_key, state, deadline_at)
  select 'call' || n, 'r' || n, 'agent:a1:chat:' || n % 5000, 'r' || n + 1, '${BUSY}',
    case when n % 1000 = 0 then 'open' else 'answered' end, n
  from generate_series(1, ${half}) n;
insert into flows (flow_id, chain_id, requester_key, requester_session_id, requester_run_id, target_key, state,
    turns_max, request_text, created_at, chosen_end)
  select 'f' || n, 'c' || n, 'agent:a1:chat:' || n % 5000, 's1', 'r' || n, '${BUSY}',
    case when n % 5000 = 0 then 'open' else 'ended' end, 5, 'x', n,
    case when n % 5000 = 0 then 'idle' end
  from generate_series(1, ${half}) n;
insert into slots select n, 's' || n from generate_series(1, 1000) n;
insert into deadlines select (array['child', 'cron', 'another'])[n % 3 + 1], 'k' || n, n from generate_series(1, ${half}) n;
${FEATURES.rows(rows)}
${deliveryStatements(deliveries).join(";\n")};
insert into ledger (run_id, session_key, agent_id, provider, model, input, output, cache_read, cache_write, total_tokens,
    cost, at)
  select 'r' || n, 'k' || n % 1000, 'main', 'p', 'm', 1, 1, 1, 1, 1, 1, n from generate_series(1, ${half}) n;
`;
}

const TABLES = `sessions, session_names, messages, message_texts, runs, inbox_marks, waits, flows, deadlines, deliveries,
  ${["ledger", ...FEATURES.tables].join(", ")}`;

let opened: PostgresStore;

beforeAll(async () => {
  opened = await openPostgresStore({ own: true });
  await runSql(opened.url, `set search_path to ${opened.schema}; ${fill(PLAN_ROWS)} analyze ${TABLES};`);
});
afterAll(() => opened.dispose());

interface Step {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly Step[];
}

/** Returns the number of rows that each table scan of a plan has read. */
function lookedAt(step: Step): { table: string; rows: number; how: string }[] {
  const { "Relation Name": table, "Actual Loops": loops, "Actual Rows": rows } = step;
  const removed = (step["Rows Removed by Filter"] ?? 0) + (step["Rows Removed by Index Recheck"] ?? 0);
  const own = table === undefined ? [] : [{ table, rows: (rows + removed) * loops, how: step["Node Type"] }];
  return [...own, ...(step.Plans ?? []).flatMap(lookedAt)];
}

/** Returns the names of the statements that `work` prepares, by their text. */
async function preparedBy(tx: Tx, work: (tx: Tx) => Promise<unknown>): Promise<Map<string, string>> {
  await sql`savepoint prepared`.execute(tx);
  await work(tx);
  await sql`rollback to prepared`.execute(tx);
  const { rows } = await sql<{ name: string; statement: string }>`
    select name, statement from pg_prepared_statements`.execute(tx);
  return new Map(rows.map(({ name, statement }) => [statement, name]));
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `array[${value.map(literal).join(", ")}]`;
  return typeof value === "number" ? String(value) : pg.escapeLiteral(String(value));
}

/** Returns the tables of which the statement's plan reads many rows. */
async function largeReads(tx: Tx, query: CompiledQuery, text: string): Promise<readonly object[]> {
  const explain = { ...query, sql: `explain (analyze, timing off, format json) ${text}` };
  const { rows } = await tx.executeQuery<{ "QUERY PLAN": string }>(explain);
  const [{ Plan: plan }] = JSON.parse(rows[0]?.["QUERY PLAN"] ?? "") as [{ Plan: Step }];
  return lookedAt(plan)
    .filter((scan) => scan.rows > LOOKED_AT_MAX)
    .map((scan) => ({ text, ...scan }));
}

/** Fails if a step of the statement's plan reads many rows. */
async function expectFewRows(tx: Tx, query: CompiledQuery, text: string): Promise<void> {
  expect(await largeReads(tx, query, text)).toEqual([]);
}

/** Returns the statement that executes a prepared statement with the values of the query. */
function executeText(name: string, query: CompiledQuery): string {
  const values = query.parameters.map((value) => (value === null ? "null" : literal(value)));
  return `execute "${name}"${values.length === 0 ? "" : `(${values.join(", ")})`}`;
}

/**
 * Runs `work` and explains each of its statements. For prepared statements it also explains the generic plan.
 * Rolls everything back.
 */
async function expectFew(work: (tx: Tx) => Promise<unknown>): Promise<void> {
  await runUndone(opened.store, async (tx) => {
    const names = await preparedBy(tx, work);
    for (const query of await noteQueries(tx, work)) {
      await expectFewRows(tx, query, query.sql);
      const name = names.get(query.sql);
      if (name === undefined) continue;
      await sql`set local plan_cache_mode = force_generic_plan`.execute(tx);
      await expectFewRows(tx, CompiledQuery.raw(""), executeText(name, query));
      await sql`set local plan_cache_mode = auto`.execute(tx);
    }
  });
}

const ALL: Scope = { all: true };
for (const [name, filter] of Object.entries(LISTS)) {
  test(`the list by ${name} reads few rows`, () =>
    expectFew((tx) => listSessions(tx, { scope: ALL, limit: 50, ...filter })));
}

const searches: Record<string, Parameters<typeof searchTranscripts>[1]> = {
  "a rare word": { query: "rare4444", scope: ALL, redactor: plainRedactor, limit: 20 },
  "a word of many": { query: "w77", scope: ALL, redactor: plainRedactor, limit: 20 },
  "two words": { query: "common w77", scope: ALL, redactor: plainRedactor, limit: 20 },
  "a word in a tree": { query: "common", scope: TREE, redactor: plainRedactor, limit: 20 },
};
for (const [name, question] of Object.entries(searches)) {
  test(`the search for ${name} reads few rows`, () => expectFew((tx) => searchTranscripts(tx, question)));
}

/** Queries that exist on PostgreSQL only, or that SQLite plans at each execution. */
const SHARED: typeof QUERIES = {
  ...QUERIES,
  ...FEATURES.manyQueries(),
  holdForDeletion: (tx) => holdForDeletion(tx, "agent:a1:chat:201", [BUSY]),
  holdForEnd: (tx) =>
    holdForEnd(tx, { sessionKey: "agent:a21:chat:221", flow: { flowId: "f5", step: "round1", turn: 1 } }),
  holdForAbort: (tx) => holdForAbort(tx, "agent:a1:chat:201"),
  takeDeadline: (tx) => deadlines.takeDeadline(tx, "child", PLAN_ROWS),
};
for (const [name, work] of Object.entries(SHARED)) {
  test(`the query ${name} reads few rows`, () => expectFew(work));
}

test("a plan that was made while the tables were small reads few rows of large ones", async () => {
  const grown = await openPostgresStore({ own: true });
  const change = (statements: string) =>
    runSql(grown.url, `set search_path to ${grown.schema}; ${statements}`);
  try {
    await change(fill(400));
    await runUndone(grown.store, async (tx) => {
      await sql`set local plan_cache_mode = force_generic_plan`.execute(tx);
      const made: { readonly name: string; readonly query: CompiledQuery }[] = [];
      for (const work of Object.values(SHARED)) {
        const names = await preparedBy(tx, work);
        for (const query of await noteQueries(tx, work)) {
          const name = names.get(query.sql);
          if (name !== undefined) made.push({ name, query });
        }
        await sql`rollback to prepared`.execute(tx);
      }
      const emptied = TABLES.split(",").map((table) => `delete from ${table};`);
      await change(
        `set session_replication_role = replica; ${emptied.join(" ")} delete from slots; ${fill(PLAN_ROWS)}`,
      );
      const many: object[] = [];
      for (const { name, query } of made) {
        many.push(...(await largeReads(tx, CompiledQuery.raw(""), executeText(name, query))));
      }
      expect(many).toEqual([]);
    });
  } finally {
    await grown.dispose();
  }
});
