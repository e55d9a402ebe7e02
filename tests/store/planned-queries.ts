// The queries whose plans are checked on both databases (plans.test.ts, postgres/plans.test.ts). Their keys and
// ids exist in the tables that the test of PostgreSQL fills.

import type { Scope } from "../../src/core/rules/visibility.ts";
import { newestFailures } from "../../src/store/queries/agent-work.ts";
import { readChain } from "../../src/store/queries/chains/chain-details.ts";
import * as pictures from "../../src/store/queries/chains/chain-lists.ts";
import * as chains from "../../src/store/queries/chains/chains.ts";
import * as flows from "../../src/store/queries/chains/flows.ts";
import * as refusals from "../../src/store/queries/chains/refusals.ts";
import * as deliveries from "../../src/store/queries/channels/deliveries.ts";
import { deliveryFigures } from "../../src/store/queries/channels/delivery-figures.ts";
import * as deadlines from "../../src/store/queries/deadlines.ts";
import * as idempotency from "../../src/store/queries/idempotency.ts";
import * as attention from "../../src/store/queries/runs/attention.ts";
import { callMessagesOf } from "../../src/store/queries/runs/calls.ts";
import * as claims from "../../src/store/queries/runs/claims.ts";
import { countUnoffered, hasUnread, openQuestions } from "../../src/store/queries/runs/inbox-marks.ts";
import { addUsageRow, usageOf } from "../../src/store/queries/runs/ledger.ts";
import { endsOf } from "../../src/store/queries/runs/run-facts.ts";
import * as runs from "../../src/store/queries/runs/runs.ts";
import { releaseSlot, takeSlot } from "../../src/store/queries/runs/slots.ts";
import * as waits from "../../src/store/queries/runs/waits.ts";
import { childCounts, filterCounts, sumsBelow } from "../../src/store/queries/sessions/counts.ts";
import type { SessionFilter } from "../../src/store/queries/sessions/session-lists.ts";
import * as sessions from "../../src/store/queries/sessions/sessions.ts";
import { appendHeld } from "../../src/store/queries/transcripts/append.ts";
import {
  findFirstWords,
  firstUserTexts,
  noteFirstWords,
  untitledSessions,
} from "../../src/store/queries/transcripts/first-texts.ts";
import { searchChains } from "../../src/store/queries/transcripts/transcript-search.ts";
import * as transcripts from "../../src/store/queries/transcripts/transcripts.ts";
import type { Tx } from "../../src/store/sql.ts";
import { plainRedactor } from "../kit/redactor.ts";
import { sampleRun, userMessage } from "./samples.ts";

type Work = (tx: Tx) => Promise<unknown>;

/** Number of rows in the largest tables of PostgreSQL. */
export const PLAN_ROWS = 50_000;
/** The key of a busy lane. Nearly all of its runs have ended. */
export const BUSY = "agent:main:main";
/** The inbox of an external session. All of its runs are messages. */
export const INBOX = "agent:main:mcp:busy";
const FENCE = { runId: "r1", owner: "o", attempt: 1 };
export const EVERY = { scope: { all: true }, limit: 5 } as const;
const PATTERNS = { scope: { all: false, agentIds: "any", patterns: ["agent:main:*"] }, limit: 5 } as const;
const USAGE = sampleRun().usage;
const REFUSAL = {
  ...{ callId: "c-1", chainId: "chain-1", runId: "run-1", fromKey: BUSY, tool: "sessions_send" },
  ...{ code: "wait_cycle", error: "x", hop: 0, at: 1 },
};
const ALL: Scope = { all: true };
export const TREE: Scope = { all: false, self: BUSY, treeOf: "agent:a1:chat:201" };

