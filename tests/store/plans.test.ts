// Checks the plan of every query: no query reads a whole table, and no query is planned again at each
// execution.

import { join } from "node:path";
import { constants, DatabaseSync } from "node:sqlite";
import type { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Scope } from "../../src/core/rules/visibility.ts";
import { USAGE_GROUPS } from "../../src/core/shapes/usage.ts";
import { readChain } from "../../src/store/queries/chains/chain-details.ts";
import * as pictures from "../../src/store/queries/chains/chain-lists.ts";
import * as chains from "../../src/store/queries/chains/chains.ts";
import * as flows from "../../src/store/queries/chains/flows.ts";
import * as refusals from "../../src/store/queries/chains/refusals.ts";
import * as deliveries from "../../src/store/queries/channels/deliveries.ts";
import { deliveryFigures } from "../../src/store/queries/channels/delivery-figures.ts";
import * as idempotency from "../../src/store/queries/idempotency.ts";
import * as attention from "../../src/store/queries/runs/attention.ts";
import { callMessagesOf } from "../../src/store/queries/runs/calls.ts";
import * as claims from "../../src/store/queries/runs/claims.ts";
import { countUnoffered, hasUnread, openQuestions } from "../../src/store/queries/runs/inbox-marks.ts";
import { addUsageRow, budgetStops, usageBy, usageOf } from "../../src/store/queries/runs/ledger.ts";
import { endsOf } from "../../src/store/queries/runs/run-facts.ts";
import * as runs from "../../src/store/queries/runs/runs.ts";
import * as waits from "../../src/store/queries/runs/waits.ts";
import { childCounts, filterCounts, sumsBelow } from "../../src/store/queries/sessions/counts.ts";
import { listSessions, type SessionFilter } from "../../src/store/queries/sessions/session-lists.ts";
import * as sessions from "../../src/store/queries/sessions/sessions.ts";
import { appendEntry, appendHeld } from "../../src/store/queries/transcripts/append.ts";
import {
  findFirstWords,
  firstUserTexts,
  noteFirstWords,
  untitledSessions,
} from "../../src/store/queries/transcripts/first-texts.ts";
import { searchTranscripts } from "../../src/store/queries/transcripts/transcript-search.ts";
import * as transcripts from "../../src/store/queries/transcripts/transcripts.ts";
import type { Store, Tx } from "../../src/store/sql.ts";
import { openSqlite, STORE_FILE } from "../../src/store/sqlite/sqlite.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { noteQueries, runUndone } from "../kit/store/noted-queries.ts";
import { FEATURES } from "./feature-plans.ts";
import { sampleRun, sampleSession, silentLog, temporaryDir, userMessage } from "./samples.ts";

const TABLES = [
  ..."sessions session_ids messages runs waits flows chains refusals deliveries ledger idempotency".split(
    " ",
  ),
  ...FEATURES.tables,
];
/** Indexes with only a few rows, which may be read completely. */
const SMALL = ["USING COVERING INDEX runs_ready", "USING INDEX deliveries_open", ...FEATURES.small];
const KEY = "agent:main:main";
const FENCE = { runId: "run-1", owner: "o", attempt: 1 };
const EVERY = { scope: { all: true }, limit: 5 } as const;
const PATTERNS = { scope: { all: false, agentIds: "any", patterns: ["agent:main:*"] }, limit: 5 } as const;
const USED = { since: 5, order: "cost", limit: 5 } as const;
const USAGE = sampleRun().usage;
const REFUSAL = {
  ...{ callId: "c-1", chainId: "chain-1", runId: "run-1", fromKey: KEY, tool: "sessions_send" },
  ...{ code: "wait_cycle", error: "x", hop: 0, at: 1 },
};
const { dir, remove } = temporaryDir();
let store: Store;
let raw: DatabaseSync;
let queries: CompiledQuery[] = [];

