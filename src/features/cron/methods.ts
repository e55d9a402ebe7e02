// Owns the methods about scheduled jobs, in the protocol's form.
// A job whose session the token does not cover is not listed, counted or found (I9).
// Only callers who may write to a destination may set the text that is delivered there.

import { resolveSession } from "../../access/resolve.ts";
import { createGate } from "../../access/token.ts";
import type { ParamsOf, PayloadOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import { NOT_VISIBLE } from "../../core/rules/visibility.ts";
import { badCursor, fail, ok, type Result } from "../../core/shapes/errors.ts";
import { LAST, type Route, WEBCHAT } from "../../core/shapes/route.ts";
import { findAgent, notConfigured, type Settings } from "../../core/shapes/settings/settings.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { type NamedPlace, resolvePlace } from "../../flows/delivery/destination.ts";
import { answerAfter, type CallContext, type FeatureDeps, type Methods } from "../../gateway/call.ts";
import { deliveryStates } from "../../store/queries/channels/deliveries.ts";
import type { CRON_METHODS, CronJobRow, CronTurnRow } from "./contract.ts";
import { type CronJob, JOBS_MAX, jobKey, scheduleWords, TURNS_KEPT } from "./job.ts";
import { addJob, jobNotFound, previewSchedule, removeJob, runJob, updateJob } from "./jobs.ts";
import { getJob, lastTurns, listJobs, listTurns, type Turn } from "./store.ts";

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;
const CURSOR = /^(\d{1,15}):(.{1,64})$/;

type States = Awaited<ReturnType<typeof deliveryStates>>;

function turnRow(turn: Turn, states: States, redactor: Redactor): CronTurnRow {
  const { seq, cause, dueAt, firedAt, code, error, runId, startedAt, endedAt, totalTokens } = turn;
  const delivery = runId === undefined ? undefined : states.get(runId);
  return {
    seq,
    cause,
    firedAtMs: firedAt,
    status: turn.state ?? "skipped",
    ...optional({ dueAtMs: dueAt, code }),
    ...(error === undefined ? {} : { error: redactor.mask(error) }),
    ...optional({ runId, startedAtMs: startedAt, endedAtMs: endedAt }),
    ...(startedAt === undefined || endedAt === undefined ? {} : { durationMs: endedAt - startedAt }),
    ...optional({ totalTokens, delivery }),
  };
}

/** The caller who reads a job. The caller's rights decide which fields are shown. */
interface JobReader {
  readonly settings: Settings;
  readonly redactor: Redactor;
  sees(key: string): boolean;
}

function jobRow(job: CronJob, last: CronTurnRow | undefined, reader: JobReader): CronJobRow {
  const { settings, redactor, sees } = reader;
  const { id, name, schedule, message, deliver, model, thinking, timeoutMs, nextAt } = job;
  const namesSession = deliver?.channel === WEBCHAT || deliver?.channel === LAST;
  const covered = deliver === undefined || !namesSession || sees(deliver.to);
  return {
    id,
    key: jobKey(job),
    enabled: job.enabled,
    schedule,
    words: scheduleWords(schedule),
    agentId: job.agentId,
    message: redactor.mask(message),
    missed: job.missed,
    session: job.conversation,
    createdAtMs: job.createdAt,
    updatedAtMs: job.updatedAt,
    state: {
      ...optional({ nextRunAtMs: nextAt, last }),
    },
    ...(findAgent(settings, job.agentId) === undefined ? { problem: notConfigured(job.agentId) } : {}),
    ...(name === undefined ? {} : { name: redactor.mask(name) }),
    ...(deliver === undefined ? {} : { deliver: covered ? deliver : { ...deliver, to: NOT_VISIBLE } }),
    ...optional({ model, thinking, madeBy: job.callId === undefined ? undefined : job.sessionKey }),
    ...(timeoutMs === 0 ? {} : { timeoutSeconds: timeoutMs / 1_000 }),
  };
}

async function rowsOf(ctx: CallContext, jobs: readonly CronJob[]): Promise<CronJobRow[]> {
  const { db } = ctx.access;
  const sees = createGate(ctx.deps.settings, ctx.caller, "list");
  const turns = await lastTurns(
    db,
    jobs.map((job) => job.id),
  );
  const states = await deliveryStates(
    db,
    [...turns.values()].flatMap(({ runId }) => runId ?? []),
  );
  const { settings, world } = ctx.deps;
  const { redactor } = world;
  return jobs.map((job) => {
    const turn = turns.get(job.id);
    const last = turn === undefined ? undefined : turnRow(turn, states, redactor);
    return jobRow(job, last, { settings, redactor, sees });
  });
}

function noteOf({ deps }: CallContext): { note?: string } {
  if (deps.settings.cron.enabled) return {};
  return { note: "cron.enabled is false: no job is started" };
}

const isAfter = (job: CronJob, createdAt: number, id: string): boolean =>
  job.createdAt > createdAt || (job.createdAt === createdAt && job.id > id);

async function list(
  ctx: CallContext<FeatureDeps>,
  params: ParamsOf<"cron.list">,
): Promise<Result<PayloadOf<"cron.list">>> {
  const { cursor, offset } = params;
  const [, createdAt, id] = (cursor === undefined ? undefined : CURSOR.exec(cursor)) ?? [];
  if (cursor !== undefined && id === undefined) return badCursor("cron.list");
  if (cursor !== undefined && offset !== undefined)
    return fail("invalid_argument", "cursor and offset both name a page", { hint: "Give one of them." });
  const covered = createGate(ctx.deps.settings, ctx.caller, "list");
  const agent = params.agentId?.trim().toLowerCase();
  const all = await listJobs(ctx.access.db, JOBS_MAX);
  const jobs = all.filter((job) => (agent === undefined || job.agentId === agent) && covered(jobKey(job)));
  const rest =
    id === undefined ? jobs.slice(offset ?? 0) : jobs.filter((job) => isAfter(job, Number(createdAt), id));
  const shown = rest.slice(0, Math.min(params.limit ?? LIMIT_DEFAULT, LIMIT_MAX));
  const last = shown.length < rest.length ? shown.at(-1) : undefined;
  const changedAtMs = jobs.length === 0 ? undefined : Math.max(...jobs.map(({ updatedAt }) => updatedAt));
  const due = jobs.flatMap(({ nextAt }) => nextAt ?? []);
  const nextRunAtMs = due.length === 0 ? undefined : Math.min(...due);
  return ok({
    enabled: ctx.deps.settings.cron.enabled,
    ...noteOf(ctx),
    count: shown.length,
    total: jobs.length,
    jobs: await rowsOf(ctx, shown),
    ...(last === undefined ? {} : { nextCursor: `${last.createdAt}:${last.id}` }),
    timeZone: ctx.deps.timeZone(),
    ...optional({ changedAtMs, nextRunAtMs }),
  });
}

/** Returns a job if the caller may read its session. */
async function readableJob(ctx: CallContext, id: string): Promise<CronJob | undefined> {
  const job = await getJob(ctx.access.db, id);
  const reads = createGate(ctx.deps.settings, ctx.caller, "read");
  return job !== undefined && reads(jobKey(job)) ? job : undefined;
}

async function get(ctx: CallContext, { id }: ParamsOf<"cron.get">): Promise<Result<CronJobRow>> {
  const job = await readableJob(ctx, id);
  const [row] = job === undefined ? [] : await rowsOf(ctx, [job]);
  return row === undefined ? jobNotFound(id) : ok(row);
}

async function runs(
  ctx: CallContext,
  params: ParamsOf<"cron.runs">,
): Promise<Result<PayloadOf<"cron.runs">>> {
  const { id } = params;
  const { db } = ctx.access;
  if ((await readableJob(ctx, id)) === undefined) return jobNotFound(id);
  const turns = await listTurns(db, id, Math.min(params.limit ?? LIMIT_DEFAULT, TURNS_KEPT));
  const states = await deliveryStates(
    db,
    turns.flatMap(({ runId }) => runId ?? []),
  );
  return ok({ id, entries: turns.map((turn) => turnRow(turn, states, ctx.deps.world.redactor)) });
}

/** Resolves a destination, if the caller may send there. */
async function destinationOf(
  ctx: CallContext,
  asked: NamedPlace | null | undefined,
): Promise<Result<Route | null | undefined>> {
  return asked == null ? ok(asked) : resolvePlace(ctx.access, ctx.viewer, asked);
}

/** Refuses to change the text of a job whose destination the caller may not write to. */
async function checkWords(
  ctx: CallContext,
  { id, patch }: ParamsOf<"cron.update">,
): Promise<Result<unknown>> {
  if (patch.message === undefined || patch.deliver !== undefined) return ok(undefined);
  const job = ctx.caller.patterns === undefined ? undefined : await getJob(ctx.access.db, id);
  if (job === undefined || !createGate(ctx.deps.settings, ctx.caller, "send")(jobKey(job)))
    return ok(undefined);
  const place = job.deliver;
  if (place === undefined || (await resolvePlace(ctx.access, ctx.viewer, place)).ok) return ok(undefined);
  return fail("not_visible", "this job delivers to a destination that you may not write to", {
    hint: "Set deliver, too: to null, or to a destination of a session that the token covers.",
  });
}

/** Returns the answer for a changed job: without its last turn, which is not read inside the transaction. */
function answerOf(ctx: CallContext) {
  const { settings, world } = ctx.deps;
  const reader = { settings, redactor: world.redactor, sees: createGate(settings, ctx.caller, "list") };
  return (job: CronJob) => ({ ok: true, job: jobRow(job, undefined, reader), ...noteOf(ctx) }) as const;
}

const callerOf = ({ viewer, caller }: CallContext) => ({ viewer, id: caller.id });

export const cronMethods: Methods<keyof typeof CRON_METHODS, FeatureDeps> = {
  "cron.list": { handle: list },
  "cron.get": { handle: get },
  "cron.runs": { handle: runs },
  "cron.preview": {
    async handle(ctx, { schedule }) {
      const seen = await previewSchedule(ctx.deps, schedule);
      return seen.ok ? ok({ ...seen.value, words: scheduleWords(seen.value.schedule) }) : seen;
    },
  },
  "cron.add": {
    async handle(ctx, { idempotencyKey: _, deliver: asked, sessionKey, session: conversation, ...wanted }) {
      const deliver = await destinationOf(ctx, asked);
      if (!deliver.ok) return deliver;
      const session =
        sessionKey === undefined
          ? ok(undefined)
          : await resolveSession(ctx.access, ctx.viewer, "send", { sessionKey });
      if (!session.ok) return session;
      const job = { ...wanted, deliver: deliver.value, session: session.value, conversation };
      return answerAfter(ctx, answerOf(ctx), (also) => addJob(ctx.deps, callerOf(ctx), { ...job, also }));
    },
  },
  "cron.update": {
    async handle(ctx, params) {
      const { deliver: asked, session: conversation, ...patch } = params.patch;
      const { id } = params;
      const allowed = await checkWords(ctx, params);
      if (!allowed.ok) return allowed;
      const deliver = await destinationOf(ctx, asked);
      if (!deliver.ok) return deliver;
      const change = { ...patch, deliver: deliver.value, conversation };
      return answerAfter(ctx, answerOf(ctx), (also) =>
        updateJob(ctx.deps, callerOf(ctx), id, { ...change, also }),
      );
    },
  },
  "cron.remove": {
    async handle(ctx, { id }) {
      const answer = { ok: true, id, removed: true } as const;
      const gone = await removeJob(ctx.deps, callerOf(ctx), id, (unit) => ctx.remember(unit, answer));
      return gone.ok ? ok(answer) : gone;
    },
  },
  "cron.run": {
    async handle(ctx, { id }) {
      const answer = ({ runId, sessionKey }: { runId: string; sessionKey: string }) =>
        ({ ok: true, id, runId, sessionKey }) as const;
      return answerAfter(ctx, answer, (also) => runJob(ctx.deps, callerOf(ctx), id, also));
    },
  },
};