/** Filters of a list of sessions. */
export const LISTS: Readonly<Record<string, Partial<SessionFilter>>> = {
  nothing: {},
  "a cursor": { cursor: Buffer.from('[5000,"k"]').toString("base64url") },
  "archived ones": { includeArchived: true },
  "several kinds": { kinds: ["cron", "other"] },
  "an agent": { agentId: "a7" },
  "an agent and a kind": { agentId: "a7", kinds: ["cron"] },
  "a time": { activeSinceMs: PLAN_ROWS / 2 - 50 },
  "a label": { label: "label 77" },
  "a spawner": { spawnedBy: "agent:a1:chat:201" },
  roots: { roots: true },
  "roots with a cursor": { roots: true, cursor: Buffer.from('[5000,"k"]').toString("base64url") },
  "archived roots": { roots: true, includeArchived: true },
  "roots of a kind": { roots: true, kinds: ["cron"] },
  keys: { keys: [BUSY, "agent:a1:chat:201"] },
  "running ones": { doing: "running" },
  "failed ones": { doing: "failed" },
  "those of a token": { askedBy: "t" },
  "a searched text": { search: "chat:24999" },
  "a searched text of many": { search: "label 1" },
  "a short searched text": { search: "99" },
  "one session": { scope: { all: false, self: BUSY } },
  "a tree": { scope: TREE },
  "a tree and its agent": { scope: { ...TREE, agentIds: ["a1"] }, kinds: ["cron"] },
  "key patterns": { scope: { all: false, agentIds: "any", patterns: ["agent:a7:chat:2*"] } },
  "failed roots": { doing: "failed", roots: true },
  "one kind": { kinds: ["cron"] },
  "a label and an agent": { label: "x", agentId: "main" },
  "roots of an agent": { roots: true, agentId: "main" },
  "roots among key patterns": {
    roots: true,
    scope: { all: false, agentIds: "any", patterns: ["agent:main:*", "*x"] },
  },
  "keys and a text": { keys: [BUSY, "child"], search: "hello" },
  "keys left out": { excludeKeys: [BUSY] },
};

