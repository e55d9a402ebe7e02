// Handles a job that is due: starts one run in the job's session or resets that session, and sets the next
// date.
// TU1: one transaction writes the run, the history row and the next date, and claims the due date:
//      each date is handled once, by one gateway, even after a crash (I4).
// TU2: turns never accumulate: a date is skipped if a run of the job is unfinished. A reset is skipped if any
//      run of the session is.
// TU3: dates that were missed while no gateway ran cause one turn together, or none, depending on the job.
// TU4: a job with a fresh conversation gets it in the transaction of TU1. It gets none while another run of
//      the session is unfinished: that run would be stopped.

import { optional } from "../../core/optional.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import type { FeatureParts } from "../../feature.ts";
import { insertNew, newSession, resetIn } from "../../flows/session/lifecycle.ts";
import { holdForAbort } from "../../store/locks.ts";
import { activeRuns } from "../../store/queries/runs/runs.ts";
import { getSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { type CreatedTurn, checkCreator, creatorViewer } from "../../triggers/creator.ts";
import type { CronChange } from "./contract.ts";
import { nextDate, nextDates } from "./dates.ts";
import { CRON_DEADLINE, type CronJob, cronContext, JOBS_MAX, jobKey } from "./job.ts";
import {
  deleteJob,
  getJob,
  holdJob,
  insertTurn,
  listJobs,
  listTurns,
  moveJob,
  type NewTurn,
  unfinishedRunOf,
} from "./store.ts";

/** The message of a job that starts a new conversation in its session. */
const RESET = "/reset";
const RESET_TEXT = "A scheduled job started a new conversation. The earlier one is kept in the transcripts.";

/** Publishes a change of a job, for the clients that may see its session. */
export function publishChange(unit: Unit, job: CronJob, change: CronChange): void {
  const key = jobKey(job);
  unit.publish({ kind: "feature", event: "cron", sessionKey: key, payload: { id: job.id, key, change } });
}

/** A date that is handled later than this counts as missed, because no gateway ran. */
const LATE_MS = 60_000;

/** Prepares the job's own session: creates it for the first turn, and gives it the job's model. */
async function prepareSession(parts: FeatureParts, unit: Unit, job: CronJob): Promise<void> {
  const key = jobKey(job);
  const known = await getSession(unit.tx, key);
  if (known === undefined) {
    const named = job.name === undefined ? {} : { label: job.name };
    const made = newSession(parts, unit, { key, agentId: job.agentId, ...named });
    await insertNew(unit, job.model === undefined ? made : { ...made, model: job.model });
  } else if (job.model !== undefined && known.model !== job.model)
    await updateSession(unit.tx, key, { model: job.model });
}

/** Only a person's job resets a session: an agent could drop what its session has read. */
const resets = ({ sessionKey, message, callId }: CronJob): boolean =>
  sessionKey !== undefined && callId === undefined && message.trim().toLowerCase() === RESET;

/** Starts a new conversation in the session of a job. Its run only writes a text into the new transcript. */
async function acceptReset(parts: FeatureParts, unit: Unit, job: CronJob) {
  const engine = parts.engine();
  const sessionKey = jobKey(job);
  const session = await getSession(unit.tx, sessionKey);
  if (session === undefined) return fail("session_not_found", `there is no session ${sessionKey}`);
  const reset = await resetIn({ engine, settings: parts.settings }, unit, session);
  if (!reset.ok) return reset;
  const input = { text: RESET_TEXT, injected: true, provenance: { kind: "cron", source: job.id } } as const;
  return engine.acceptIn(unit, { sessionKey, kind: "append", input });
}

/** Begins a new conversation in the session of a job, unless a run in it is unfinished (TU4). */
async function beginAfresh(parts: FeatureParts, unit: Unit, job: CronJob): Promise<Result<unknown>> {
  const key = jobKey(job);
  await holdForAbort(unit.tx, key);
  const session = await getSession(unit.tx, key);
  if (session === undefined || (await activeRuns(unit.tx, key)).length > 0) return ok(undefined);
  return resetIn({ engine: parts.engine(), settings: parts.settings }, unit, session);
}

async function acceptTurn(parts: FeatureParts, unit: Unit, job: CronJob) {
  if (resets(job)) return acceptReset(parts, unit, job);
  const begun = job.conversation === "fresh" ? await beginAfresh(parts, unit, job) : ok(undefined);
  if (!begun.ok) return begun;
  if (job.sessionKey === undefined) await prepareSession(parts, unit, job);
  const creator = job.createdBy === undefined ? undefined : creatorViewer(parts.settings, job.createdBy);
  return parts.engine().acceptIn(unit, {
    sessionKey: jobKey(job),
    input: {
      text: job.message,
      provenance: { kind: "cron", source: job.id },
      context: cronContext(job),
      ...optional({
        thinking: job.thinking,
        guest: (creator && isGuest(creator)) || undefined,
        labels: job.labels,
        replyTo: job.callId === undefined ? job.deliver : undefined,
      }),
    },
    // The reply to a job that an agent made goes to the chat that asked, as any answer there does.
    ...optional({ route: job.callId === undefined ? undefined : job.deliver }),
    ...(job.timeoutMs === 0 ? {} : { timeoutMs: job.timeoutMs }),
  });
}

const SESSIONS = "the sessions of jobs, cron:<id>";

/** Returns the run that a job is about to start. */
export function turnOfJob(
  job: Pick<CronJob, "id" | "agentId" | "createdBy" | "deliver" | "sessionKey">,
): CreatedTurn {
  const { agentId, createdBy, deliver, sessionKey } = job;
  const words = {
    made: "created this job",
    runs: "as which the job runs",
    hint: "Change the job (cron.update) with a token that may run it, or remove it.",
    ...(sessionKey === undefined && { sessions: SESSIONS }),
  };
  return { words, sessionKey: jobKey(job), agentId, createdBy, deliver };
}

/** Accepts a run of the job and records the turn. */
export async function fire(
  parts: FeatureParts,
  unit: Unit,
  job: CronJob,
  turn: Pick<NewTurn, "cause" | "dueAt">,
): Promise<Result<Run>> {
  const allowed = await checkCreator({ db: unit.tx, settings: parts.settings }, turnOfJob(job));
  if (!allowed.ok) return allowed;
  const accepted = await acceptTurn(parts, unit, job);
  if (!accepted.ok) return accepted;
  const { run } = accepted.value;
  await insertTurn(unit.tx, { ...turn, jobId: job.id, firedAt: unit.now, runId: run.runId });
  publishChange(unit, job, "fired");
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
async function takeTurn(parts: FeatureParts, unit: Unit, job: CronJob, dueAt: number): Promise<void> {
  const isLate = unit.now - dueAt > LATE_MS;
  const turn = { cause: isLate ? "late" : "schedule", dueAt } as const;
  const why = await leftOut(unit, job, isLate);
  const refused = why === undefined ? await fire(parts, unit, job, turn) : { ok: false as const, ...why };
  if (refused.ok) return;
  // Operators see the failure in the history. The next date is set all the same.
  const { code, error } = refused;
  await insertTurn(unit.tx, { ...turn, jobId: job.id, firedAt: unit.now, code, error });
  publishChange(unit, job, "fired");
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
export function createHandler(parts: FeatureParts): DeadlineHandler {
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

/**
 * Tells that a run of a job has ended. A job that an agent made for one date is removed with it, unless the
 * run failed: operators see the failure. Not earlier, because its row tells a repeated tool call that it was
 * made.
 */
export async function runEnded(unit: Unit, run: Run): Promise<void> {
  const { provenance } = run.input;
  const id = provenance?.kind === "cron" ? provenance.source : undefined;
  const job = id === undefined ? undefined : await getJob(unit.tx, id);
  if (job === undefined || run.sessionKey !== jobKey(job)) return;
  const { schedule, callId } = job;
  const isOver = callId !== undefined && schedule.kind === "at" && schedule.atMs <= unit.now;
  const isGone = isOver && run.state === "ok";
  if (isGone) await deleteJob(unit.tx, job.id);
  publishChange(unit, job, isGone ? "removed" : "ended");
}

/** Maximum number of a job's turns that are checked for dates handled too early. */
const TURNS_MAX = 100;

/**
 * Recomputes job dates that a fast clock put too far into the future. A date that was handled once is never
 * handled again, even if the clock shows an earlier time.
 */
export async function planAgain(engine: Engine): Promise<void> {
  const now = engine.now();
  const jobs = await listJobs(engine.store.db, JOBS_MAX);
  for (const { id, nextAt } of jobs) {
    if (nextAt === undefined || nextAt <= now) continue;
    await engine.commit(async (unit) => {
      const job = await holdJob(unit.tx, id);
      if (job?.nextAt === undefined || !job.enabled) return;
      const acted = new Set((await listTurns(unit.tx, job.id, TURNS_MAX)).map(({ dueAt }) => dueAt));
      const dates = await nextDates(job.schedule, now, TURNS_MAX + 1).catch(() => []);
      const first = dates.find((date) => !acted.has(date));
      if (first === undefined || first >= job.nextAt) return;
      await moveJob(unit.tx, id, first);
      await unit.setDeadline({ kind: CRON_DEADLINE, key: id, dueAt: first });
    });
  }
}
