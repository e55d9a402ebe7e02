// Reads the time of a reminder as a model writes it, and formats times for models, which do not know the
// time of day.
// MO1: a time without an offset is in the given zone, also where a clock change is near.

import { parseDate } from "../../core/date.ts";
import { readDuration } from "../../core/duration.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Calendar } from "./dates.ts";
import { DATE_MAX_MS } from "./job.ts";

const DAY_MS = 86_400_000;
const EPOCH_MS = /^\d{12,15}$/;
const DATE = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?$/i;
const TIME_OF_DAY = /^(?:(today|tomorrow)\s+)?(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)?$/i;

/** Returns the difference between the time in a zone and UTC, in ms. */
function offsetAt(atMs: number, timeZone: string): number {
  const style = { dateStyle: "short", timeStyle: "medium", timeZone } as const;
  // Swedish dates have the form of ISO 8601.
  const there = new Date(atMs).toLocaleString("sv", style).replace(" ", "T");
  return Date.parse(`${there}Z`) - Math.floor(atMs / 1_000) * 1_000;
}

/** Formats a time in a zone, like `Friday, 2026-11-27T18:00:00+01:00`. */
export function localTime(atMs: number, zone: string): string {
  const offset = offsetAt(atMs, zone);
  const there = new Date(atMs + offset);
  const day = there.toLocaleString("en", { weekday: "long", timeZone: "UTC" });
  const minutes = Math.round(Math.abs(offset) / 60_000);
  const [hh, mm] = [Math.floor(minutes / 60), minutes % 60].map((one) => String(one).padStart(2, "0"));
  return `${day}, ${there.toISOString().slice(0, 19)}${offset < 0 ? "-" : "+"}${hh}:${mm}`;
}

/** Returns the time of a date and time of day in a zone (MO1), or NaN if there is no such date. */
function timeIn(zone: string, date: string, time: string): number {
  const utc = parseDate(`${date}T${time}Z`);
  if (Number.isNaN(utc)) return utc;
  const near = utc - offsetAt(utc, zone);
  return utc - offsetAt(near, zone);
}

/** Returns the time of the next occurrence of a time of day, or NaN if the text names none. */
function timeOfDay(words: string, { now, zone }: Calendar): number {
  const [, day = "", hour = "", minute, half] = TIME_OF_DAY.exec(words) ?? [];
  if (hour === "" || (minute === undefined && half === undefined)) return Number.NaN;
  const isAfternoon = half?.toLowerCase() === "pm";
  if (half !== undefined && !(Number(hour) >= 1 && Number(hour) <= 12)) return Number.NaN;
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (isAfternoon ? 12 : 0);
  const time = `${String(hours).padStart(2, "0")}:${minute ?? "00"}`;
  const on = (days: number): number => {
    const there = new Date(now + offsetAt(now, zone) + days * DAY_MS);
    return timeIn(zone, there.toISOString().slice(0, 10), time);
  };
  if (day.toLowerCase() === "tomorrow") return on(1);
  return day === "" && on(0) <= now ? on(1) : on(0);
}

function momentOf(words: string, calendar: Calendar): number {
  if (EPOCH_MS.test(words)) return Number(words);
  const ahead = readDuration(words.replace(/^in\s+/i, ""));
  if (ahead !== undefined) return calendar.now + ahead;
  const [, date = "", time = "", offset] = DATE.exec(words) ?? [];
  if (date === "") return timeOfDay(words, calendar);
  return offset === undefined
    ? timeIn(calendar.zone, date, time)
    : parseDate(`${date}T${time}${offset.toUpperCase()}`);
}

/** Reads a future time. The failure names the current time. */
export function readMoment(text: string, calendar: Calendar): Result<number> {
  const { now, zone } = calendar;
  const atMs = momentOf(text.trim(), calendar);
  const clock = `It is ${localTime(now, zone)} now (${zone}).`;
  if (Number.isNaN(atMs) || atMs > DATE_MAX_MS) {
    return fail("invalid_argument", `at: ${quoted(text, 80)} is not a time. ${clock}`, {
      hint: 'Use "in 20 minutes", "18:00", "tomorrow 09:30" or a date like "2027-03-01T09:30".',
    });
  }
  if (atMs > now) return ok(atMs);
  return fail("invalid_argument", `at: ${localTime(atMs, zone)} is in the past. ${clock}`, {
    hint: "Give a later time.",
  });
}