/** Queries that read few rows, however large the tables are. */
export const QUERIES: Readonly<Record<string, Work>> = {
  getSession: (tx) => sessions.getSession(tx, BUSY),
  findSessionId: (tx) => sessions.findSessionId(tx, "s5"),
  ancestorsOf: (tx) => sessions.ancestorsOf(tx, "agent:a21:chat:221"),
  busyDescendantsOf: (tx) => sessions.busyDescendantsOf(tx, "agent:a1:chat:201", 50),
  endsOf: (tx) => endsOf(tx, ["r5", "r7"]),
  activityOf: (tx) => sessions.activityOf(tx, [BUSY, "agent:a1:chat:1"]),
  childCounts: (tx) => childCounts(tx, { keys: [BUSY, "agent:a1:chat:201"], scope: ALL }),
  sumsBelow: (tx) => sumsBelow(tx, { keys: [BUSY, "agent:a1:chat:201"], scope: ALL }),
  filterCounts: (tx) => filterCounts(tx, { scope: ALL, askedBy: "t" }),
  deleteSessionRows: (tx) => sessions.deleteSessionRows(tx, "agent:a1:chat:201", { transcripts: true }),
  newestFailures: (tx) => newestFailures(tx),
  holdLane: (tx) => sessions.holdLane(tx, BUSY),
  "holdLane with the writer": (tx) => sessions.holdLane(tx, BUSY, "agent:main:main"),
  takeLanePlace: (tx) => sessions.takeLanePlace(tx, BUSY, 5),
  readHistory: (tx) =>
    transcripts.readHistory(tx, { sessionId: "s5", limit: 50, before: "m49005", includeTools: false }),
  readContext: (tx) => transcripts.readContext(tx, "s5"),
  readRun: (tx) => transcripts.readRun(tx, "r5"),
  firstUserTexts: (tx) =>
    firstUserTexts(
      tx,
      Array.from({ length: 200 }, (_, n) => `s${n}`),
    ),
  findFirstWords: (tx) => findFirstWords(tx, ["s5", "s6"], plainRedactor),
  untitledSessions: (tx) => untitledSessions(tx, 40_000, 500),
  lastToolResult: (tx) => transcripts.lastToolResult(tx, "s5"),
  getRun: (tx) => runs.getRun(tx, "r5"),
  getRunOfCall: (tx) => runs.getRunOfCall(tx, "call5"),
  readyHeads: (tx) => claims.readyHeads(tx, { busy: [BUSY], passed: ["x"] }),
  readyNext: (tx) => claims.readyNext(tx, BUSY, 5),
  activeRuns: (tx) => runs.activeRuns(tx, BUSY),
  activeRunsOfFlow: (tx) => runs.activeRunsOfFlow(tx, "f5"),
  countLane: (tx) => runs.countLane(tx, BUSY),
  countAhead: (tx) => runs.countAhead(tx, sampleRun({ sessionKey: BUSY, laneSeq: PLAN_ROWS })),
  countRunning: (tx) => claims.countRunning(tx),
  countByState: (tx) => runs.countByState(tx),
  laneFigures: (tx) => runs.laneFigures(tx),
  listRuns: (tx) => runs.listRuns(tx, { sessionKey: BUSY, limit: 50 }),
  lastFailedTurns: (tx) => attention.lastTurns(tx, "failed", { scope: ALL, limit: 50, sinceMs: 5 }),
  lastDoneTurns: (tx) => attention.lastTurns(tx, "done", { scope: ALL, limit: 50, sinceMs: 5 }),
  runningTurns: (tx) => attention.activeTurns(tx, "running", { scope: ALL, limit: 50 }),
  waitingTurns: (tx) => attention.activeTurns(tx, "waiting", { scope: ALL, limit: 50 }),
  queuedTurns: (tx) => attention.activeTurns(tx, "queued", { scope: ALL, limit: 50 }),
  awaitedSessions: (tx) => attention.awaitedSessions(tx, ["r1000", "r2000"]),
  textsOfTurns: (tx) => attention.textsOfTurns(tx, ["r1000", "r2000"]),
  dismissTurn: (tx) => attention.dismissTurn(tx, "r1000", { at: 5 }),
  countUnoffered: (tx) => countUnoffered(tx, { sessionKey: INBOX, sessionId: "inbox" }),
  openQuestions: (tx) => openQuestions(tx, { requesterKey: "agent:a1:chat:1", targetKey: INBOX }),
  openQuestionNamed: (tx) =>
    openQuestions(tx, { requesterKey: "agent:a1:chat:1", targetKey: INBOX, runId: "i1" }),
  hasUnread: (tx) => hasUnread(tx, { sessionKey: INBOX, sessionId: "inbox" }),
  failedDeliveries: (tx) => deliveries.failedDeliveries(tx, 50),
  isHeld: (tx) => claims.isHeld(tx, FENCE),
  requeueHeld: (tx) => claims.requeueHeld(tx, 5),
  requeueOrphans: (tx) => claims.requeueHeld(tx, 5, "the dead"),
  hasOrphans: (tx) => claims.hasOrphans(tx),
  heldBy: (tx) => claims.heldBy(tx, "p1"),
  takeSlot: (tx) => takeSlot(tx, "a run without a slot", 1_000),
  releaseSlot: (tx) => releaseSlot(tx, "r1"),
  endedSince: (tx) => runs.endedSince(tx, PLAN_ROWS - 10, 50),
  openEdges: (tx) => waits.openEdges(tx, ["agent:a1:chat:1000", BUSY], 5),
  waitsOfCall: (tx) => waits.waitsOfCall(tx, "c"),
  jobWaitsOfRuns: (tx) => waits.jobWaitsOfRuns(tx, ["r1000"]),
  openSpawnEdges: (tx) => flows.openSpawnEdges(tx, [BUSY]),
  spawnsOfRun: (tx) => flows.spawnsOfRun(tx, "r1000"),
  jobOfChild: (tx) => flows.jobOfChild(tx, BUSY),
  settledAmong: (tx) => waits.settledAmong(tx, ["f5", "r7", "p"]),
  countDeliveries: (tx) => deliveries.countDeliveries(tx),
  countOpenWaits: (tx) => waits.countOpenWaits(tx),
  answerWaits: (tx) => waits.answerWaits(tx, "r1001", 5),
  giveUpCallerWaits: (tx) => waits.giveUpCallerWaits(tx, "the dead"),
  confirmAnswer: (tx) => waits.confirmAnswer(tx, "c5"),
  loseAnswer: (tx) => waits.loseAnswer(tx, "c5"),
  giveUpWaitsOf: (tx) => waits.giveUpWaitsOf(tx, "r1000"),
  openFlowsOf: (tx) => flows.openFlowsOf(tx, BUSY),
  flowsToNotify: (tx) => flows.flowsToNotify(tx, BUSY),
  hasFlowToNotify: (tx) => flows.hasFlowToNotify(tx, BUSY),
  openFlowsOfRun: (tx) => flows.openFlowsOfRun(tx, "r5000"),
  openSpawnsOf: (tx) => flows.openSpawnsOf(tx, { sessionKey: BUSY }),
  storedKinds: (tx) => deadlines.storedKinds(tx, PLAN_ROWS),
  listDeliveries: (tx) => deliveries.listDeliveries(tx, { state: "failed", limit: 50 }),
  recoverOpenAttempts: (tx) => deliveries.recoverOpenAttempts(tx, { at: 5, canRepeat: () => true }),
  usageOf: (tx) => usageOf(tx, { sessionKey: "k5" }),
  deliveryStates: (tx) => deliveries.deliveryStates(tx, ["r5", "r6"]),
  filterCountsOfPatterns: (tx) =>
    filterCounts(tx, { scope: { all: false, agentIds: "any", patterns: ["agent:*"] }, askedBy: "t" }),
  childCountsOfPatterns: (tx) =>
    childCounts(tx, {
      keys: [BUSY],
      scope: { all: false, agentIds: "any", patterns: ["*x"] },
      includeArchived: true,
    }),
  lastMessages: (tx) => transcripts.lastMessages(tx, "session-1", 5, { includeTools: true }),
  noteFirstWords: (tx) =>
    noteFirstWords(tx, { role: "user", session_id: "session-1" }, "hello", plainRedactor),
  getDelivery: (tx) => deliveries.getDelivery(tx, "d"),
  hasPendingDelivery: (tx) => deliveries.hasPendingDelivery(tx, ["r1", "r2"]),
  deliveryFigures: (tx) => deliveryFigures(tx, ['["webchat",', '["webhook",null,"x",null]']),
  listDeliveriesOfSession: (tx) => deliveries.listDeliveries(tx, { sessionKey: BUSY, limit: 5 }),
  recallAnswer: (tx) => idempotency.recallAnswer(tx, { key: "k", owner: "c", method: "m", paramsHash: "h" }),
  lastDoneTurnsOfPatterns: (tx) => attention.lastTurns(tx, "done", { ...PATTERNS, sinceMs: 5 }),
  everyQueuedTurn: (tx) => attention.activeTurns(tx, "queued", { ...EVERY, everyQueued: true }),
  rootsOfChains: (tx) => pictures.rootsOfChains(tx, ["chain-1", "chain-2"]),
  listRunsInState: (tx) => runs.listRuns(tx, { sessionKey: BUSY, states: ["ok"], limit: 5 }),
  getChain: (tx) => chains.getChain(tx, "chain-1"),
  runsOfFlow: (tx) => runs.runsOfFlow(tx, "f"),
  getFlow: (tx) => flows.getFlow(tx, "f"),
  updateSession: (tx) => sessions.updateSession(tx, BUSY, { label: "y" }),
  beginAttempt: (tx) => deliveries.beginAttempt(tx, { id: "d", partsSent: 0 }, "p"),
  endAttempt: (tx) => deliveries.endAttempt(tx, { id: "d", owner: "p" }, { kind: "sent" }, 5),
  requeueDelivery: (tx) => deliveries.requeueDelivery(tx, "d", 5),
  dismissDelivery: (tx) => deliveries.dismissDelivery(tx, "d", 5),
  pruneAnswers: (tx) => idempotency.pruneAnswers(tx, 5),
  addUsageRow: (tx) =>
    addUsageRow(tx, {
      runId: "r",
      sessionKey: BUSY,
      agentId: "main",
      provider: "p",
      model: "m",
      usage: USAGE,
      at: 1,
    }),
  moveHeld: (tx) => claims.moveHeld(tx, FENCE, "waiting", 5),
  endRun: (tx) => runs.endRun(tx, "run-1", { end: { state: "ok", endedAt: 5 }, usage: USAGE }),
  endHeldRun: (tx) => {
    const fence = { runId: "run-1", owner: "process", attempt: 1 };
    return runs.endRun(tx, "run-1", { end: { state: "ok", endedAt: 5 }, usage: USAGE }, fence);
  },
  countChainRun: (tx) =>
    chains.countChainRun(tx, {
      chainId: "chain-1",
      rootSessionKey: BUSY,
      hop: 1,
      at: 1,
      runs: 1,
      guest: false,
      tokenLimit: undefined,
      labels: undefined,
    }),
  appendHeld: (tx) => {
    const place = { sessionKey: BUSY, sessionId: "session-1", runId: FENCE.runId };
    return appendHeld(tx, { ...place, entry: userMessage("m2", "hello") }, plainRedactor, FENCE);
  },
  noteChainRefused: (tx) => chains.noteChainRefused(tx, "chain-1", 1),
  addRefusal: (tx) => refusals.addRefusal(tx, REFUSAL),
  forgetRefusals: (tx) => refusals.forgetRefusals(tx, 5),
  "chains of a time": (tx) => pictures.listChains(tx, { since: 1, crossed: 1, limit: 5 }),
  "chains behind a place": (tx) =>
    pictures.listChains(tx, { since: 1, crossed: 0, limit: 5, before: { lastAt: 9, chainId: "x" } }),
  "chains of a session": (tx) =>
    pictures.listChains(tx, { since: 1, crossed: 1, limit: 5, sessionKey: BUSY }),
  "chains of an agent": (tx) =>
    pictures.listChains(tx, { since: 1, until: 9, crossed: 1, limit: 5, agentId: "main", state: "failed" }),
  "chains with matches": (tx) =>
    pictures.listChains(tx, {
      ...{ since: 1, crossed: 1, limit: 5, state: "running" },
      among: { chainIds: ["chain-1", "chain-2"], sessionKeys: [BUSY, "x"] },
    }),
  "chains with words": (tx) => searchChains(tx, { query: "hello", scope: ALL, since: 1, until: 9, limit: 5 }),
  "chains at work": (tx) => pictures.chainsAtWork(tx, { until: 1, kinds: [1], limit: 5 }),
  "what chains are": (tx) => pictures.factsOfChains(tx, ["chain-1", "chain-2"]),
  "how chains began": (tx) => pictures.openingsOf(tx, ["chain-1", "chain-2"]),
  "what sessions are called": (tx) => pictures.labelsOf(tx, [BUSY, "x"]),
  "what runs used": (tx) => pictures.usageOfChains(tx, ["chain-1"]),
  "calls of runs": (tx) => callMessagesOf(tx, ["run-1", "run-2"], { rowsMax: 5, bytesMax: 1_000 }),
  "a whole chain": (tx) => readChain(tx, "chain-1", { stepsMax: 5, bytesMax: 1_000 }),
  claimBudgetNotice: (tx) => chains.claimBudgetNotice(tx, "chain-1"),
  giveUpWaits: (tx) => waits.giveUpWaits(tx, "c"),
  endFlow: (tx) => flows.endFlow(tx, "f", "reason", 5),
  noteReply: (tx) => flows.noteReply(tx, "f", "reply", true),
};
