// Owns the state of the form for a job, and converts it into params for the gateway.
// DR1: for an edited job, only the changed fields are sent, because the gateway may have redacted the others.

import type { ParamsOf, PayloadOf } from "../../../../src/contract/methods.ts";
import { twoDigits } from "../../parts/format.ts";
import { READERS_ZONE } from "./dates.ts";

export type Job = PayloadOf<"cron.list">["jobs"][number];
export type Turn = PayloadOf<"cron.runs">["entries"][number];
type Schedule = ParamsOf<"cron.preview">["schedule"];

export const UNITS = [
  { name: "seconds", ms: 1_000 },
  { name: "minutes", ms: 60_000 },
  { name: "hours", ms: 3_600_000 },
  { name: "days", ms: 86_400_000 },
] as const;
type Unit = (typeof UNITS)[number]["name"];

export interface Draft {
  readonly name: string;
  readonly message: string;
  readonly kind: "cron" | "every" | "at";
  readonly expr: string;
  readonly tz: string;
  readonly every: string;
  readonly unit: Unit;
  /** Local time, in the format of a date and time field. */
  readonly at: string;
  readonly agentId: string;
  /** Key of the session to which the reply is sent. Empty: the reply is not sent. */
  readonly deliverTo: string;
  readonly missed: "once" | "skip";
  /** Empty: the default of a new job. */
  readonly session: "" | Job["session"];
  readonly model: string;
  readonly thinking: string;
  /** Time limit in seconds, as typed. */
  readonly timeout: string;
}

/** Formats a time for a field for date and time. */
function fieldTime(atMs: number): string {
  const at = new Date(atMs);
  const day = [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(twoDigits).join("-");
  return `${day}T${[at.getHours(), at.getMinutes()].map(twoDigits).join(":")}`;
}

function everyOf(ms: number): Pick<Draft, "every" | "unit"> {
  const unit = UNITS.findLast((one) => ms % one.ms === 0) ?? UNITS[0];
  return { every: String(ms / unit.ms), unit: unit.name };
}

export function draftOf(job: Job | undefined, nowMs: number): Draft {
  const blank: Draft = {
    name: job?.name ?? "",
    message: job?.message ?? "",
    kind: job?.schedule.kind ?? "cron",
    expr: "0 8 * * *",
    tz: READERS_ZONE,
    every: "15",
    unit: "minutes",
    at: fieldTime(nowMs + 3_600_000),
    agentId: job?.agentId ?? "",
    deliverTo: job?.deliver?.to ?? "",
    missed: job?.missed ?? "once",
    session: job?.session ?? "",
    model: job?.model ?? "",
    thinking: job?.thinking ?? "",
    timeout: job?.timeoutSeconds === undefined ? "" : String(job.timeoutSeconds),
  };
  switch (job?.schedule.kind) {
    case "cron":
      return { ...blank, expr: job.schedule.expr, tz: job.schedule.tz };
    case "every":
      return { ...blank, ...everyOf(job.schedule.everyMs) };
    case "at":
      return { ...blank, at: fieldTime(job.schedule.atMs) };
    case undefined:
      return blank;
  }
}

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
