// Owns the tables of scheduled jobs and their turns. One transaction writes the time of the next turn to both
// the job's row and the table of deadlines.
// CJ2: only a limited number of a job's latest turns are kept.

import { type Insertable, type Selectable, sql } from "kysely";
import type { Route } from "../../core/shapes/route.ts";
import type { RunState } from "../../core/shapes/run.ts";
import {
  type CronJob,
  type JobConversation,
  type MissedPolicy,
  type Schedule,
  TURNS_KEPT,
} from "../../core/shapes/schedule.ts";
import { held } from "../locks.ts";
import type { CronJobTable } from "../schema/tables.ts";
import { type Db, present, type Tx } from "../sql.ts";
import { ACTIVE } from "./runs/runs.ts";

/** Cause of a turn: its schedule, a catch-up for a missed time, or a manual start. */
export type TurnCause = "schedule" | "late" | "manual";

export interface NewTurn {
  readonly jobId: string;
  readonly cause: TurnCause;
  /** Time when the turn was due. Absent if it was started by hand. */
  readonly dueAt?: number;
  readonly firedAt: number;
  /** Absent if the turn was skipped; `code` and `error` then say why. */
  readonly runId?: string;
  readonly code?: string;
  readonly error?: string;
}

/** A turn with the result of its run. */
export interface Turn extends NewTurn {
  readonly seq: number;
  readonly state?: RunState;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly totalTokens?: number;
}

function toJob(row: Selectable<CronJobTable>): CronJob {
  return {
    id: row.id,
    schedule: JSON.parse(row.schedule_json) as Schedule,
    agentId: row.agent_id,
    message: row.message,
    enabled: row.enabled === 1,
    missed: row.missed as MissedPolicy,
    conversation: row.conversation as JobConversation,
    timeoutMs: row.timeout_ms,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...present("name", row.name),
    ...present("deliver", row.deliver_json === null ? null : (JSON.parse(row.deliver_json) as Route)),
    ...present("model", row.model),
    ...present("thinking", row.thinking),
    ...present("nextAt", row.next_at),
    ...present("createdBy", row.created_by),
    ...present("sessionKey", row.session_key),
    ...present("callId", row.call_id),
    ...present("outside", row.outside),
  };
}

function toRow(job: CronJob): Insertable<CronJobTable> {
  return {
    id: job.id,
    name: job.name ?? null,
    agent_id: job.agentId,
    enabled: Number(job.enabled),
    schedule_json: JSON.stringify(job.schedule),
    message: job.message,
    deliver_json: job.deliver === undefined ? null : JSON.stringify(job.deliver),
    model: job.model ?? null,
    thinking: job.thinking ?? null,
    timeout_ms: job.timeoutMs,
    missed: job.missed,
    conversation: job.conversation,
    next_at: job.nextAt ?? null,
    created_at: job.createdAt,
    updated_at: job.updatedAt,
    created_by: job.createdBy ?? null,
    session_key: job.sessionKey ?? null,
    call_id: job.callId ?? null,
    outside: job.outside ?? null,
  };
}

/** Inserts or replaces a job. */
export async function putJob(tx: Tx, job: CronJob): Promise<void> {
  const { id: _, ...columns } = toRow(job);
  await tx
    .insertInto("cron_jobs")
    .values(toRow(job))
    .onConflict((conflict) => conflict.column("id").doUpdateSet(columns))
    .execute();
}

export async function getJob(db: Db, id: string): Promise<CronJob | undefined> {
  const row = await db.selectFrom("cron_jobs").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toJob(row);
}

/** Like `getJob`, but locks the row until the transaction ends. */
export async function holdJob(tx: Tx, id: string): Promise<CronJob | undefined> {
  const row = await held(tx, tx.selectFrom("cron_jobs").selectAll().where("id", "=", id)).executeTakeFirst();
  return row && toJob(row);
}

/** Sets the time of the next turn. If it is undefined, the job has no further turns and is disabled. */
export async function moveJob(tx: Tx, id: string, nextAt: number | undefined): Promise<void> {
  const columns = { next_at: nextAt ?? null, enabled: Number(nextAt !== undefined) };
  await tx.updateTable("cron_jobs").set(columns).where("id", "=", id).execute();
}

/** Deletes a job and its turns. Its session stays. */
export async function deleteJob(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("cron_runs").where("job_id", "=", id).execute();
  await tx.deleteFrom("cron_jobs").where("id", "=", id).execute();
}

