// Checks the plan of every query: no query reads a whole table, and no query is planned again at each
// execution.

import { join } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import type { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Scope } from "../../src/core/rules/visibility.ts";
import { USAGE_GROUPS } from "../../src/core/shapes/usage.ts";
import * as flows from "../../src/store/queries/chains/flows.ts";
import * as attention from "../../src/store/queries/runs/attention.ts";
import { countUnoffered, hasUnread, openQuestions } from "../../src/store/queries/runs/inbox-marks.ts";
import { budgetStops, usageBy } from "../../src/store/queries/runs/ledger.ts";
import * as runs from "../../src/store/queries/runs/runs.ts";
import { filterCounts } from "../../src/store/queries/sessions/counts.ts";
import { listSessions } from "../../src/store/queries/sessions/session-lists.ts";
import * as sessions from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry } from "../../src/store/queries/transcripts/append.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { noteQueries, runUndone } from "../kit/store/noted-queries.ts";
import { FEATURES } from "./feature-plans.ts";
import { BUSY, EVERY, LISTS, QUERIES } from "./planned-queries.ts";
import { sampleRun, sampleSession, silentLog, temporaryDir, userMessage } from "./samples.ts";

const TABLES = [
  ..."sessions session_ids messages runs waits flows chains refusals deliveries ledger idempotency".split(
    " ",
  ),
  ...FEATURES.tables,
];
/** Indexes with only a few rows, which may be read completely. */
const SMALL = ["USING COVERING INDEX runs_ready", "USING INDEX deliveries_open", ...FEATURES.small];
const { dir, remove } = temporaryDir();
let store: Store;
let raw: DatabaseSync;
let queries: CompiledQuery[] = [];

beforeAll(async () => {
  store = await openSqlite({ dir, durability: "normal", log: silentLog });
  await store.transaction(async (tx) => {
    await sessions.insertSession(tx, sampleSession({ label: "x" }));
    await sessions.insertSession(tx, sampleSession({ key: "child", sessionId: "s2", spawnedBy: BUSY }));
    await runs.insertRun(tx, sampleRun());
    const entry = userMessage("m1", "hello");
    await appendEntry(tx, { sessionKey: BUSY, sessionId: "session-1", entry }, plainRedactor);
  });
  raw = new DatabaseSync(join(dir, STORE_FILE));
});
afterAll(async () => {
  raw.close();
  await store.close();
  remove();
});

/** Returns the steps of a query plan. */
function stepsOf({ sql, parameters }: (typeof queries)[number]): string[] {
  const plan = raw.prepare(`explain query plan ${sql}`).all(...(parameters as string[]));
  return plan.map((row) => String(row.detail));
}

/** Returns the steps that scan a whole table or index. */
function fullScans(): string[] {
  return queries.flatMap((query) => {
    const steps = stepsOf(query);
    // A query may scan its own intermediate results (a limited subquery, a recursive table).
    const own = new Set(steps.flatMap((step) => /^(?:CO-ROUTINE|MATERIALIZE) (\S+)/.exec(step)?.[1] ?? []));
    return steps.filter((step) => {
      const [, scanned = "", rest = ""] = /^SCAN (\S+)(.*)$/.exec(step) ?? [];
      if (
        /^SCAN (\d+ )?CONSTANT ROWS?$/.test(step) ||
        own.has(scanned) ||
        SMALL.some((index) => rest.endsWith(index))
      )
        return false;
      // In a plan, tables also appear under aliases of one letter.
      return TABLES.includes(scanned) || scanned.length === 1;
    });
  });
}

/**
 * Queries that SQLite may plan at each execution. Queries with a full-text index prepare statements of their
 * own (a change of a session writes to that index). For a parameter of LIKE, the pattern decides whether an
 * index helps.
 */
const ALWAYS_PLANNED =
  /message_texts|session_names|(update|delete from) "(sessions|messages)"|(like|glob) \?/;

/** Returns queries that SQLite plans again at each execution (D3 of sqlite/driver.ts). */
function plannedAgain(): string[] {
  let plannings = 0;
  raw.setAuthorizer(() => {
    plannings += 1;
    return constants.SQLITE_OK;
  });
  raw.exec("begin immediate");
  try {
    return queries.flatMap(({ sql, parameters }) => {
      if (ALWAYS_PLANNED.test(sql)) return [];
      const statement = raw.prepare(sql);
      const run = (): number => {
        raw.exec("savepoint one");
        plannings = 0;
        statement.all(...(parameters as string[]));
        const planned = plannings;
        raw.exec("rollback to one; release one");
        return planned;
      };
      run();
      return run() === 0 ? [] : [sql];
    });
  } finally {
    raw.exec("rollback");
    raw.setAuthorizer(null);
  }
}

