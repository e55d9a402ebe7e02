// Handles a job that is due: starts one run in the job's session or resets that session, and sets the next
// date.
// TU1: one transaction writes the run, the history row and the next date, and claims the due date:
//      each date is handled once, by one gateway, even after a crash (I4).
// TU2: turns never accumulate: a date is skipped if a run of the job is unfinished. A reset is skipped if any
//      run of the session is.
// TU3: dates that were missed while no gateway ran cause one turn together, or none, depending on the job.

import { optional } from "../core/optional.ts";
import { isGuest } from "../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import type { Run } from "../core/shapes/run.ts";
import { type CronJob, cronContext, jobKey } from "../core/shapes/schedule.ts";
import type { Session } from "../core/shapes/session.ts";
import type { Settings } from "../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Engine } from "../engine/engine.ts";
import type { Unit } from "../engine/unit.ts";
import { insertNew, newSession, resetIn } from "../flows/session/lifecycle.ts";
import { holdJob, insertTurn, moveJob, type NewTurn, unfinishedRunOf } from "../store/queries/cron-jobs.ts";
import { activeRuns } from "../store/queries/runs/runs.ts";
import { getSession, updateSession } from "../store/queries/sessions/sessions.ts";
import { checkCreator, creatorViewer, turnOfJob } from "./creator.ts";
import { nextDate } from "./dates.ts";

/** The kind of the stored deadline for a job's next date. */
export const CRON_DEADLINE = "cron";

/** The message of a job that starts a new conversation in its session. */
const RESET = "/reset";
const RESET_TEXT = "A scheduled job started a new conversation. The earlier one is kept in the transcripts.";

/** A date that is handled later than this counts as missed, because no gateway ran. */
const LATE_MS = 60_000;

export interface TurnParts {
  readonly settings: Settings;
  /** Returns the engine. A function, because the handler is created before the engine that calls it. */
  engine(): Engine;
}

/** Returns the session of a job. The first turn of a job creates the session of its own. */
async function sessionOf(parts: TurnParts, unit: Unit, job: CronJob): Promise<Result<Session>> {
  const key = jobKey(job);
  const known = await getSession(unit.tx, key);
  if (job.session !== undefined)
    return known === undefined ? fail("session_not_found", `there is no session ${key}`) : ok(known);
  if (known === undefined) {
    const named = job.name === undefined ? {} : { label: job.name };
    const made = newSession(parts, unit, { key, agentId: job.agentId, ...named });
    const session = job.model === undefined ? made : { ...made, model: job.model };
    await insertNew(unit, session);
    return ok(session);
  }
  if (job.model !== undefined && known.model !== job.model)
    await updateSession(unit.tx, key, { model: job.model });
  return ok(known);
}

const resets = ({ session, message }: CronJob): boolean =>
  session !== undefined && message.trim().toLowerCase() === RESET;

/** Accepts the run of a turn. That of a reset only writes a text into the new transcript. */
async function acceptRun(parts: TurnParts, unit: Unit, job: CronJob, session: Session) {
  const engine = parts.engine();
  const provenance = { kind: "cron", source: job.id } as const;
  if (resets(job)) {
    const reset = await resetIn({ engine, settings: parts.settings }, unit, session);
    if (!reset.ok) return reset;
    const input = { text: RESET_TEXT, injected: true, provenance };
    return engine.acceptIn(unit, { sessionKey: session.key, kind: "append", input });
  }
  const creator = job.createdBy === undefined ? undefined : creatorViewer(parts.settings, job.createdBy);
  return engine.acceptIn(unit, {
    sessionKey: session.key,
    input: {
      ...{ text: job.message, provenance, context: cronContext(job) },
      ...optional({ thinking: job.thinking, guest: (creator && isGuest(creator)) || undefined }),
    },
    ...(job.timeoutMs === 0 ? {} : { timeoutMs: job.timeoutMs }),
  });
}

/** Accepts a run of the job and records the turn. */
export async function fire(
  parts: TurnParts,
  unit: Unit,
  job: CronJob,
  turn: Pick<NewTurn, "cause" | "dueAt">,
): Promise<Result<Run>> {
  const allowed = await checkCreator({ db: unit.tx, settings: parts.settings }, turnOfJob(job));
  if (!allowed.ok) return allowed;
  const session = await sessionOf(parts, unit, job);
  if (!session.ok) return session;
  const accepted = await acceptRun(parts, unit, job, session.value);
  if (!accepted.ok) return accepted;
  const { run } = accepted.value;
  await insertTurn(unit.tx, { ...turn, jobId: job.id, firedAt: unit.now, runId: run.runId });
  unit.publish({ kind: "cron", jobId: job.id, sessionKey: jobKey(job), change: "fired" });
  return ok(run);
}

/** Returns why a date is skipped, or undefined if it is not skipped. */
async function leftOut(unit: Unit, job: CronJob, isLate: boolean) {
  if (isLate && job.missed === "skip") {
    return { code: "missed", error: "no gateway ran at that time, and the job skips missed dates" };
  }
  const busy = resets(job) ? (await activeRuns(unit.tx, jobKey(job)))[0]?.runId : undefined;
  const runId = busy ?? (await unfinishedRunOf(unit.tx, job.id));
  return runId === undefined
    ? undefined
    : { code: "still_running", error: `the run before it (${runId}) had not ended` };
}

/** Starts the run of a job that is due, or records why it does not start. */
async function takeTurn(parts: TurnParts, unit: Unit, job: CronJob, dueAt: number): Promise<void> {
  const isLate = unit.now - dueAt > LATE_MS;
  const turn = { cause: isLate ? "late" : "schedule", dueAt } as const;
  const why = await leftOut(unit, job, isLate);
  const refused = why === undefined ? await fire(parts, unit, job, turn) : { ok: false as const, ...why };
  if (refused.ok) return;
  // Operators see the failure in the history. The next date is set all the same.
  const { code, error } = refused;
  await insertTurn(unit.tx, { ...turn, jobId: job.id, firedAt: unit.now, code, error });
  unit.publish({ kind: "cron", jobId: job.id, sessionKey: jobKey(job), change: "fired" });
}

/**
 * Returns the date after this turn, or undefined if the schedule is unreadable. Then the history contains the
 * reason.
 */
async function dateAfter(unit: Unit, job: CronJob, dueAt: number): Promise<number | undefined> {
  try {
    return await nextDate(job.schedule, Math.max(dueAt, unit.now));
  } catch (problem) {
    const error = `its schedule can't be read, so it is paused: ${String(problem)}`;
    const why = { cause: "schedule", code: "invalid_argument", error } as const;
    await insertTurn(unit.tx, { jobId: job.id, dueAt, firedAt: unit.now, ...why });
    return undefined;
  }
}

/** Creates the handler that is called when a job is due. */
export function createCronHandler(parts: TurnParts): DeadlineHandler {
  return async (unit, id) => {
    const job = await holdJob(unit.tx, id);
    if (job?.nextAt === undefined) return "done";
    // The job's next date was changed in the meantime.
    if (job.nextAt > unit.now) return job.nextAt;
    await takeTurn(parts, unit, job, job.nextAt);
    const next = await dateAfter(unit, job, job.nextAt);
    await moveJob(unit.tx, id, next);
    return next ?? "done";
  };
}
