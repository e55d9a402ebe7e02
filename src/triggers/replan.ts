// Recomputes the dates of jobs after the clock was set back. A date that was handled once is never handled
// again, even if the clock shows an earlier time.

import { type CronJob, JOBS_MAX } from "../core/shapes/schedule.ts";
import type { Engine } from "../engine/engine.ts";
import { holdJob, listJobs, listTurns, moveJob } from "../store/queries/cron-jobs.ts";
import type { Db } from "../store/sql.ts";
import { nextDates } from "./dates.ts";
import { CRON_DEADLINE } from "./turns.ts";

/** Maximum number of a job's turns that are checked for dates handled too early. */
const TURNS_MAX = 100;

/** Returns the first future date that was not handled yet. */
async function firstDate(db: Db, job: CronJob, now: number): Promise<number | undefined> {
  const acted = new Set((await listTurns(db, job.id, TURNS_MAX)).map(({ dueAt }) => dueAt));
  const dates = await nextDates(job.schedule, now, TURNS_MAX + 1).catch(() => []);
  return dates.find((date) => !acted.has(date));
}

/** Recomputes job dates that a fast clock put too far into the future. */
export async function replanJobs(engine: Engine): Promise<void> {
  const now = engine.now();
  const jobs = await listJobs(engine.store.db, JOBS_MAX);
  for (const { id, nextAt } of jobs) {
    if (nextAt === undefined || nextAt <= now) continue;
    await engine.commit(async (unit) => {
      const job = await holdJob(unit.tx, id);
      if (job?.nextAt === undefined || !job.enabled) return;
      const first = await firstDate(unit.tx, job, now);
      if (first === undefined || first >= job.nextAt) return;
      await moveJob(unit.tx, id, first);
      await unit.setDeadline({ kind: CRON_DEADLINE, key: id, dueAt: first });
    });
  }
}