async function planned(work: (tx: Tx) => Promise<unknown>): Promise<void> {
  queries = await runUndone(store, (tx) => noteQueries(tx, work));
  expect(fullScans()).toEqual([]);
  expect(plannedAgain()).toEqual([]);
}

const ALL: Scope = { all: true };
const TREE: Scope = { all: false, self: BUSY, treeOf: BUSY };
for (const [name, filter] of Object.entries(LISTS)) {
  test(`the list by ${name} reads no whole table`, () =>
    planned((tx) => listSessions(tx, { scope: ALL, limit: 5, ...filter })));
}

const scopes: Record<string, Scope> = {
  everything: ALL,
  "a tree": TREE,
  agents: { ...TREE, agentIds: ["main"] },
};
for (const [name, scope] of Object.entries(scopes)) {
  test(`the search in ${name} reads no whole table`, () =>
    planned((tx) => searchTranscripts(tx, { query: "hello", scope, redactor: plainRedactor, limit: 5 })));
}

/** Queries that read all rows of a time on PostgreSQL, or can run only once there. */
const EMBEDDED: typeof QUERIES = {
  ...Object.fromEntries(
    USAGE_GROUPS.map((by) => [
      `usage by ${by}`,
      (tx: Tx) => usageBy(tx, { by, ...{ since: 5, order: "cost", limit: 5 } }),
    ]),
  ),
  budgetStops: (tx) => budgetStops(tx, 5),
  replaceSessionId: (tx) => sessions.replaceSessionId(tx, BUSY, "a new id", 5),
};
for (const [name, work] of Object.entries({ ...QUERIES, ...EMBEDDED, ...FEATURES.queries(BUSY) })) {
  test(`the query ${name} reads no whole table`, () => planned(work));
}

test("the attention list, an inbox and the count of running sessions each read their own index", async () => {
  const planOf = async (work: (tx: Tx) => Promise<unknown>): Promise<string> => {
    await planned(work);
    return queries.flatMap(stepsOf).join("\n");
  };
  for (const [how, index] of [
    ["done", "sessions_newest"],
    ["failed", "sessions_failed"],
  ] as const) {
    const plan = await planOf((tx) => attention.lastTurns(tx, how, { ...EVERY, sinceMs: 5 }));
    expect(plan).toContain(`${index} (archived=? AND updated_at>?)`);
    expect(plan).not.toContain("runs_by_state");
  }
  for (const read of [countUnoffered, hasUnread]) {
    const plan = await planOf((tx) => read(tx, { sessionKey: BUSY, sessionId: "session-1" }));
    expect(plan).toContain("inbox_marks_unread (session_key=? AND session_id=?)");
    expect(plan).not.toContain("runs_by_state");
  }
  for (const read of [flows.hasFlowToNotify, flows.flowsToNotify])
    expect(await planOf((tx) => read(tx, BUSY))).toContain(
      "flows_to_notify (target_key=? AND chosen_end=? AND state=?)",
    );
  const between = { requesterKey: "child", targetKey: BUSY };
  const waiting = await planOf((tx) => openQuestions(tx, between));
  expect(waiting).toContain("inbox_marks_open (session_key=?");
  expect(waiting).not.toMatch(/runs_by_state|flows_by/);
  expect(await planOf((tx) => openQuestions(tx, { ...between, runId: "run-1" }))).toContain("(run_id=?)");
  const plan = await planOf((tx) => filterCounts(tx, { scope: ALL, askedBy: "t" }));
  expect(plan).toMatch(
    /SEARCH r USING INDEX runs_by_state \(state=\?\)\nSEARCH s USING INDEX \S+ \(key=\?\)/,
  );
});

test("LS3: an agent's sessions of a kind are read in the order of their index, even if there are few", async () => {
  await planned((tx) => listSessions(tx, { scope: ALL, limit: 5, agentId: "main", kinds: ["cron"] }));
  const plans = queries.map((query) => stepsOf(query).join());
  expect(plans).toEqual([
    expect.stringContaining("USING INDEX sessions_by_agent_kind (agent_id=? AND kind=? AND archived=?)"),
  ]);
  expect(plans.join()).not.toContain("TEMP B-TREE");
});
