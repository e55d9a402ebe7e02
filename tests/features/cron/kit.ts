// Helpers for tests of jobs in the flow app: a fake clock, and functions that create jobs and wait for their
// runs.

import { operatorViewer } from "../../../src/access/access.ts";
import { ok } from "../../../src/core/shapes/errors.ts";
import { type CronJob, jobKey } from "../../../src/features/cron/job.ts";
import { addJob, type JobCaller, type JobContext, type NewJob } from "../../../src/features/cron/jobs.ts";
import { listTurns } from "../../../src/features/cron/store.ts";
import type { FlowApp } from "../../kit/engine/flow-app.ts";
import { until } from "../../kit/until.ts";

/** The rights of the gateway's own token. */
export const ADMIN: JobCaller = { viewer: operatorViewer(["operator.admin"]), id: "gateway" };

/** Returns the context for creating jobs in this app. */
export function jobsOf(app: Pick<FlowApp, "engine" | "settings">): JobContext {
  const { engine, settings } = app;
  return { engine, settings, timeZone: () => "UTC", checkModel: (name) => ok(name) };
}

export async function add(
  app: Pick<FlowApp, "engine" | "settings">,
  wanted: Partial<NewJob> & Pick<NewJob, "schedule">,
): Promise<CronJob> {
  const job = await addJob(jobsOf(app), ADMIN, { message: "tick", ...wanted });
  if (!job.ok) throw new Error(job.error);
  return job.value;
}

/** Returns the runs of a job as texts, oldest first, for example `schedule ok` and `late missed`. */
export async function turnsOf(app: Pick<FlowApp, "store">, job: Pick<CronJob, "id">): Promise<string[]> {
  const turns = await listTurns(app.store.db, job.id, 100);
  return turns.reverse().map(({ cause, runId, state, code }) => {
    return `${cause} ${runId === undefined ? code : (state ?? "no run")}`;
  });
}

/** Resolves when the job has this many runs and all of them have ended. */
export async function untilTurns(app: FlowApp, job: Pick<CronJob, "id">, count: number): Promise<string[]> {
  return until(async () => {
    const turns = await turnsOf(app, job);
    return turns.length >= count && (await app.isQuiet()) && turns;
  });
}

/** Returns the key of a job's own session. */
export const cronKey = (id: string): string => jobKey({ id });
