// Translates scheduled jobs between Parley's form and the form of clients of version 4.
// CF1: a request for something that a job of Parley cannot do is refused in words. A job that does something
//      else would be worse than none.

import type { PayloadOf } from "../../contract/methods.ts";
import { parseDate } from "../../core/date.ts";
import { type Fields, isObject, numberOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { LAST } from "../../core/shapes/route.ts";
import { defaultAgent } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import { type Form, type FormFacts, form } from "../../gateway/version-4/form.ts";
import type { CronJobRow, CronTurnRow } from "./contract.ts";

const SHOWN_MAX_CHARS = 64;
/** The only kind of work and the only place that a job of Parley has. */
const AGENT_TURN = "agentTurn";
const ISOLATED = "isolated";
/** Fields of a job that would change when or whether it runs. */
const UNKNOWN_TO_PARLEY = ["trigger", "pacing", "sessionKey"] as const;

const refuse = (what: string, hint: string): Result<never> => fail("invalid_argument", what, { hint });

/** Returns the schedule in Parley's form: times are in ms since 1970. */
function scheduleOf(given: unknown): Result<unknown> {
  if (!isObject(given) || given.kind !== "at" || given.at === undefined) return ok(given);
  const atMs = parseDate(String(given.at));
  if (Number.isNaN(atMs)) {
    const shown = quoted(String(given.at), SHOWN_MAX_CHARS);
    return refuse(`schedule.at ${shown} is not a date`, "Give an ISO date, like 2027-01-31T09:00:00Z.");
  }
  return ok({ kind: "at", atMs });
}

function workOf(given: unknown): Result<Fields> {
  if (!isObject(given) || given.kind !== AGENT_TURN) {
    const kind = isObject(given) ? quoted(String(given.kind), SHOWN_MAX_CHARS) : "none";
    return refuse(`payload.kind is ${kind}, and a job here sends a message to an agent`, "Use agentTurn.");
  }
  const { message, model, thinking, timeoutSeconds } = given;
  return ok({ message, ...optional({ model, thinking, timeoutSeconds }) });
}

/** Returns the destination for replies. null: none. */
function destinationOf(given: unknown, agentId: string): Result<Fields | null> {
  if (given === null || (isObject(given) && given.mode === "none")) return ok(null);
  if (!isObject(given) || (given.mode ?? "announce") !== "announce") {
    return refuse(
      "a job here delivers its replies to a chat or nowhere",
      "Set delivery.mode: announce or none.",
    );
  }
  const { channel, to, accountId, threadId } = given;
  const where = { channel: channel ?? LAST, to: to ?? `agent:${agentId}:main` };
  if (to === undefined && where.channel !== LAST)
    return refuse("delivery.to is missing", "Name the chat of this channel.");
  return ok({ ...where, ...optional({ accountId, threadId }) });
}

/** Translates the fields that a new job and a change of a job share. */
function fieldsOfJob(given: Fields, agentId: string): Result<Fields> {
  const unknown = UNKNOWN_TO_PARLEY.find((name) => given[name] != null);
  if (unknown !== undefined) return refuse(`a job here has no ${unknown}`, "Leave it out.");
  if (given.sessionTarget !== undefined && given.sessionTarget !== ISOLATED) {
    const shown = quoted(String(given.sessionTarget), SHOWN_MAX_CHARS);
    return refuse(`sessionTarget is ${shown}, and a job here has a session of its own`, "Use isolated.");
  }
  const { name, enabled, schedule, payload, delivery } = given;
  const when = scheduleOf(schedule);
  if (!when.ok) return when;
  const work = payload === undefined ? ok({}) : workOf(payload);
  if (!work.ok) return work;
  const deliver = delivery === undefined ? ok(undefined) : destinationOf(delivery, agentId);
  if (!deliver.ok) return deliver;
  const fields = { name, enabled, schedule: when.value, deliver: deliver.value };
  return ok({ ...optional(fields), ...work.value });
}

/** Params of `cron.add`. Those in Parley's own form stay as they are. */
function jobToAdd(given: Fields, { settings }: FormFacts): Result<Fields> {
  if (given.payload === undefined && given.message !== undefined) return ok(given);
  const agentId = textOf(given.agentId) ?? defaultAgent(settings).id;
  const job = fieldsOfJob({ ...given, payload: given.payload ?? null }, agentId);
  if (!job.ok) return job;
  const { deliver, ...rest } = job.value;
  const { idempotencyKey } = given;
  return ok({
    ...rest,
    agentId,
    ...(deliver === null ? {} : optional({ deliver })),
    ...optional({ idempotencyKey }),
  });
}

/** Params of `cron.update`. The agent of a job cannot be changed. */
function jobToChange(given: Fields, { settings }: FormFacts): Result<Fields> {
  const { patch } = given;
  if (!isObject(patch)) return withJobId(given);
  if (patch.agentId != null) return refuse("the agent of a job cannot be changed", "Add a new job.");
  const { message, deliver, model, thinking, timeoutSeconds, missed } = patch;
  const job = fieldsOfJob(patch, defaultAgent(settings).id);
  if (!job.ok) return job;
  const own = optional({ message, deliver, model, thinking, timeoutSeconds, missed });
  return withJobId({ ...given, patch: { ...own, ...job.value } });
}

/** Such clients may name a job by `jobId`. */
function withJobId({ jobId, ...rest }: Fields): Result<Fields> {
  return ok({ ...rest, ...optional({ id: rest.id ?? jobId }) });
}

function lastState(last: CronTurnRow | undefined): Fields {
  if (last === undefined) return {};
  const { firedAtMs, status, durationMs, error } = last;
  const fields = { lastRunAtMs: firedAtMs, lastStatus: statusOf(status) };
  return { ...fields, ...optional({ lastDurationMs: durationMs, lastError: error }) };
}

function statusOf(status: CronTurnRow["status"]): string {
  if (status === "ok" || status === "skipped") return status;
  return status === "queued" || status === "running" ? "running" : "error";
}

/** A job in the clients' form. */
function jobShown(row: CronJobRow): Fields {
  const { id, agentId, enabled, createdAtMs, updatedAtMs, schedule, message, deliver } = row;
  const { model, thinking, timeoutSeconds, state } = row;
  const payload = { kind: AGENT_TURN, message, ...optional({ model, thinking, timeoutSeconds }) };
  const { nextRunAtMs } = state;
  return {
    id,
    agentId,
    name: row.name ?? row.words,
    enabled,
    createdAtMs,
    updatedAtMs,
    schedule: schedule.kind === "at" ? { kind: "at", at: new Date(schedule.atMs).toISOString() } : schedule,
    sessionTarget: ISOLATED,
    wakeMode: "now",
    payload,
    delivery: deliver === undefined ? { mode: "none" } : { mode: "announce", ...deliver },
    state: { ...optional({ nextRunAtMs }), ...lastState(state.last) },
    ...optional({ nextRunAtMs }),
  };
}

/** A page of jobs in the clients' form. The revision changes with each change of a job. */
function jobsShown(page: PayloadOf<"cron.list">, given: Fields): Fields {
  const { jobs, total, changedAtMs = 0 } = page;
  const offset = numberOf(given.offset) ?? 0;
  const next = offset + jobs.length;
  return {
    jobs: jobs.map(jobShown),
    total,
    offset,
    limit: Math.max(1, numberOf(given.limit) ?? jobs.length),
    hasMore: next < total,
    nextOffset: next < total ? next : null,
    snapshotRevision: `${total}-${changedAtMs}`,
  };
}

/** The starts of a job in the clients' form. */
function turnsShown({ id, entries: turns }: PayloadOf<"cron.runs">): Fields {
  const entries = turns.map((turn) => ({
    ts: turn.endedAtMs ?? turn.firedAtMs,
    jobId: id,
    action: turn.endedAtMs === undefined && turn.status !== "skipped" ? "started" : "finished",
    status: statusOf(turn.status),
    runAtMs: turn.firedAtMs,
    ...optional({ runId: turn.runId, error: turn.error, durationMs: turn.durationMs }),
  }));
  const total = entries.length;
  return { entries, total, offset: 0, limit: Math.max(1, total), hasMore: false, nextOffset: null };
}

/** By the name that the client sends. */
export const CRON_FORMS: Readonly<Record<string, Form>> = {
  "cron.list": form({ method: "cron.list", payload: jobsShown }),
  "cron.get": form({ method: "cron.get", params: withJobId, payload: jobShown }),
  "cron.status": form({
    method: "cron.list",
    params: () => ok({ limit: 1 }),
    payload: ({ enabled, total, nextRunAtMs }) => ({
      enabled,
      jobs: total,
      nextWakeAtMs: nextRunAtMs ?? null,
    }),
  }),
  "cron.add": form({ method: "cron.add", params: jobToAdd, payload: ({ job }) => jobShown(job) }),
  "cron.update": form({ method: "cron.update", params: jobToChange, payload: ({ job }) => jobShown(job) }),
  "cron.remove": form({ method: "cron.remove", params: withJobId }),
  "cron.run": form({
    method: "cron.run",
    params: withJobId,
    payload: (started) => ({ ...started, enqueued: true }),
  }),
  "cron.runs": form({ method: "cron.runs", params: withJobId, payload: turnsShown }),
};
