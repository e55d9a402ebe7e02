// Owns the table of runs and other callers that wait for jobs of sub-agents, with deadlines and outcomes.
// Open rows of unfinished runs, and of clients of external sessions, are edges of the wait graph (I7). The
// rows of runs and their deadlines survive a crash.
// The transaction that ends a job sets `answered`. `ended` means that the waiter stopped waiting before the
// job ended.

import { type Selectable, sql } from "kysely";
import { idParts } from "../../id-parts.ts";
import type { JobWaitTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";
import { livingProcesses } from "../processes.ts";
import { clientIsHeldUp } from "./waits.ts";

/** A literal instead of a parameter, so that queries can use a partial index (see runs.ts). */
const OPEN = sql.lit("open");

export interface JobWait {
  readonly callId: string;
  readonly flowId: string;
  /** `""` for a caller that is not a run. */
  readonly waiterRunId: string;
  /** As in `Wait`. */
  readonly waiterSessionKey: string;
  readonly targetSessionKey: string;
  readonly state: "open" | "answered" | "ended";
  readonly deadlineAt: number;
}

function toJobWait(row: Selectable<JobWaitTable>): JobWait {
  return {
    callId: row.call_id,
    flowId: row.flow_id,
    waiterRunId: row.waiter_run_id,
    waiterSessionKey: row.waiter_session_key,
    targetSessionKey: row.target_session_key,
    state: row.state as JobWait["state"],
    deadlineAt: row.deadline_at,
  };
}

/**
 * The end of a run does not update the waits of the run, which saves a statement per run. So queries check
 * whether the run has ended.
 */
const runIsUnfinished = sql<boolean>`exists (
  select 1 from runs where runs.run_id = job_waits.waiter_run_id and runs.ended_at is null)`;

/** Inserts a wait. `owner` is the process of a waiting caller that is not a run. */
export async function insertJobWait(tx: Tx, wait: JobWait, owner?: string): Promise<void> {
  await tx
    .insertInto("job_waits")
    .values({
      call_id: wait.callId,
      flow_id: wait.flowId,
      waiter_run_id: wait.waiterRunId,
      waiter_session_key: wait.waiterSessionKey,
      target_session_key: wait.targetSessionKey,
      state: wait.state,
      deadline_at: wait.deadlineAt,
      owner: owner ?? null,
    })
    .execute();
}

/** Returns the waits of a tool call, one row per job. Empty if the call does not wait for jobs. */
export async function jobWaitsOfCall(db: Db, callId: string): Promise<JobWait[]> {
  const rows = await db
    .selectFrom("job_waits")
    .selectAll()
    .where("call_id", "=", callId)
    .orderBy("flow_id")
    .execute();
  return rows.map(toJobWait);
}

/** Returns the ids of the jobs whose outcomes this run received by waiting for them. */
export async function jobsAnsweredTo(db: Db, waiterRunId: string): Promise<string[]> {
  const rows = await db
    .selectFrom("job_waits")
    .select("flow_id")
    .where("waiter_run_id", "=", waiterRunId)
    .where("state", "=", "answered")
    .execute();
  return rows.map((row) => row.flow_id);
}

/**
 * Returns edges of the wait graph that begin at `sessionKeys`. An edge goes from a session whose run or
 * external client waits for a job at `now` to the sub-agent that has the job.
 */
export async function openJobEdges(
  db: Db,
  sessionKeys: readonly string[],
  now: number,
): Promise<{ from: string; to: string }[]> {
  if (sessionKeys.length === 0) return [];
  const rows = await db
    .selectFrom("job_waits")
    .select(["waiter_session_key", "target_session_key"])
    .where("state", "=", OPEN)
    .where("waiter_session_key", "in", sessionKeys)
    .where("deadline_at", ">", now)
    .where(sql<boolean>`(${runIsUnfinished} or ${clientIsHeldUp("job_waits")})`)
    .execute();
  return rows.map((row) => ({ from: row.waiter_session_key, to: row.target_session_key }));
}

/** Marks the open waits for a finished job as answered, or as ended if their deadline had passed. */
export async function answerJobWaits(tx: Tx, flowId: string, endedAt: number): Promise<void> {
  await tx
    .updateTable("job_waits")
    .set((eb) => ({
      state: eb
        .case()
        .when("deadline_at", ">=", endedAt)
        .then(sql.lit("answered"))
        .else(sql.lit("ended"))
        .end(),
    }))
    .where("flow_id", "=", flowId)
    .where("state", "=", OPEN)
    .execute();
}

/** Ends the waits of a tool call for jobs that are unfinished. */
export async function giveUpJobWaits(tx: Tx, callId: string): Promise<void> {
  await tx
    .updateTable("job_waits")
    .set({ state: "ended" })
    .where("call_id", "=", callId)
    .where("state", "=", OPEN)
    .execute();
}

/**
 * Ends the waits of callers that are not runs. With `of`, only those whose process is dead; otherwise all,
 * because no other process exists.
 */
export async function giveUpCallerJobWaits(tx: Tx, of?: "the dead"): Promise<void> {
  const query = tx
    .updateTable("job_waits")
    .set({ state: "ended" })
    .where("waiter_run_id", "=", "")
    .where("state", "=", OPEN);
  const ended = of === undefined ? query : query.where("owner", "not in", livingProcesses());
  await ended.execute();
}

/** Counts the tool calls that wait for jobs. */
export async function countOpenJobWaits(db: Db): Promise<number> {
  const row = await db
    .selectFrom("job_waits")
    .select((eb) => eb.fn.count<number>("call_id").distinct().as("n"))
    .where("state", "=", OPEN)
    .where(sql<boolean>`(waiter_run_id = '' or ${runIsUnfinished})`)
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** Returns the waits of these runs for jobs, in a stable order. */
export async function jobWaitsOfRuns(db: Db, runIds: readonly string[]): Promise<JobWait[]> {
  const found: JobWait[] = [];
  for (const some of idParts(runIds)) {
    const rows = await db
      .selectFrom("job_waits")
      .selectAll()
      .where("waiter_run_id", "in", some)
      .orderBy("call_id")
      .orderBy("flow_id")
      .execute();
    found.push(...rows.map(toJobWait));
  }
  return found;
}
