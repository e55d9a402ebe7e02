// Owns the tables of scheduled jobs and their turns. One transaction writes the time of the next turn to both
// the job's row and the table of deadlines.
// CJ2: only a limited number of a job's latest turns are kept.

import { sql } from "kysely";
import type { RunState } from "../../core/shapes/run.ts";
import { ACTIVE } from "../../store/queries/runs/runs.ts";
import { type RecordOf, recordsOf } from "../../store/records.ts";
import { countRows, type Db, type Tx, withoutNulls } from "../../store/sql.ts";
import { type CronJob, TURNS_KEPT } from "./job.ts";

/** Cause of a turn: its schedule, a catch-up for a missed time, or a manual start. */
export type TurnCause = "schedule" | "late" | "manual";

/** A turn. `code` and `error` say why it was skipped, or how its run failed. */
export type NewTurn = RecordOf<"cron_runs", { readonly cause: TurnCause }, "seq">;

const TURNS = recordsOf<NewTurn>()("cron_runs", {
  key: [],
  columns: ["job_id", "cause", "due_at", "fired_at", "run_id", "code", "error"],
});

export interface Turn extends NewTurn {
  readonly seq: number;
  readonly state?: RunState;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly totalTokens?: number;
}

const JOBS = recordsOf<CronJob>()("cron_jobs", {
  key: ["id"],
  columns: [
    "name",
    "agent_id",
    "schedule_json",
    "message",
    "deliver_json",
    "model",
    "thinking",
    "timeout_ms",
    "missed",
    "conversation",
    "next_at",
    "created_at",
    "updated_at",
    "created_by",
    "session_key",
    "call_id",
    "labels_json",
  ],
  flags: ["enabled"],
});

export const putJob = (tx: Tx, job: CronJob) => JOBS.put(tx, job);

export const getJob = (db: Db, id: string) => JOBS.find(db, { id });

/** Like `getJob`, but locks the row until the transaction ends. */
export const holdJob = (tx: Tx, id: string) => JOBS.hold(tx, { id });

/** Sets the time of the next turn. If it is undefined, the job has no further turns and is disabled. */
export const moveJob = (tx: Tx, id: string, nextAt: number | undefined) =>
  JOBS.change(tx, { id }, { nextAt: nextAt ?? null, enabled: nextAt !== undefined });

/** Deletes a job and its turns. Its session stays. */
export async function deleteJob(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom("cron_runs").where("job_id", "=", id).execute();
  await JOBS.remove(tx, { id });
}

export const countJobs = (db: Db) => countRows(JOBS.rows(db));

const oldest = (db: Db) => JOBS.rows(db).orderBy("created_at").orderBy("id");

/** Lists the oldest jobs, in the order of their creation. */
export const listJobs = (db: Db, limit: number) => JOBS.all(oldest(db).limit(limit));

/** Lists the jobs that the agent of a session made, oldest first. */
export async function jobsOfSession(db: Db, sessionKey: string): Promise<CronJob[]> {
  const jobs = await JOBS.all(JOBS.rows(db, { sessionKey }).where("call_id", "is not", null));
  return jobs.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** Returns the number of jobs that an agent made in all of its sessions. */
export const countJobsMadeBy = (db: Db, agentId: string) =>
  countRows(
    JOBS.rows(db)
      .where("session_key", "is not", null)
      .where("call_id", "is not", null)
      .where("agent_id", "=", agentId),
  );

/** Returns the oldest jobs whose agents are not in `agentIds`. */
export const jobsOfOthers = (db: Db, agentIds: readonly string[], limit: number) =>
  JOBS.all(oldest(db).where("agent_id", "not in", agentIds).limit(limit));

/** Stores a turn. If the job then has too many turns, deletes the oldest ones. */
export async function insertTurn(tx: Tx, turn: NewTurn): Promise<void> {
  await tx.insertInto("cron_runs").values(TURNS.write(turn)).execute();
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
    .selectAll("cron_runs")
    .select([
      "runs.state",
      "runs.started_at as startedAt",
      "runs.ended_at as endedAt",
      "runs.code as runCode",
      "runs.error as runError",
      "runs.usage_json as usage",
    ]);
}

type TurnRow = Awaited<ReturnType<ReturnType<typeof turns>["execute"]>>[number];

function toTurn({ state, startedAt, endedAt, runCode, runError, usage, ...row }: TurnRow): Turn {
  const spent = usage === null ? null : (JSON.parse(usage) as { readonly totalTokens: number });
  return {
    ...TURNS.read({ ...row, code: row.code ?? runCode, error: row.error ?? runError }),
    ...withoutNulls<Pick<Turn, "seq" | "state" | "startedAt" | "endedAt" | "totalTokens">>({
      ...{ seq: row.seq, state: state as RunState | null, startedAt, endedAt },
      totalTokens: spent?.totalTokens ?? null,
    }),
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

export async function lastTurns(db: Db, jobIds: readonly string[]): Promise<ReadonlyMap<string, Turn>> {
  if (jobIds.length === 0) return new Map();
  const last = db
    .selectFrom("cron_jobs")
    .where("cron_jobs.id", "in", jobIds)
    .select(
      sql<number>`(select max(turn.seq) from cron_runs turn where turn.job_id = cron_jobs.id)`.as("seq"),
    );
  const rows = await turns(db).where("cron_runs.seq", "in", last).execute();
  return new Map(rows.map((row) => [row.job_id, toTurn(row)]));
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
