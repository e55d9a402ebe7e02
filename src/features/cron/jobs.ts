// Creates, changes, removes, runs and previews scheduled jobs. turns.ts handles their due dates. One
// transaction writes a job and its next date.
// A caller that may not see the job's session gets the same answer as for a missing job (I9).
// JO3: removing or pausing a job removes only its dates: a run in progress continues, and the session stays.

import { accessRulesOf, chosenAgent } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { decideAccess, type Viewer } from "../../core/rules/visibility.ts";
import { type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { isInHouse, LAST, type Route } from "../../core/shapes/route.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import { dropDeadline } from "../../store/queries/deadlines.ts";
import { getSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { type ChoiceRules, checkChoices, type RunChoices } from "../../triggers/choices.ts";
import { type Also, checkRights, creatorOf, creatorViewer } from "../../triggers/creator.ts";
import { nextDate, nextDates, type RequestedSchedule, readSchedule } from "./dates.ts";
import {
  CRON_DEADLINE,
  type CronJob,
  JOBS_MAX,
  type JobConversation,
  jobKey,
  type MissedPolicy,
  type Schedule,
} from "./job.ts";
import { countJobs, deleteJob, getJob, holdJob, putJob, unfinishedRunOf } from "./store.ts";
import { fire, publishChange, turnOfJob } from "./turns.ts";

export interface JobContext extends ChoiceRules {
  readonly engine: Engine;
  /** Returns the time zone of cron expressions for which none is requested. */
  timeZone(): string;
}

/** Options that can be set or removed. */
interface Choices extends RunChoices {
  /** A destination to which the caller may send. */
  readonly deliver?: Route | null | undefined;
  readonly missed?: MissedPolicy | undefined;
  /** Default for a new job: `fresh` if it has a session of its own and delivers its replies, else `keep`. */
  readonly conversation?: JobConversation | undefined;
  readonly enabled?: boolean | undefined;
}

export interface NewJob extends Choices {
  readonly schedule: RequestedSchedule;
  readonly message: string;
  /** Default: the agent of the session, else the agent that is the default when the job is created. */
  readonly agentId?: string | undefined;
  /** A session in which the job runs. The caller may write to it. Default: a session of its own. */
  readonly session?: Pick<Session, "key" | "agentId"> | undefined;
  readonly also?: Also<CronJob>;
}

export interface JobPatch extends Choices {
  readonly schedule?: RequestedSchedule | undefined;
  readonly also?: Also<CronJob>;
}

/** The caller that creates, changes or runs a job: the caller's rights, and the id of the caller's token. */
export interface JobCaller {
  readonly viewer: Viewer;
  readonly id: string;
}

const DATES_SHOWN = 5;
const NO_MODEL = fail(
  "invalid_argument",
  "a job in another session than its own runs there, with the session's model",
  {
    hint: "Change the model of the session, or add a job with a session of its own.",
  },
);

/**
 * Returns an existing job if the caller may run it. Fails with "not found" if the caller may not see the
 * job's session.
 */
function findRunnable(ctx: JobContext, by: JobCaller, id: string, job: CronJob | undefined): Result<CronJob> {
  const target = { key: jobKey(job ?? { id }), agentId: "", archived: false, ancestors: [] };
  const sees = decideAccess("send", by.viewer, target, accessRulesOf(ctx.settings)).allowed;
  if (job === undefined || !sees) return jobNotFound(id);
  const allowed = checkRights(ctx.settings, by.viewer, turnOfJob(job));
  return allowed.ok ? ok(job) : allowed;
}

/**
 * Returns the creator of a changed job: the caller's token if it has limited rights. Otherwise the earlier
 * creator, unless that one's token was removed.
 */
function creatorAfter(ctx: JobContext, by: JobCaller, job: CronJob): CronJob {
  const { createdBy, ...rest } = job;
  const isKept = createdBy !== undefined && creatorViewer(ctx.settings, createdBy) !== undefined;
  const creator = creatorOf(ctx.settings, by.id) ?? (isKept ? createdBy : undefined);
  return creator === undefined ? rest : { ...rest, createdBy: creator };
}

export function jobNotFound(id: string): Failure {
  return fail("cron_job_not_found", `there is no job ${quoted(id, 80)}`, {
    hint: "cron.list shows all jobs.",
  });
}

/** Applies options to a job, without computing its next date. Null removes an option. */
function withChoices(base: CronJob, choices: Choices): CronJob {
  const { name = base.name, model = base.model, thinking = base.thinking, timeoutSeconds } = choices;
  const { deliver = base.deliver, message = base.message, missed = base.missed } = choices;
  const { conversation = base.conversation } = choices;
  const { nextAt: _nextAt, labels, ...kept } = base;
  const timeoutMs = timeoutSeconds === undefined ? base.timeoutMs : Math.round(timeoutSeconds * 1_000);
  const named = {
    name: name?.trim(),
    model: model ?? undefined,
    thinking: thinking ?? undefined,
    deliver: deliver ?? undefined,
  };
  // A person who changes the message has written all of it.
  const read = message === base.message ? labels : undefined;
  return optional({ ...kept, labels: read, message, missed, conversation, timeoutMs, ...named }) as CronJob;
}

/** Writes a job and its deadline. */
export async function storeJob(unit: Unit, job: CronJob, isNew: boolean): Promise<void> {
  await putJob(unit.tx, job);
  const { id, nextAt } = job;
  if (nextAt === undefined) await dropDeadline(unit.tx, CRON_DEADLINE, id);
  else await unit.setDeadline({ kind: CRON_DEADLINE, key: id, dueAt: nextAt });
  publishChange(unit, job, isNew ? "added" : "updated");
}

function calendarOf(ctx: JobContext) {
  return { now: ctx.engine.now(), zone: ctx.timeZone() };
}

/** Checks that the store may have another job, and lets no other job in until the transaction ends. */
export async function storeHasRoom({ tx }: Unit): Promise<Result<void>> {
  await takeAdvisoryLock(tx, "limits");
  if ((await countJobs(tx)) < JOBS_MAX) return ok(undefined);
  return fail("too_many_jobs", `there are ${JOBS_MAX} jobs, the maximum`, {
    hint: "Remove a job that is no longer needed. cron.list shows all jobs.",
  });
}

/**
 * Creates a job. The caller needs the right to create jobs, and its token must cover the job's session and
 * agent.
 */
export async function addJob(ctx: JobContext, by: JobCaller, wanted: NewJob): Promise<Result<CronJob>> {
  const { session } = wanted;
  const agentId = chosenAgent(ctx.settings, wanted.agentId ?? session?.agentId);
  if (!agentId.ok) return agentId;
  if (session !== undefined && session.agentId !== agentId.value)
    return fail("invalid_argument", `the session ${session.key} belongs to the agent ${session.agentId}`);
  if (session !== undefined && wanted.model != null) return NO_MODEL;
  const choices = checkChoices(ctx, agentId.value, wanted);
  if (!choices.ok) return choices;
  const schedule = await readSchedule(wanted.schedule, calendarOf(ctx));
  if (!schedule.ok) return schedule;
  const open = ctx.engine.accepting();
  if (!open.ok) return open;
  return ctx.engine.commit(async (unit): Promise<Result<CronJob>> => {
    const id = unit.newId();
    const own = { agentId: agentId.value, ...optional({ sessionKey: session?.key }) };
    const allowed = checkRights(ctx.settings, by.viewer, turnOfJob({ id, ...own }));
    if (!allowed.ok) return allowed;
    const room = await storeHasRoom(unit);
    if (!room.ok) return room;
    const isReport = session === undefined && wanted.deliver != null;
    const conversation = isReport ? "fresh" : "keep";
    const blank = { id, ...own, message: "", enabled: false, missed: "once", conversation } as const;
    const times = { timeoutMs: 0, createdAt: unit.now, updatedAt: unit.now };
    const job = withChoices({ ...blank, ...times, schedule: schedule.value }, wanted);
    const owned = creatorAfter(ctx, by, job);
    const made = wanted.enabled === false ? ok(owned) : await enable(owned, unit.now);
    if (!made.ok) return made;
    await storeJob(unit, made.value, true);
    await wanted.also?.(unit, made.value);
    return made;
  });
}

/** Returns the next date of a stored schedule, or undefined if the schedule is no longer readable. */
async function storedDate(schedule: Schedule, now: number): Promise<number | undefined> {
  try {
    return await nextDate(schedule, now);
  } catch {
    return undefined;
  }
}

/** Returns the enabled job with its next date. */
export async function enable(job: CronJob, now: number): Promise<Result<CronJob>> {
  const nextAt = await storedDate(job.schedule, now);
  if (nextAt !== undefined) return ok({ ...job, enabled: true, nextAt });
  return fail("invalid_argument", "the schedule of this job has no future date", {
    hint: "Change its schedule, or run it now with cron.run.",
  });
}

/** Updates the session of a job's own after a change of name or model. */
async function changeSession(unit: Unit, before: CronJob, after: CronJob): Promise<void> {
  const key = jobKey(after);
  const session = after.sessionKey === undefined ? await getSession(unit.tx, key) : undefined;
  if (session === undefined) return;
  const isRenamed = session.label === before.name && before.name !== after.name;
  const losesModel = before.model !== undefined && after.model === undefined;
  if (!isRenamed && !losesModel) return;
  await updateSession(unit.tx, key, {
    ...(isRenamed ? { label: after.name ?? null } : {}),
    ...(losesModel ? { model: null } : {}),
  });
  unit.publish({ kind: "session", sessionKey: key, change: "updated" });
}

/** Returns the changed job, with a new next date if needed. */
async function patchJob(
  before: CronJob,
  patch: JobPatch,
  schedule: Schedule | undefined,
  now: number,
): Promise<Result<CronJob>> {
  const job = { ...withChoices(before, patch), updatedAt: now, schedule: schedule ?? before.schedule };
  // A new schedule enables a finished job again; a paused job stays paused.
  const over = !before.enabled && (await storedDate(before.schedule, now)) === undefined;
  const enabled = patch.enabled ?? (before.enabled || (over && schedule !== undefined));
  if (!enabled) return ok({ ...job, enabled: false });
  if (schedule !== undefined || !before.enabled) return enable(job, now);
  return ok({ ...job, ...optional({ nextAt: before.nextAt }) });
}

/** Refuses options that do not go with the session in which the job runs. */
function checkPatch(job: CronJob, { deliver, model, conversation }: JobPatch): Result<void> {
  // `last` is the chat in which the people of that session wrote last.
  const isChat = job.callId === undefined && job.sessionKey !== undefined && deliver?.channel === LAST;
  if (deliver?.to === jobKey(job) && !isChat) {
    const error = "deliver.to is the job's own session, which contains its replies already";
    return fail("invalid_argument", error);
  }
  if (job.sessionKey === undefined) return ok(undefined);
  if (model != null) return NO_MODEL;
  const runs = `the agent of ${job.sessionKey} made this job, which runs in that session`;
  if (job.callId !== undefined && conversation === "fresh")
    return fail("invalid_argument", `${runs} and continues its conversation`, { hint: "Omit session." });
  if (job.callId === undefined || deliver == null || !(isInHouse(deliver) || deliver.channel === LAST))
    return ok(undefined);
  return fail("invalid_argument", `${runs}, so its replies go there or to a chat on a channel`, {
    hint: "Set deliver to a chat on a channel, or to null.",
  });
}

/** Changes a job. Omitted fields stay as they are. */
export async function updateJob(
  ctx: JobContext,
  by: JobCaller,
  id: string,
  patch: JobPatch,
): Promise<Result<CronJob>> {
  const known = findRunnable(ctx, by, id, await getJob(ctx.engine.store.db, id));
  if (!known.ok) return known;
  const choices = checkChoices(ctx, known.value.agentId, patch);
  if (!choices.ok) return choices;
  const fits = checkPatch(known.value, patch);
  if (!fits.ok) return fits;
  const schedule =
    patch.schedule === undefined ? ok(undefined) : await readSchedule(patch.schedule, calendarOf(ctx));
  if (!schedule.ok) return schedule;
  return ctx.engine.commit(async (unit): Promise<Result<CronJob>> => {
    const before = await holdJob(unit.tx, id);
    if (before === undefined) return jobNotFound(id);
    const after = await patchJob(creatorAfter(ctx, by, before), patch, schedule.value, unit.now);
    if (!after.ok) return after;
    await storeJob(unit, after.value, false);
    await changeSession(unit, before, after.value);
    await patch.also?.(unit, after.value);
    return after;
  });
}

/** Deletes a job, its history and its date. */
export async function dropJob(unit: Unit, job: CronJob): Promise<void> {
  const { id } = job;
  await deleteJob(unit.tx, id);
  await dropDeadline(unit.tx, CRON_DEADLINE, id);
  publishChange(unit, job, "removed");
}

export async function removeJob(
  ctx: JobContext,
  by: JobCaller,
  id: string,
  also: Also<string>,
): Promise<Result<string>> {
  return ctx.engine.commit(async (unit): Promise<Result<string>> => {
    const job = findRunnable(ctx, by, id, await holdJob(unit.tx, id));
    if (!job.ok) return job;
    await dropJob(unit, job.value);
    await also(unit, id);
    return ok(id);
  });
}

/** Runs a job now, even if it is paused. The planned dates of the job do not change. */
export async function runJob(
  ctx: JobContext,
  by: JobCaller,
  id: string,
  also: Also<Run>,
): Promise<Result<Run>> {
  const open = ctx.engine.accepting();
  if (!open.ok) return open;
  return ctx.engine.commit(async (unit): Promise<Result<Run>> => {
    const job = findRunnable(ctx, by, id, await holdJob(unit.tx, id));
    if (!job.ok) return job;
    const busy = await unfinishedRunOf(unit.tx, id);
    if (busy !== undefined) {
      return fail("cron_job_busy", `a run of this job is in progress: ${busy}`, {
        hint: `Wait for it (agent.wait), or stop it: chat.abort with sessionKey ${jobKey(job.value)}.`,
      });
    }
    const parts = { settings: ctx.settings, engine: () => ctx.engine };
    const run = await fire(parts, unit, job.value, { cause: "manual" });
    if (run.ok) await also(unit, run.value);
    return run;
  });
}

/** Returns a schedule with its defaults filled in, and its first dates. */
export async function previewSchedule(
  ctx: JobContext,
  asked: RequestedSchedule,
): Promise<Result<{ schedule: Schedule; dates: readonly number[] }>> {
  const calendar = calendarOf(ctx);
  const schedule = await readSchedule(asked, calendar);
  if (!schedule.ok) return schedule;
  return ok({ schedule: schedule.value, dates: await nextDates(schedule.value, calendar.now, DATES_SHOWN) });
}
