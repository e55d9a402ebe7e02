// Owns the run table: its rows, and how runs begin and end. claims.ts owns the claims.
// A unique index ensures that a lane has at most one run that is running or waiting (I1). A transaction that
// ends a run first locks its row and checks that it still holds the run (`isHeld`).
// RS3: the row of an ended run never changes, except that an operator may dismiss it once (attention.ts), and
//      that the deletion of its session blanks its texts.

import { type Selectable, sql } from "kysely";
import { APPENDS, nameQueue } from "../../../core/rules/run-queue.ts";
import type { Code } from "../../../core/shapes/errors.ts";
import { type Usage, ZERO_USAGE } from "../../../core/shapes/message.ts";
import type { Route } from "../../../core/shapes/route.ts";
import type {
  FlowRef,
  FlowStep,
  Run,
  RunEnd,
  RunInput,
  RunKind,
  RunState,
} from "../../../core/shapes/run.ts";
import { prepared } from "../../prepared.ts";
import type { RunTable } from "../../schema/tables.ts";
import { type Db, kindOf, present, type Tx } from "../../sql.ts";

/**
 * States as literals for queries. PostgreSQL uses a partial index in a generic plan only if the state is not
 * a parameter.
 */
export const QUEUED = sql.lit<RunState>("queued");
/** States in which a run holds its lane. */
export const HOLDING = [sql.lit<RunState>("running"), sql.lit<RunState>("waiting")];
export const ACTIVE = [QUEUED, ...HOLDING];

/**
 * Names the attempt in which an owner holds a run. Every commit for the run checks that the owner still holds
 * it in this attempt.
 */
export interface Fence {
  readonly runId: string;
  readonly owner: string;
  readonly attempt: number;
}

function flowOf(row: Selectable<RunTable>): { flow?: FlowRef } {
  if (row.flow_id === null || row.flow_step === null) return {};
  return { flow: { flowId: row.flow_id, step: row.flow_step as FlowStep, turn: row.flow_turn ?? 1 } };
}

const UNREADABLE: RunInput = { text: "(The stored text of this message can't be read.)", unreadable: true };

