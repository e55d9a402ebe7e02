// Owns the state of the form for a job, and converts it into params for the gateway.
// DR1: for an edited job, only the changed fields are sent, because the gateway may have redacted the others.

import type { ParamsOf, PayloadOf } from "../../../../src/contract/methods.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../parts/format.ts";
import { READERS_ZONE } from "./dates.ts";

export type Job = PayloadOf<"cron.list">["jobs"][number];
export type Turn = PayloadOf<"cron.runs">["entries"][number];
type Schedule = ParamsOf<"cron.preview">["schedule"];

export const UNITS = [
  { name: "seconds", ms: 1_000 },
  { name: "minutes", ms: MINUTE_MS },
  { name: "hours", ms: HOUR_MS },
  { name: "days", ms: DAY_MS },
] as const;

/** Formats a time for a field for date and time, on the reader's clock. */
function fieldTime(atMs: number): string {
  const offsetMs = new Date(atMs).getTimezoneOffset() * MINUTE_MS;
  return new Date(atMs - offsetMs).toISOString().slice(0, 16);
}

export function draftOf(job: Job | undefined, nowMs: number) {
  const { name, message, schedule, agentId, deliver, missed, session, model, thinking, timeoutSeconds } =
    job ?? ({} as Partial<Job>);
  const everyMs = schedule?.kind === "every" ? schedule.everyMs : 15 * MINUTE_MS;
  const unit = UNITS.findLast(({ ms }) => everyMs % ms === 0) ?? UNITS[0];
  return {
    name: name ?? "",
    message: message ?? "",
    kind: schedule?.kind ?? "cron",
    expr: schedule?.kind === "cron" ? schedule.expr : "0 8 * * *",
    tz: schedule?.kind === "cron" ? schedule.tz : READERS_ZONE,
    every: String(everyMs / unit.ms),
    unit: unit.name,
    at: fieldTime(schedule?.kind === "at" ? schedule.atMs : nowMs + HOUR_MS),
    agentId: agentId ?? "",
    /** Key of the session to which the reply is sent. Empty: the reply is not sent. */
    deliverTo: deliver?.to ?? "",
    missed: missed ?? "once",
    /** Empty: the default of a new job. */
    session: session ?? ("" as const),
    model: model ?? "",
    thinking: thinking ?? "",
    /** Time limit in seconds, as typed. */
    timeout: timeoutSeconds === undefined ? "" : String(timeoutSeconds),
  };
}

export type Draft = Readonly<ReturnType<typeof draftOf>>;

/** Returns the schedule that the form describes, or undefined if a field is empty. */
export function scheduleOf({ kind, expr, tz, every, unit, at }: Draft): Schedule | undefined {
  switch (kind) {
    case "cron":
      if (expr.trim() === "") return undefined;
      return { kind, expr, ...(tz.trim() === "" ? {} : { tz: tz.trim() }) };
    case "every": {
      const count = Number(every);
      const ms = UNITS.find((one) => one.name === unit)?.ms ?? 0;
      return Number.isFinite(count) && count > 0 ? { kind, everyMs: Math.round(count * ms) } : undefined;
    }
    case "at": {
      const atMs = new Date(at).getTime();
      return Number.isNaN(atMs) ? undefined : { kind, atMs };
    }
  }
}

/** Returns the settings of a job. Null: it has none. */
function toSettings(draft: Draft) {
  const { message, agentId, deliverTo, missed, session, timeout } = draft;
  const to = deliverTo.trim();
  return {
    schedule: scheduleOf(draft),
    ...{ message, missed },
    name: draft.name.trim() || null,
    agentId: agentId || null,
    deliver: to === "" ? null : { to },
    model: draft.model.trim() || null,
    thinking: draft.thinking || null,
    timeoutSeconds: Math.max(0, Math.round(Number(timeout) || 0)),
    session: session || null,
  };
}

/** Returns the parameters of `cron.add`. */
export function newJob(draft: Draft): ParamsOf<"cron.add"> {
  const set = Object.entries(toSettings(draft)).filter(([, value]) => value);
  return Object.fromEntries(set) as unknown as ParamsOf<"cron.add">;
}

/** Returns the parameters of `cron.update`: only the settings that were changed. */
export function changedSettings(before: Draft, draft: Draft): ParamsOf<"cron.update">["patch"] {
  const known = new Map(Object.entries(toSettings(before)));
  const changed = Object.entries(toSettings(draft)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(known.get(name)),
  );
  return Object.fromEntries(changed);
}
