// Owns the dates of a schedule: validates a requested schedule and computes its next dates. The calendar
// library is loaded with the first expression.
// DT1: dates depend only on the schedule and the given time, so they are the same on every machine.
// DT2: a time of day that a clock change skips is due when the gap ends; one that occurs twice is due
//      once. Intervals of minutes or hours follow real time through both changes.

import type { Cron } from "croner";
import type { ParamsOf } from "../../contract/methods.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import { nearestNames } from "../../core/text/nearest.ts";
import { DATE_MAX_MS, EVERY_MAX_MS, EVERY_MIN_MS, type Schedule } from "./job.ts";

/** A requested schedule, not validated. */
export type RequestedSchedule = ParamsOf<"cron.preview">["schedule"];

/** Time and zone for validation. */
export interface Calendar {
  /** The current time in ms since 1970. */
  readonly now: number;
  /** The time zone of cron expressions for which none is requested. */
  readonly zone: string;
}

const FIELDS_OF: Readonly<Record<Schedule["kind"], readonly string[]>> = {
  cron: ["expr", "tz"],
  every: ["everyMs", "anchorMs"],
  at: ["atMs"],
};

const EXAMPLES =
  'Five fields: minute, hour, day of month, month, day of week. "30 7 * * 1-5" is 07:30 from Monday to ' +
  'Friday, "*/15 * * * *" every quarter of an hour, "0 9 1 * *" the first of each month at 09:00.';

async function open(expr: string, tz: string): Promise<Cron> {
  const { Cron } = await import("croner");
  // Without a callback, the library starts no timer and only computes dates.
  return new Cron(expr, { mode: "5-part", fixedTimeRule: "no-wildcard", timezone: tz, paused: true });
}

/** Returns the name of a time zone. The failure suggests names. */
export function zoneOf(wanted: string): Result<string> {
  try {
    const known = new Intl.DateTimeFormat("en", { timeZone: wanted }).resolvedOptions().timeZone;
    // Keeps the requested name, because the library may return an older one (Katmandu for Kathmandu).
    return ok(known.toLowerCase() === wanted.toLowerCase() ? known : wanted);
  } catch {
    const near = nearestNames(wanted, Intl.supportedValuesOf("timeZone"), 3);
    return fail("invalid_argument", `there is no time zone ${quoted(wanted, 80)}`, {
      hint: `Use a name like Europe/Berlin, America/New_York or UTC. Closest: ${near.join(", ")}.`,
    });
  }
}

function badExpression(expr: string, why: string): Result<never> {
  return fail("invalid_argument", `${quoted(expr, 80)} is not a cron expression: ${why}`, {
    hint: EXAMPLES,
  });
}

async function cronOf(asked: RequestedSchedule, calendar: Calendar): Promise<Result<Schedule>> {
  const expr = (asked.expr ?? "").trim().replaceAll(/\s+/g, " ");
  if (expr === "") return badExpression(expr, "it is empty");
  const zone = zoneOf(asked.tz?.trim() || calendar.zone);
  if (!zone.ok) return zone;
  const fields = expr.split(" ").length;
  if (!expr.startsWith("@") && fields !== 5) {
    return badExpression(expr, `it has ${fields === 1 ? "1 field" : `${fields} fields`} instead of five`);
  }
  // The library replaces `?` by the time at which the expression is read, which is not stored.
  if (expr.includes("?")) return badExpression(expr, '"?" is not supported; use "*" for any');
  const schedule = { kind: "cron", expr, tz: zone.value } as const;
  try {
    if ((await nextDate(schedule, calendar.now)) === undefined) {
      return badExpression(expr, "it never matches a date");
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return badExpression(expr, text.replace(/^CronPattern: /, "").replace(/\.$/, ""));
  }
  return ok(schedule);
}

function everyOf({ everyMs, anchorMs }: RequestedSchedule, { now }: Calendar): Result<Schedule> {
  if (everyMs === undefined)
    return fail("invalid_argument", 'schedule.everyMs is required with kind "every"');
  if (everyMs < EVERY_MIN_MS || everyMs > EVERY_MAX_MS) {
    const range = `from ${EVERY_MIN_MS} (10 seconds) to ${EVERY_MAX_MS} (10 years)`;
    return fail("invalid_argument", `schedule.everyMs must be ${range}, got ${everyMs}`);
  }
  if (anchorMs !== undefined && anchorMs > DATE_MAX_MS) {
    return fail(
      "invalid_argument",
      "schedule.anchorMs must be a date before the year 10000, in ms since 1970",
    );
  }
  return ok({ kind: "every", everyMs, anchorMs: anchorMs ?? now });
}

function atOf({ atMs }: RequestedSchedule, { now }: Calendar): Result<Schedule> {
  if (atMs === undefined) return fail("invalid_argument", 'schedule.atMs is required with kind "at"');
  if (atMs > DATE_MAX_MS) {
    return fail("invalid_argument", "schedule.atMs must be a date before the year 10000, in ms since 1970");
  }
  if (atMs > now) return ok({ kind: "at", atMs });
  const [then, today] = [new Date(atMs).toISOString(), new Date(now).toISOString()];
  return fail("invalid_argument", `schedule.atMs is in the past: ${then}; it is ${today} now`, {
    hint: "Use a future date in ms since 1970, or run a job now with cron.run.",
  });
}

/** Validates a schedule and fills in defaults. The failure lists the valid values. */
export async function readSchedule(asked: RequestedSchedule, calendar: Calendar): Promise<Result<Schedule>> {
  const fields = FIELDS_OF[asked.kind];
  const strange = Object.keys(asked).filter((field) => field !== "kind" && !fields.includes(field));
  if (strange.length > 0) {
    const text = `schedule.${strange.join(", schedule.")} does not go with kind "${asked.kind}"`;
    return fail("invalid_argument", `${text}, which takes: ${fields.join(", ")}`);
  }
  switch (asked.kind) {
    case "cron":
      return cronOf(asked, calendar);
    case "every":
      return everyOf(asked, calendar);
    case "at":
      return atOf(asked, calendar);
  }
}

/** Returns the first date after this time, or undefined if there is none. */
export async function nextDate(schedule: Schedule, afterMs: number): Promise<number | undefined> {
  switch (schedule.kind) {
    case "at":
      return schedule.atMs > afterMs ? schedule.atMs : undefined;
    case "every": {
      const { everyMs, anchorMs } = schedule;
      const turns = Math.floor((afterMs - anchorMs) / everyMs) + 1;
      return anchorMs + Math.max(0, turns) * everyMs;
    }
    case "cron": {
      const calendar = await open(schedule.expr, schedule.tz);
      return calendar.nextRun(new Date(afterMs))?.getTime();
    }
  }
}

/** Returns at most `most` future dates. */
export async function nextDates(schedule: Schedule, afterMs: number, most: number): Promise<number[]> {
  const dates: number[] = [];
  let last: number | undefined = afterMs;
  while (dates.length < most) {
    last = await nextDate(schedule, last);
    if (last === undefined) break;
    dates.push(last);
  }
  return dates;
}