/** Returns the value of a column, or undefined if the column is null or damaged. */
function readValue<T>(json: string | null): T | undefined {
  if (json === null) return undefined;
  try {
    const value = JSON.parse(json) as T | null;
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Converts a row into a run. A damaged row is marked (`RunInput.unreadable`) instead of failing, because it
 * would block all rows that are read with it.
 */
export function toRun(row: Selectable<RunTable>): Run {
  const route = readValue<Route>(row.route_json);
  const isWhole = (row.route_json === null) === (route === undefined);
  return {
    runId: row.run_id,
    sessionKey: row.session_key,
    sessionId: row.session_id,
    agentId: row.agent_id,
    laneSeq: row.lane_seq,
    kind: row.kind as RunKind,
    state: row.state as RunState,
    input: (isWhole ? readValue<RunInput>(row.input_json) : undefined) ?? UNREADABLE,
    chainId: row.chain_id,
    hop: row.hop,
    attempt: row.attempt,
    crashes: row.crashes,
    acceptedAt: row.accepted_at,
    timeoutMs: row.timeout_ms,
    usage: readValue<Usage>(row.usage_json) ?? ZERO_USAGE,
    ...flowOf(row),
    ...present("owner", row.owner),
    ...present("startedAt", row.started_at),
    ...present("heardAt", row.heard_at),
    ...present("endedAt", row.ended_at),
    ...present("route", route ?? null),
    ...present("parentRunId", row.parent_run_id),
    ...present("askedBy", row.asked_by),
    ...present("callId", row.call_id),
    ...present("reply", row.reply),
    ...present("code", row.code as Code | null),
    ...present("error", row.error),
    ...present("model", row.model),
    ...present("revision", row.revision),
  };
}

/** Returns the columns of a queued run. All other columns are null or have their default. */
function queuedColumns(run: Run, readyAt: number | null) {
  return {
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
    accepted_at: run.acceptedAt,
    timeout_ms: run.timeoutMs,
    route_json: run.route === undefined ? null : JSON.stringify(run.route),
    flow_id: run.flow?.flowId ?? null,
    flow_step: run.flow?.step ?? null,
    flow_turn: run.flow?.turn ?? null,
    parent_run_id: run.parentRunId ?? null,
    asked_by: run.askedBy ?? null,
    call_id: run.callId ?? null,
    queue: nameQueue(run),
    ready_at: readyAt,
  };
}

const INSERT = prepared((tx, columns: ReturnType<typeof queuedColumns>) =>
  tx.insertInto("runs").values(columns),
);

/** `readyAt`: when the run may start, if it is the head of an idle lane. */
export async function insertRun(tx: Tx, run: Run, readyAt: number | null = null): Promise<void> {
  await INSERT(tx, queuedColumns(run, readyAt));
}

const RUN = prepared((db, { runId }: { runId: string }) =>
  db.selectFrom("runs").selectAll().where("run_id", "=", runId),
);

export async function getRun(db: Db, runId: string): Promise<Run | undefined> {
  const [row] = (await RUN(db, { runId })).rows;
  return row && toRun(row);
}

const RUN_OF_CALL = prepared((db, { callId }: { callId: string }) =>
  db.selectFrom("runs").selectAll().where("call_id", "=", callId),
);

/** Returns the run that a tool call started, if any. */
export async function getRunOfCall(db: Db, callId: string): Promise<Run | undefined> {
  const [row] = (await RUN_OF_CALL(db, { callId })).rows;
  return row && toRun(row);
}

/** Returns unfinished runs of a session, in lane order. */
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

/** Returns unfinished runs of a flow, in any session. */
export async function activeRunsOfFlow(db: Db, flowId: string): Promise<Run[]> {
  const rows = await db
    .selectFrom("runs")
    .selectAll()
    .where("flow_id", "=", flowId)
    .where("state", "in", ACTIVE)
    .execute();
  return rows.map(toRun);
}

const LANE_COUNT = prepared((db, { sessionKey }: { sessionKey: string }) =>
  db
    .selectFrom("runs")
    .select(["state", (eb) => eb.fn.countAll<number>().as("n")])
    .where("session_key", "=", sessionKey)
    .where("state", "in", ACTIVE)
    .groupBy("state"),
);

/** Counts the unfinished runs of a lane, and those that have not started. */
export async function countLane(db: Db, sessionKey: string): Promise<{ active: number; queued: number }> {
  const { rows } = await LANE_COUNT(db, { sessionKey });
  const count = (of: readonly { n: number }[]): number => of.reduce((sum, row) => sum + Number(row.n), 0);
  return { active: count(rows), queued: count(rows.filter((row) => row.state === "queued")) };
}

/** Counts the unfinished runs in a lane that come before this one. */
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

/** Counts the sessions with unfinished runs, and the runs in the longest lane. */
export async function laneFigures(db: Db): Promise<{ readonly busy: number; readonly longest: number }> {
  const { busy, longest } = await db
    .selectFrom((eb) =>
      eb
        .selectFrom("runs")
        .select((of) => of.fn.countAll<number>().as("n"))
        .where("state", "in", ACTIVE)
        .groupBy("session_key")
        .as("lane"),
    )
    .select((eb) => [eb.fn.countAll<number>().as("busy"), eb.fn.max<number | null>("n").as("longest")])
    .executeTakeFirstOrThrow();
  return { busy: Number(busy), longest: Number(longest ?? 0) };
}

const HEARD = prepared((tx, { runId, at }: { runId: string; at: number }) =>
  tx.updateTable("runs").set({ heard_at: at }).where("run_id", "=", runId).where("heard_at", "is", null),
);

/** Records the time of the first answer of a run's model. Returns false if it was already recorded. */
export async function noteHeard(tx: Tx, runId: string, at: number): Promise<boolean> {
  return ((await HEARD(tx, { runId, at })).numAffectedRows ?? 0n) > 0n;
}

export interface RunEndFacts {
  readonly end: RunEnd;
  readonly usage: Usage;
  readonly model?: string;
  /** Hash of the revision with the run's inputs. */
  readonly revision?: string;
}

function endColumns({ end, usage, model, revision }: RunEndFacts) {
  return {
    state: end.state,
    ready_at: null,
    ended_at: end.endedAt,
    reply: end.reply ?? null,
    code: end.code ?? null,
    error: end.error ?? null,
    usage_json: JSON.stringify(usage),
    model: model ?? null,
    revision: revision ?? null,
  };
}

const END = prepared((tx, { runId, ...columns }: { runId: string } & ReturnType<typeof endColumns>) =>
  tx.updateTable("runs").set(columns).where("run_id", "=", runId).where("state", "in", ACTIVE),
);

const END_HELD = prepared((tx, values: Fence & ReturnType<typeof endColumns>) => {
  const { runId, owner, attempt, ...columns } = values;
  return tx
    .updateTable("runs")
    .set(columns)
    .where("run_id", "=", runId)
    .where("owner", "=", owner)
    .where("attempt", "=", attempt)
    .where("state", "in", HOLDING);
});

/**
 * Ends an unfinished run. Returns false, and changes nothing, if it had ended, or if the owner of the fence
 * does not hold it in this attempt.
 */
export async function endRun(tx: Tx, runId: string, facts: RunEndFacts, fence?: Fence): Promise<boolean> {
  const columns = endColumns(facts);
  const done = fence === undefined ? END(tx, { runId, ...columns }) : END_HELD(tx, { ...fence, ...columns });
  return ((await done).numAffectedRows ?? 0n) > 0n;
}

/** Returns runs that ended at or after this time, oldest first. */
export async function endedSince(db: Db, sinceMs: number, limit: number): Promise<Run[]> {
  const rows = await db
    .selectFrom("runs")
    .selectAll()
    .where("ended_at", ">=", Math.round(sinceMs))
    .orderBy("ended_at")
    .limit(limit)
    .execute();
  return rows.map(toRun);
}

/** Turns a queued turn into an append: its text is stored, and no model runs. */
export async function makeAppend(tx: Tx, runId: string): Promise<void> {
  await tx
    .updateTable("runs")
    .set({
      kind: "append",
      queue: APPENDS,
      flow_id: null,
      flow_step: null,
      flow_turn: null,
      route_json: null,
    })
    .where("run_id", "=", runId)
    .where("state", "=", QUEUED)
    .execute();
}

/** Returns every run of a flow, oldest first. */
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
  readonly states?: readonly RunState[];
  readonly limit: number;
}

/** Returns runs of a session, newest first. */
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

/** Returns whether no other turn of the run's session has succeeded, in any of its transcripts. */
export async function isFirstAnswer(
  db: Db,
  { runId, sessionKey }: Pick<Run, "runId" | "sessionKey">,
): Promise<boolean> {
  const other = await db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "=", sessionKey)
    .where("state", "=", "ok")
    .where("kind", "=", "turn")
    .where("run_id", "!=", runId)
    .limit(1)
    .executeTakeFirst();
  return other === undefined;
}

/** Fields of an input that hold no text. */
const KEPT_OF_INPUT = ["provenance", "guest", "injected", "steer", "takenBy", "compact", "retries"];

/** Blanks the messages of a session's runs. Their inputs keep who wrote them. */
export async function eraseInputs(tx: Tx, sessionKey: string): Promise<void> {
  const isEmbedded = kindOf(tx) === "sqlite";
  const fields = KEPT_OF_INPUT.map((name) => {
    const value = isEmbedded ? sql`input_json -> ${name}` : sql`input_json::json -> ${name}::text`;
    return sql`${sql.lit(name)}, ${value}`;
  });
  const input = isEmbedded
    ? sql<string>`json_patch('{}', json_object('text', '', ${sql.join(fields)}))`
    : sql<string>`json_strip_nulls(json_build_object('text', '', ${sql.join(fields)}))::text`;
  await tx.updateTable("runs").set({ input_json: input }).where("session_key", "=", sessionKey).execute();
}
