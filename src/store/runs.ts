// Owns the run table: every way in which a run's row may change.
// RS1: a lane has at most one holder (running or waiting): a unique index says so, not this code (I1).
// RS2: whatever a holder changes names its owner and attempt; zero rows changed means the lane was lost.
// RS3: an ended row never changes.

import { type Selectable, sql } from "kysely";
import type { Code } from "../core/errors.ts";
import { type Usage, ZERO_USAGE } from "../core/message.ts";
import type {
  EndedRunState,
  FlowRef,
  FlowStep,
  Run,
  RunEnd,
  RunInput,
  RunKind,
  RunState,
} from "../core/run.ts";
import type { Route } from "../core/session.ts";
import type { Db, Tx } from "./sql.ts";
import type { RunTable } from "./tables.ts";

/** Who holds a lane: what every commit of a run has to name. */
export interface Fence {
  readonly runId: string;
  readonly owner: string;
  readonly attempt: number;
}

const HOLDING = ["running", "waiting"] as const;
const ACTIVE = ["queued", "running", "waiting"] as const;

function flowOf(row: Selectable<RunTable>): { flow?: FlowRef } {
  if (row.flow_id === null || row.flow_step === null) return {};
  return { flow: { flowId: row.flow_id, step: row.flow_step as FlowStep, turn: row.flow_turn ?? 1 } };
}

function present<K extends string, V>(name: K, value: V | null): { [P in K]?: V } {
  return value === null ? {} : ({ [name]: value } as { [P in K]?: V });
}

function toRun(row: Selectable<RunTable>): Run {
  return {
    runId: row.run_id,
    sessionKey: row.session_key,
    sessionId: row.session_id,
    agentId: row.agent_id,
    laneSeq: row.lane_seq,
    kind: row.kind as RunKind,
    state: row.state as RunState,
    input: JSON.parse(row.input_json) as RunInput,
    chainId: row.chain_id,
    hop: row.hop,
    attempt: row.attempt,
    crashes: row.crashes,
    acceptedAt: row.accepted_at,
    timeoutMs: row.timeout_ms,
    usage: row.usage_json === null ? ZERO_USAGE : (JSON.parse(row.usage_json) as Usage),
    ...flowOf(row),
    ...present("owner", row.owner),
    ...present("startedAt", row.started_at),
    ...present("endedAt", row.ended_at),
    ...present("route", row.route_json === null ? null : (JSON.parse(row.route_json) as Route)),
    ...present("parentRunId", row.parent_run_id),
    ...present("callId", row.call_id),
    ...present("reply", row.reply),
    ...present("code", row.code as Code | null),
    ...present("error", row.error),
    ...present("model", row.model),
  };
}

export async function insertRun(tx: Tx, run: Run): Promise<void> {
  await tx
    .insertInto("runs")
    .values({
      run_id: run.runId,
      session_key: run.sessionKey,
      session_id: run.sessionId,
      agent_id: run.agentId,
      lane_seq: run.laneSeq,
      kind: run.kind,
      state: run.state,
      input_json: JSON.stringify(run.input),
      chain_id: run.chainId,
      hop: run.hop,
      attempt: run.attempt,
      crashes: run.crashes,
      owner: null,
      accepted_at: run.acceptedAt,
      started_at: null,
      ended_at: null,
      timeout_ms: run.timeoutMs,
      route_json: run.route === undefined ? null : JSON.stringify(run.route),
      flow_id: run.flow?.flowId ?? null,
      flow_step: run.flow?.step ?? null,
      flow_turn: run.flow?.turn ?? null,
      parent_run_id: run.parentRunId ?? null,
      call_id: run.callId ?? null,
      reply: null,
      code: null,
      error: null,
      usage_json: null,
      model: null,
    })
    .execute();
}

export async function getRun(db: Db, runId: string): Promise<Run | undefined> {
  const row = await db.selectFrom("runs").selectAll().where("run_id", "=", runId).executeTakeFirst();
  return row && toRun(row);
}

/** The run that a tool call made, if it made one. */
export async function getRunOfCall(db: Db, callId: string): Promise<Run | undefined> {
  const row = await db.selectFrom("runs").selectAll().where("call_id", "=", callId).executeTakeFirst();
  return row && toRun(row);
}