export async function countJobs(db: Db): Promise<number> {
  const row = await db
    .selectFrom("cron_jobs")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** Lists the oldest jobs, in the order of their creation. */
export async function listJobs(db: Db, limit: number): Promise<CronJob[]> {
  const query = db.selectFrom("cron_jobs").selectAll().orderBy("created_at").orderBy("id").limit(limit);
  return (await query.execute()).map(toJob);
}

/** Lists the jobs that the agent of a session made, oldest first. */
export async function jobsOfSession(db: Db, sessionKey: string): Promise<CronJob[]> {
  const query = db.selectFrom("cron_jobs").selectAll().where("session_key", "=", sessionKey);
  const rows = await query.where("call_id", "is not", null).execute();
  return rows.map(toJob).sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** Deletes the jobs that the agent of a session made. */
export async function deleteJobsOfSession(tx: Tx, sessionKey: string): Promise<void> {
  for (const { id } of await jobsOfSession(tx, sessionKey)) await deleteJob(tx, id);
}

/** Returns the number of jobs that an agent made in all of its sessions. */
export async function countJobsMadeBy(db: Db, agentId: string): Promise<number> {
  const row = await db
    .selectFrom("cron_jobs")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("session_key", "is not", null)
    .where("call_id", "is not", null)
    .where("agent_id", "=", agentId)
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

/** Returns the oldest jobs whose agents are not in `agentIds`. */
export async function jobsOfOthers(db: Db, agentIds: readonly string[], limit: number): Promise<CronJob[]> {
  const rows = await db
    .selectFrom("cron_jobs")
    .selectAll()
    .where("agent_id", "not in", agentIds)
    .orderBy("created_at")
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(toJob);
}

/** Stores a turn. If the job then has too many turns, deletes the oldest ones. */
export async function insertTurn(tx: Tx, turn: NewTurn): Promise<void> {
  await tx
    .insertInto("cron_runs")
    .values({
      job_id: turn.jobId,
      cause: turn.cause,
      due_at: turn.dueAt ?? null,
      fired_at: turn.firedAt,
      run_id: turn.runId ?? null,
      code: turn.code ?? null,
      error: turn.error ?? null,
    })
    .execute();
  const firstToGo = tx
    .selectFrom("cron_runs")
    .select("seq")
    .where("job_id", "=", turn.jobId)
    .orderBy("seq", "desc")
    .offset(TURNS_KEPT)
    .limit(1);
  await tx.deleteFrom("cron_runs").where("job_id", "=", turn.jobId).where("seq", "<=", firstToGo).execute();
}

function turns(db: Db) {
  return db
    .selectFrom("cron_runs")
    .leftJoin("runs", "runs.run_id", "cron_runs.run_id")
    .select([
      "cron_runs.seq as seq",
      "cron_runs.job_id as jobId",
      "cron_runs.cause as cause",
      "cron_runs.due_at as dueAt",
      "cron_runs.fired_at as firedAt",
      "cron_runs.run_id as runId",
      "cron_runs.code as code",
      "cron_runs.error as error",
      "runs.state as state",
      "runs.started_at as startedAt",
      "runs.ended_at as endedAt",
      "runs.code as runCode",
      "runs.error as runError",
      "runs.usage_json as usage",
    ]);
}

type TurnRow = Awaited<ReturnType<ReturnType<typeof turns>["execute"]>>[number];

function toTurn(row: TurnRow): Turn {
  const usage = row.usage === null ? null : (JSON.parse(row.usage) as { totalTokens: number });
  return {
    seq: row.seq,
    jobId: row.jobId,
    cause: row.cause as TurnCause,
    firedAt: row.firedAt,
    ...present("dueAt", row.dueAt),
    ...present("runId", row.runId),
    ...present("code", row.code ?? row.runCode),
    ...present("error", row.error ?? row.runError),
    ...present("state", row.state as RunState | null),
    ...present("startedAt", row.startedAt),
    ...present("endedAt", row.endedAt),
    ...present("totalTokens", usage?.totalTokens ?? null),
  };
}

/** Lists turns of one job, newest first. */
export async function listTurns(db: Db, jobId: string, limit: number): Promise<Turn[]> {
  const rows = await turns(db)
    .where("cron_runs.job_id", "=", jobId)
    .orderBy("cron_runs.seq", "desc")
    .limit(limit)
    .execute();
  return rows.map(toTurn);
}

/** Returns the last turn of each of these jobs. */
export async function lastTurns(db: Db, jobIds: readonly string[]): Promise<ReadonlyMap<string, Turn>> {
  if (jobIds.length === 0) return new Map();
  const last = db
    .selectFrom("cron_jobs")
    .where("cron_jobs.id", "in", jobIds)
    .select(
      sql<number>`(select max(turn.seq) from cron_runs turn where turn.job_id = cron_jobs.id)`.as("seq"),
    );
  const rows = await turns(db).where("cron_runs.seq", "in", last).execute();
  return new Map(rows.map((row) => [row.jobId, toTurn(row)]));
}

/** Returns the id of an unfinished run of this job, if there is one. */
export async function unfinishedRunOf(db: Db, jobId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("cron_runs")
    .innerJoin("runs", "runs.run_id", "cron_runs.run_id")
    .select("runs.run_id as runId")
    .where("cron_runs.job_id", "=", jobId)
    .where("runs.state", "in", ACTIVE)
    .limit(1)
    .executeTakeFirst();
  return row?.runId;
}
