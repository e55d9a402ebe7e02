// Queries on scheduled jobs, for the tests of query plans.

import * as jobs from "../../../src/features/cron/store.ts";
import type { Tx } from "../../../src/store/sql.ts";

export const tables = ["cron_jobs", "cron_runs"];
export const small = ["USING INDEX cron_jobs_by_age"];

export const queries = (key: string) => ({
  getJob: (tx: Tx) => jobs.getJob(tx, "j1"),
  listJobs: (tx: Tx) => jobs.listJobs(tx, 5),
  jobsOfSession: (tx: Tx) => jobs.jobsOfSession(tx, key),
  countJobsMadeBy: (tx: Tx) => jobs.countJobsMadeBy(tx, "main"),
  listTurns: (tx: Tx) => jobs.listTurns(tx, "j1", 5),
  lastTurns: (tx: Tx) => jobs.lastTurns(tx, ["j1", "j2"]),
  unfinishedRunOf: (tx: Tx) => jobs.unfinishedRunOf(tx, "j1"),
  insertTurn: (tx: Tx) => jobs.insertTurn(tx, { jobId: "j1", cause: "manual", firedAt: 5 }),
});

export const rows = (count: number) => `
insert into cron_jobs (id, agent_id, enabled, schedule_json, message, timeout_ms, missed, next_at, created_at, updated_at)
  select 'j' || n, 'main', 1, '{}', 'x', 0, 'once', n, n, n from generate_series(1, 1000) n;
insert into cron_runs (job_id, cause, due_at, fired_at, run_id)
  select 'j' || n % 1000, 'schedule', n, n, 'r' || n from generate_series(1, ${2 * count}) n;`;

const JOBS = Array.from({ length: 100 }, (_, n) => `j${n * 7 + 1}`);

export const manyQueries = () => ({
  getJob: (tx: Tx) => jobs.getJob(tx, "j5"),
  holdJob: (tx: Tx) => jobs.holdJob(tx, "j5"),
  listJobs: (tx: Tx) => jobs.listJobs(tx, 50),
  listTurns: (tx: Tx) => jobs.listTurns(tx, "j5", 50),
  lastTurns: (tx: Tx) => jobs.lastTurns(tx, JOBS),
  unfinishedRunOf: (tx: Tx) => jobs.unfinishedRunOf(tx, "j5"),
  insertTurn: (tx: Tx) => jobs.insertTurn(tx, { jobId: "j5", cause: "manual", firedAt: 5, runId: "r5" }),
});