/** Unfinished runs of one session, in lane order. */
export async function activeRuns(db: Db, sessionKey: string): Promise<Run[]> {
  const rows = await db
    .selectFrom("runs")
    .selectAll()
    .where("session_key", "=", sessionKey)
    .where("state", "in", ACTIVE)
    .orderBy("lane_seq")
    .execute();
  return rows.map(toRun);
}

/** Unfinished runs of one flow, in any session. */
export async function activeRunsOfFlow(db: Db, flowId: string): Promise<Run[]> {
  const rows = await db
    .selectFrom("runs")
    .selectAll()
    .where("flow_id", "=", flowId)
    .where("state", "in", ACTIVE)
    .execute();
  return rows.map(toRun);
}

/** How many accepted runs of a lane have not started. */
export async function countQueued(db: Db, sessionKey: string): Promise<number> {
  const row = await db
    .selectFrom("runs")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("session_key", "=", sessionKey)
    .where("state", "=", "queued")
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** How many unfinished runs of a lane come before this one. */
export async function countAhead(db: Db, run: Run): Promise<number> {
  const row = await db
    .selectFrom("runs")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("session_key", "=", run.sessionKey)
    .where("state", "in", ACTIVE)
    .where("lane_seq", "<", run.laneSeq)
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** Lanes with work that nobody holds, oldest work first. */
export async function lanesWithWork(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom("runs")
    .select(["session_key", (eb) => eb.fn.min("accepted_at").as("oldest")])
    .where("state", "=", "queued")
    .groupBy("session_key")
    .orderBy("oldest")
    .execute();
  return rows.map((row) => row.session_key);
}

export async function countByState(db: Db): Promise<Record<"queued" | "running" | "waiting", number>> {
  const rows = await db
    .selectFrom("runs")
    .select(["state", (eb) => eb.fn.countAll<number>().as("n")])
    .where("state", "in", ACTIVE)
    .groupBy("state")
    .execute();
  const counts = { queued: 0, running: 0, waiting: 0 };
  for (const row of rows) counts[row.state as keyof typeof counts] = Number(row.n);
  return counts;
}

/** The run whose turn it is in a lane; undefined: there is none, or somebody holds the lane. */
export async function nextInLane(db: Db, sessionKey: string): Promise<Run | undefined> {
  const row = await db
    .selectFrom("runs")
    .selectAll()
    .where("session_key", "=", sessionKey)
    .where("state", "in", ACTIVE)
    .orderBy("lane_seq")
    .limit(1)
    .executeTakeFirst();
  return row === undefined || row.state !== "queued" ? undefined : toRun(row);
}

/** Gives a queued run to `owner`. `started_at` keeps the first start, so that a time-out counts downtime. */
export async function claimRun(tx: Tx, run: Run, owner: string, at: number): Promise<Run> {
  const attempt = run.attempt + 1;
  const startedAt = run.startedAt ?? at;
  await tx
    .updateTable("runs")
    .set({ state: "running", owner, attempt, started_at: startedAt })
    .where("run_id", "=", run.runId)
    .execute();
  return { ...run, state: "running", owner, attempt, startedAt };
}

/** Moves a held run between running and waiting, or back to the queue (`queued`: parked, keeps its place). */
export async function moveHeld(tx: Tx, fence: Fence, to: "running" | "waiting" | "queued"): Promise<boolean> {
  const done = await tx
    .updateTable("runs")
    .set(to === "queued" ? { state: to, owner: null } : { state: to })
    .where("run_id", "=", fence.runId)
    .where("owner", "=", fence.owner)
    .where("attempt", "=", fence.attempt)
    .where("state", "in", HOLDING)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Whether the lane is still held: asked in the transaction that is about to write for the run. */
export async function isHeld(tx: Tx, fence: Fence): Promise<boolean> {
  const row = await tx
    .selectFrom("runs")
    .select("run_id")
    .where("run_id", "=", fence.runId)
    .where("owner", "=", fence.owner)
    .where("attempt", "=", fence.attempt)
    .where("state", "in", HOLDING)
    .executeTakeFirst();
  return row !== undefined;
}

export interface RunEndFacts {
  readonly end: RunEnd;
  readonly usage: Usage;
  readonly model?: string;
}

/**
 * Ends a run. With a fence: only if it still holds its lane; without: whatever unfinished state it is in.
 * False: it had ended, or the lane was lost; nothing changed.
 */
export async function endRun(tx: Tx, runId: string, facts: RunEndFacts, fence?: Fence): Promise<boolean> {
  const { end, usage, model } = facts;
  let query = tx
    .updateTable("runs")
    .set({
      state: end.state,
      ended_at: end.endedAt,
      reply: end.reply ?? null,
      code: end.code ?? null,
      error: end.error ?? null,
      usage_json: JSON.stringify(usage),
      model: model ?? null,
    })
    .where("run_id", "=", runId);
  query =
    fence === undefined
      ? query.where("state", "in", ACTIVE)
      : query
          .where("state", "in", HOLDING)
          .where("owner", "=", fence.owner)
          .where("attempt", "=", fence.attempt);
  const done = await query.executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** After a crash: what somebody held goes back to the head of its lane. Returns those runs. */
export async function requeueHeld(tx: Tx): Promise<Run[]> {
  const rows = await tx
    .updateTable("runs")
    .set((eb) => ({ state: "queued", owner: null, crashes: eb("crashes", "+", 1) }))
    .where("state", "in", HOLDING)
    .returningAll()
    .execute();
  return rows.map(toRun);
}

/** Counts one more run of a chain; the first one says where the chain began (I8). */
export async function countChainRun(tx: Tx, chainId: string, sessionKey: string): Promise<void> {
  await tx
    .insertInto("chains")
    .values({ chain_id: chainId, runs: 1, root_session_key: sessionKey })
    .onConflict((conflict) => conflict.column("chain_id").doUpdateSet({ runs: sql<number>`chains.runs + 1` }))
    .execute();
}

export interface Chain {
  readonly runs: number;
  readonly rootSessionKey?: string;
  readonly tokens: number;
  /** USD. */
  readonly cost: number;
}

/** What a chain has used so far; a new one: nothing. */
export async function getChain(db: Db, chainId: string): Promise<Chain> {
  const row = await db.selectFrom("chains").selectAll().where("chain_id", "=", chainId).executeTakeFirst();
  if (row === undefined) return { runs: 0, tokens: 0, cost: 0 };
  const root = row.root_session_key === null ? {} : { rootSessionKey: row.root_session_key };
  return { runs: row.runs, tokens: row.tokens, cost: row.cost, ...root };
}

export async function addChainUsage(tx: Tx, chainId: string, usage: Usage): Promise<void> {
  // An append and a run that ended in its queue cost nothing: no write for those.
  if (usage.totalTokens === 0 && usage.cost.total === 0) return;
  await tx
    .updateTable("chains")
    .set((eb) => ({
      tokens: eb("tokens", "+", usage.totalTokens),
      cost: eb("cost", "+", usage.cost.total),
    }))
    .where("chain_id", "=", chainId)
    .execute();
}

/** Whether it falls to the caller to tell the chain's root session that the budget is used up: once. */
export async function claimBudgetNotice(tx: Tx, chainId: string): Promise<boolean> {
  const done = await tx
    .updateTable("chains")
    .set({ told: 1 })
    .where("chain_id", "=", chainId)
    .where("told", "=", 0)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Every run of one flow, oldest first. */
export async function runsOfFlow(db: Db, flowId: string): Promise<Run[]> {
  const rows = await db
    .selectFrom("runs")
    .selectAll()
    .where("flow_id", "=", flowId)
    .orderBy("lane_seq")
    .execute();
  return rows.map(toRun);
}

export interface RunFilter {
  readonly sessionKey: string;
  readonly states?: readonly (RunState | EndedRunState)[];
  readonly limit: number;
}

/** Runs of one session, newest first. */
export async function listRuns(db: Db, filter: RunFilter): Promise<Run[]> {
  let query = db
    .selectFrom("runs")
    .selectAll()
    .where("session_key", "=", filter.sessionKey)
    .orderBy("lane_seq", "desc")
    .limit(filter.limit);
  if (filter.states !== undefined) query = query.where("state", "in", filter.states);
  return (await query.execute()).map(toRun);
}