beforeAll(async () => {
  store = await openSqlite({ dir, durability: "normal", log: silentLog });
  await store.transaction(async (tx) => {
    await sessions.insertSession(tx, sampleSession({ label: "x" }));
    await sessions.insertSession(tx, sampleSession({ key: "child", sessionId: "s2", spawnedBy: KEY }));
    await runs.insertRun(tx, sampleRun());
    const entry = userMessage("m1", "hello");
    await appendEntry(tx, { sessionKey: KEY, sessionId: "session-1", entry }, plainRedactor);
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
const TREE: Scope = { all: false, self: KEY, treeOf: KEY };
const filters: Record<string, Partial<SessionFilter>> = {
  nothing: {},
  "running ones": { doing: "running" },
  "failed ones": { doing: "failed" },
  "failed roots": { doing: "failed", roots: true },
  "those of a token": { askedBy: "t" },
  "a cursor": { cursor: Buffer.from('[1,"k"]').toString("base64url") },
  "archived ones": { includeArchived: true },
  "one kind": { kinds: ["cron"] },
  "several kinds": { kinds: ["cron", "hook"] },
  "an agent": { agentId: "main" },
  "an agent and a kind": { agentId: "main", kinds: ["cron"] },
  "a time": { activeSinceMs: 5 },
  "a label": { label: "x" },
  "a label and an agent": { label: "x", agentId: "main" },
  "a spawner": { spawnedBy: KEY },
  roots: { roots: true },
  "roots with a cursor": { roots: true, cursor: Buffer.from('[1,"k"]').toString("base64url") },
  "roots of an agent": { roots: true, agentId: "main" },
  "archived roots": { roots: true, includeArchived: true },
  "roots among key patterns": {
    roots: true,
    scope: { all: false, agentIds: "any", patterns: ["agent:main:*", "*x"] },
  },
  keys: { keys: [KEY, "child"] },
  "keys and a text": { keys: [KEY, "child"], search: "hello" },
  "a searched text": { search: "hello" },
  "a short searched text": { search: "x" },
  "keys left out": { excludeKeys: [KEY] },
  "one session": { scope: { all: false, self: KEY } },
  "a tree": { scope: TREE },
  "a tree and its agent": { scope: { ...TREE, agentIds: ["main"] }, kinds: ["cron"] },
  "key patterns": { scope: { all: false, agentIds: "any", patterns: ["agent:main:*", "*x"] } },
};

for (const [name, filter] of Object.entries(filters)) {
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

const reads: Record<string, (tx: Tx) => Promise<unknown>> = {
  getSession: (tx) => sessions.getSession(tx, KEY),
  findSessionId: (tx) => sessions.findSessionId(tx, "session-1"),
  ancestorsOf: (tx) => sessions.ancestorsOf(tx, "child"),
  busyDescendantsOf: (tx) => sessions.busyDescendantsOf(tx, KEY, 5),
  endsOf: (tx) => endsOf(tx, ["run-1", "run-2"]),
  activityOf: (tx) => sessions.activityOf(tx, [KEY, "child"]),
  filterCounts: (tx) => filterCounts(tx, { scope: ALL, askedBy: "t" }),
  filterCountsOfPatterns: (tx) =>
    filterCounts(tx, { scope: { all: false, agentIds: "any", patterns: ["agent:*"] }, askedBy: "t" }),
  childCounts: (tx) => childCounts(tx, { keys: [KEY, "child"], scope: ALL }),
  childCountsOfPatterns: (tx) =>
    childCounts(tx, {
      keys: [KEY],
      scope: { all: false, agentIds: "any", patterns: ["*x"] },
      includeArchived: true,
    }),
  sumsBelow: (tx) => sumsBelow(tx, { keys: [KEY, "child"], scope: ALL }),
  readHistory: (tx) =>
    transcripts.readHistory(tx, { sessionId: "session-1", limit: 5, before: "m1", includeTools: false }),
  lastMessages: (tx) => transcripts.lastMessages(tx, "session-1", 5, { includeTools: true }),
  readContext: (tx) => transcripts.readContext(tx, "session-1"),
  rowsAfter: (tx) => transcripts.rowsAfter(tx, "session-1", { seq: 5, id: "message-5" }),
  readRun: (tx) => transcripts.readRun(tx, "run-1"),
  firstUserTexts: (tx) => firstUserTexts(tx, ["session-1", "session-2"]),
  noteFirstWords: (tx) =>
    noteFirstWords(tx, { role: "user", session_id: "session-1" }, "hello", plainRedactor),
  findFirstWords: (tx) => findFirstWords(tx, ["session-1", "session-2"], plainRedactor),
  untitledSessions: (tx) => untitledSessions(tx, 5, 5),
  getDelivery: (tx) => deliveries.getDelivery(tx, "d"),
  hasPendingDelivery: (tx) => deliveries.hasPendingDelivery(tx, ["r1", "r2"]),
  listDeliveries: (tx) => deliveries.listDeliveries(tx, { state: "failed", cursor: "5", limit: 5 }),
  deliveryFigures: (tx) => deliveryFigures(tx, ['["webchat",', '["webhook",null,"x",null]']),
  listDeliveriesOfSession: (tx) => deliveries.listDeliveries(tx, { sessionKey: KEY, limit: 5 }),
  usageOf: (tx) => usageOf(tx, { sessionKey: KEY }),
  deliveryStates: (tx) => deliveries.deliveryStates(tx, ["r1", "r2"]),
  recallAnswer: (tx) => idempotency.recallAnswer(tx, { key: "k", owner: "c", method: "m", paramsHash: "h" }),
  getRun: (tx) => runs.getRun(tx, "run-1"),
  getRunOfCall: (tx) => runs.getRunOfCall(tx, "c"),
  activeRuns: (tx) => runs.activeRuns(tx, KEY),
  activeRunsOfFlow: (tx) => runs.activeRunsOfFlow(tx, "f"),
  countLane: (tx) => runs.countLane(tx, KEY),
  countAhead: (tx) => runs.countAhead(tx, sampleRun()),
  countRunning: (tx) => claims.countRunning(tx),
  countByState: (tx) => runs.countByState(tx),
  laneFigures: (tx) => runs.laneFigures(tx),
  listRuns: (tx) => runs.listRuns(tx, { sessionKey: KEY, limit: 5 }),
  lastFailedTurns: (tx) => attention.lastTurns(tx, "failed", { ...EVERY, sinceMs: 5 }),
  lastDoneTurns: (tx) => attention.lastTurns(tx, "done", { ...EVERY, sinceMs: 5 }),
  lastDoneTurnsOfPatterns: (tx) => attention.lastTurns(tx, "done", { ...PATTERNS, sinceMs: 5 }),
  runningTurns: (tx) => attention.activeTurns(tx, "running", EVERY),
  waitingTurns: (tx) => attention.activeTurns(tx, "waiting", EVERY),
  queuedTurns: (tx) => attention.activeTurns(tx, "queued", EVERY),
  everyQueuedTurn: (tx) => attention.activeTurns(tx, "queued", { ...EVERY, everyQueued: true }),
  ...Object.fromEntries(
    USAGE_GROUPS.map((by) => [`usage by ${by}`, (tx: Tx) => usageBy(tx, { by, ...USED })]),
  ),
  budgetStops: (tx) => budgetStops(tx, 5),
  rootsOfChains: (tx) => pictures.rootsOfChains(tx, ["chain-1", "chain-2"]),
  awaitedSessions: (tx) => attention.awaitedSessions(tx, ["run-1", "run-2"]),
  textsOfTurns: (tx) => attention.textsOfTurns(tx, ["run-1", "run-2"]),
  dismissTurn: (tx) => attention.dismissTurn(tx, "run-1", { at: 5 }),
  failedDeliveries: (tx) => deliveries.failedDeliveries(tx, 5),
  listRunsInState: (tx) => runs.listRuns(tx, { sessionKey: KEY, states: ["ok"], limit: 5 }),
  getChain: (tx) => chains.getChain(tx, "chain-1"),
  runsOfFlow: (tx) => runs.runsOfFlow(tx, "f"),
  isHeld: (tx) => claims.isHeld(tx, FENCE),
  openEdges: (tx) => waits.openEdges(tx, [KEY, "child"], 5),
  waitsOfCall: (tx) => waits.waitsOfCall(tx, "c"),
  jobWaitsOfRuns: (tx) => waits.jobWaitsOfRuns(tx, ["run-1"]),
  openSpawnEdges: (tx) => flows.openSpawnEdges(tx, [KEY]),
  spawnsOfRun: (tx) => flows.spawnsOfRun(tx, "run-1"),
  jobOfChild: (tx) => flows.jobOfChild(tx, KEY),
  settledAmong: (tx) => waits.settledAmong(tx, ["f5", "r7", "p"]),
  countDeliveries: (tx) => deliveries.countDeliveries(tx),
  countOpenWaits: (tx) => waits.countOpenWaits(tx),
  getFlow: (tx) => flows.getFlow(tx, "f"),
  openFlowsOf: (tx) => flows.openFlowsOf(tx, KEY),
  openFlowsOfRun: (tx) => flows.openFlowsOfRun(tx, "run-1"),
  openSpawnsOf: (tx) => flows.openSpawnsOf(tx, { sessionKey: KEY }),
  ...FEATURES.queries(KEY),
};
const writes: Record<string, (tx: Tx) => Promise<unknown>> = {
  updateSession: (tx) => sessions.updateSession(tx, KEY, { label: "y" }),
  holdLane: (tx) => sessions.holdLane(tx, KEY),
  takeLanePlace: (tx) => sessions.takeLanePlace(tx, KEY, 5),
  replaceSessionId: (tx) => sessions.replaceSessionId(tx, KEY, "s9", 5),
  deleteSessionRows: (tx) => sessions.deleteSessionRows(tx, KEY, { transcripts: true }),
  beginAttempt: (tx) => deliveries.beginAttempt(tx, { id: "d", partsSent: 0 }, "p"),
  endAttempt: (tx) => deliveries.endAttempt(tx, { id: "d", owner: "p" }, { kind: "sent" }, 5),
  recoverOpenAttempts: (tx) => deliveries.recoverOpenAttempts(tx, { at: 5, canRepeat: () => true }),
  requeueDelivery: (tx) => deliveries.requeueDelivery(tx, "d", 5),
  dismissDelivery: (tx) => deliveries.dismissDelivery(tx, "d", 5),
  pruneAnswers: (tx) => idempotency.pruneAnswers(tx, 5),
  addUsageRow: (tx) =>
    addUsageRow(tx, {
      runId: "r",
      sessionKey: KEY,
      agentId: "main",
      provider: "p",
      model: "m",
      usage: USAGE,
      at: 1,
    }),
  readyHeads: (tx) => claims.readyHeads(tx, { busy: [KEY], passed: ["x"] }),
  readyNext: (tx) => claims.readyNext(tx, KEY, 5),
  moveHeld: (tx) => claims.moveHeld(tx, FENCE, "waiting", 5),
  endRun: (tx) => runs.endRun(tx, "run-1", { end: { state: "ok", endedAt: 5 }, usage: USAGE }),
  endHeldRun: (tx) => {
    const fence = { runId: "run-1", owner: "process", attempt: 1 };
    return runs.endRun(tx, "run-1", { end: { state: "ok", endedAt: 5 }, usage: USAGE }, fence);
  },
  requeueHeld: (tx) => claims.requeueHeld(tx, 5),
  countChainRun: (tx) =>
    chains.countChainRun(tx, {
      chainId: "chain-1",
      rootSessionKey: KEY,
      hop: 1,
      at: 1,
      runs: 1,
      guest: false,
      tokenLimit: undefined,
      outside: undefined,
    }),
  appendHeld: (tx) => {
    const place = { sessionKey: KEY, sessionId: "session-1", runId: FENCE.runId };
    return appendHeld(tx, { ...place, entry: userMessage("m2", "hello") }, plainRedactor, FENCE);
  },
  noteChainRefused: (tx) => chains.noteChainRefused(tx, "chain-1", 1),
  addRefusal: (tx) => refusals.addRefusal(tx, REFUSAL),
  forgetRefusals: (tx) => refusals.forgetRefusals(tx, 5),
  "chains of a time": (tx) => pictures.listChains(tx, { since: 1, crossed: 1, limit: 5 }),
  "chains behind a place": (tx) =>
    pictures.listChains(tx, { since: 1, crossed: 0, limit: 5, before: { lastAt: 9, chainId: "x" } }),
  "chains of a session": (tx) => pictures.listChains(tx, { since: 1, crossed: 1, limit: 5, sessionKey: KEY }),
  "chains at work": (tx) => pictures.chainsAtWork(tx, { until: 1, kinds: [1], limit: 5 }),
  "what chains are": (tx) => pictures.factsOfChains(tx, ["chain-1", "chain-2"]),
  "how chains began": (tx) => pictures.openingsOf(tx, ["chain-1", "chain-2"]),
  "what sessions are called": (tx) => pictures.labelsOf(tx, [KEY, "x"]),
  "what runs used": (tx) => pictures.usageOfChains(tx, ["chain-1"]),
  "calls of runs": (tx) => callMessagesOf(tx, ["run-1", "run-2"], { rowsMax: 5, bytesMax: 1_000 }),
  "a whole chain": (tx) => readChain(tx, "chain-1", { stepsMax: 5, bytesMax: 1_000 }),
  claimBudgetNotice: (tx) => chains.claimBudgetNotice(tx, "chain-1"),
  answerWaits: (tx) => waits.answerWaits(tx, "run-1", 5),
  giveUpWaits: (tx) => waits.giveUpWaits(tx, "c"),
  confirmAnswer: (tx) => waits.confirmAnswer(tx, "c"),
  loseAnswer: (tx) => waits.loseAnswer(tx, "c"),
  giveUpWaitsOf: (tx) => waits.giveUpWaitsOf(tx, "run-1"),
  giveUpCallerWaits: (tx) => waits.giveUpCallerWaits(tx),
  endFlow: (tx) => flows.endFlow(tx, "f", "reason", 5),
  noteReply: (tx) => flows.noteReply(tx, "f", "reply", true),
};
for (const [name, work] of [...Object.entries(reads), ...Object.entries(writes)]) {
  test(`the query ${name} reads no whole table`, () => planned(work));
}

test("unfinished runs of a lane are found by state, so runs that have ended cost nothing", async () => {
  await planned((tx) => runs.activeRuns(tx, KEY));
  const [query] = queries;
  if (query === undefined) throw new Error("a query was expected");
  expect(stepsOf(query).join()).toContain("runs_in_lane_by_state (session_key=? AND state=?)");
});

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
    const plan = await planOf((tx) => read(tx, { sessionKey: KEY, sessionId: "session-1" }));
    expect(plan).toContain("inbox_marks_unread (session_key=? AND session_id=?)");
    expect(plan).not.toContain("runs_by_state");
  }
  const between = { requesterKey: "child", targetKey: KEY };
  const waiting = await planOf((tx) => openQuestions(tx, between));
  expect(waiting).toContain("inbox_marks_open (session_key=?");
  expect(waiting).not.toMatch(/runs_by_state|flows_by/);
  expect(await planOf((tx) => openQuestions(tx, { ...between, runId: "run-1" }))).toContain("(run_id=?)");
  const plan = await planOf((tx) => filterCounts(tx, { scope: ALL, askedBy: "t" }));
  expect(plan).toMatch(
    /SEARCH r USING INDEX runs_by_state \(state=\?\)\nSEARCH s USING INDEX \S+ \(key=\?\)/,
  );
});

test("if keys are given, the index of keys is used, whatever other filters are set", async () => {
  await planned((tx) =>
    listSessions(tx, {
      scope: ALL,

      limit: 5,
      keys: [KEY, "child"],
      kinds: ["main"],
    }),
  );
  expect(queries.flatMap(stepsOf).join()).toContain("USING INDEX sqlite_autoindex_sessions_1 (key=?)");
});

test("root sessions are read in the order of their index, so sub-agents cost nothing", async () => {
  await planned((tx) => listSessions(tx, { scope: ALL, limit: 5, roots: true }));
  const plans = queries.map((query) => stepsOf(query).join());
  expect(plans).toEqual([expect.stringContaining("USING INDEX sessions_roots (archived=?)")]);
  expect(plans.join()).not.toContain("TEMP B-TREE");
});

test("LS3: an agent's sessions of a kind are read in the order of their index, even if there are few", async () => {
  await planned((tx) => listSessions(tx, { scope: ALL, limit: 5, agentId: "main", kinds: ["cron"] }));
  const plans = queries.map((query) => stepsOf(query).join());
  expect(plans).toEqual([
    expect.stringContaining("USING INDEX sessions_by_agent_kind (agent_id=? AND kind=? AND archived=?)"),
  ]);
  expect(plans.join()).not.toContain("TEMP B-TREE");
});
