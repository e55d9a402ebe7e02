// Due times of schedules: each kind, time zones, both changes of daylight saving time, and the error
// messages.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  nextDate,
  nextDates,
  type RequestedSchedule,
  readSchedule,
} from "../../../src/features/cron/dates.ts";
import { DATE_MAX_MS, EVERY_MAX_MS, EVERY_MIN_MS, type Schedule } from "../../../src/features/cron/job.ts";

const at = (iso: string): number => Date.parse(iso);
const NOW = at("2026-01-01T00:00:00Z");
const calendar = { now: NOW, zone: "Europe/Berlin" };

async function read(asked: RequestedSchedule): Promise<Schedule> {
  const schedule = await readSchedule(asked, calendar);
  if (!schedule.ok) throw new Error(schedule.error);
  return schedule.value;
}

async function datesOf(asked: RequestedSchedule, from: string, most: number): Promise<string[]> {
  const dates = await nextDates(await read(asked), at(from), most);
  return dates.map((date) => new Date(date).toISOString().replace(":00.000Z", "Z"));
}

const cron = (expr: string, tz = "UTC"): RequestedSchedule => ({ kind: "cron", expr, tz });

describe("the clocks change", () => {
  test("DT2: on the day when the clocks are set forward and 02:30 does not exist, it is due once, at the change", async () => {
    expect(await datesOf(cron("30 2 * * *", "Europe/Berlin"), "2026-03-27T12:00:00Z", 3)).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("DT2: on the day when 02:30 occurs twice, it is due once, at the first occurrence", async () => {
    expect(await datesOf(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00:00Z", 3)).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
      "2026-10-27T01:30Z",
    ]);
  });

  test("DT2: several times of day in one schedule are treated like separate schedules", async () => {
    expect(await datesOf(cron("30 2,14 * * *", "Europe/Berlin"), "2026-10-24T20:00:00Z", 3)).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-25T13:30Z",
      "2026-10-26T01:30Z",
    ]);
  });

  test("DT2: a schedule of every half hour follows real time through both clock changes", async () => {
    for (const from of ["2026-10-24T23:15:00Z", "2026-03-29T00:15:00Z"]) {
      const dates = await nextDates(await read(cron("*/30 * * * *", "Europe/Berlin")), at(from), 8);
      const pauses = dates.slice(1).map((date, index) => date - (dates[index] ?? 0));
      expect(new Set(pauses)).toEqual(new Set([1_800_000]));
    }
  });

  test("DT2: 07:00 means 07:00 in its zone before and after a clock change, even if the change is half an hour", async () => {
    expect(await datesOf(cron("0 7 * * *", "Australia/Lord_Howe"), "2026-10-02T14:00:00Z", 3)).toEqual([
      "2026-10-02T20:30Z",
      "2026-10-03T20:00Z",
      "2026-10-04T20:00Z",
    ]);
  });
});

describe("`every` and `at`", () => {
  test("an `every` schedule is due at its anchor and after each interval, whenever the due time is computed", async () => {
    const schedule = await read({ kind: "every", everyMs: 900_000, anchorMs: NOW + 60_000 });
    expect(await nextDate(schedule, NOW)).toBe(NOW + 60_000);
    expect(await nextDate(schedule, NOW + 60_000)).toBe(NOW + 960_000);
    expect(await nextDate(schedule, NOW + 86_400_000)).toBe(NOW + 86_400_000 + 60_000);
  });

  test("the default anchor is the current time", async () => {
    expect(await read({ kind: "every", everyMs: 60_000 })).toEqual({
      kind: "every",
      everyMs: 60_000,
      anchorMs: NOW,
    });
  });

  test("an `at` schedule is due exactly once", async () => {
    const schedule = await read({ kind: "at", atMs: NOW + 1 });
    expect(await nextDates(schedule, NOW, 5)).toEqual([NOW + 1]);
    expect(await nextDate(schedule, NOW + 1)).toBeUndefined();
  });

  test("DT1: the next due time is always in the future, and never moves back as time passes", async () => {
    const any = fc.oneof(
      fc.record({
        kind: fc.constant("every" as const),
        everyMs: fc.integer({ min: EVERY_MIN_MS, max: EVERY_MAX_MS }),
        anchorMs: fc.integer({ min: 0, max: NOW * 2 }),
      }),
      fc.record({
        kind: fc.constant("cron" as const),
        expr: fc.constantFrom("30 2 * * *", "*/7 * * * *", "0 0 29 2 *", "15 1-3 * * 0", "0 12 L * *"),
        tz: fc.constantFrom("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC", "+02:00"),
      }),
    );
    await fc.assert(
      fc.asyncProperty(
        any,
        fc.nat({ max: 10 ** 11 }),
        fc.nat({ max: 10 ** 8 }),
        async (schedule, more, step) => {
          const first = (await nextDate(schedule, NOW + more)) ?? 0;
          const later = (await nextDate(schedule, NOW + more + step)) ?? 0;
          expect(first).toBeGreaterThan(NOW + more);
          expect(later).toBeGreaterThanOrEqual(first);
        },
      ),
      { numRuns: 200 },
    );
  });
});

test("a cron expression is stored with the official name of its time zone; the default is the gateway's zone", async () => {
  expect(await read({ kind: "cron", expr: "  30  7 * * 1-5 " })).toEqual({
    kind: "cron",
    expr: "30 7 * * 1-5",
    tz: "Europe/Berlin",
  });
  expect(await read(cron("@daily", "america/new_york"))).toMatchObject({ tz: "America/New_York" });
  expect(await read(cron("@daily", "Asia/Kathmandu"))).toMatchObject({ tz: "Asia/Kathmandu" });
});

const REFUSED: readonly (readonly [RequestedSchedule, RegExp])[] = [
  [cron("99 * * * *"), /"99 \* \* \* \*" is not a cron expression: Invalid value for minute: 99/],
  [cron("* * * *"), /it has 4 fields instead of five/],
  [cron("0 30 7 * * *"), /it has 6 fields instead of five/],
  [cron("hello"), /it has 1 field instead of five/],
  [cron(""), /it is empty/],
  [cron("? * * * *"), /"\?" is not supported/],
  [cron("0 0 30 2 *"), /it never matches a date/],
  [cron("@reboot"), /@reboot is not supported/],
  [cron("2027-01-01T00:00:00"), /fields? instead of five/],
  [cron("0 7 * * *", "Europe/Berln"), /there is no time zone "Europe\/Berln"/],
  [cron("0 7 * * *", "\u202Eevil\n"), /there is no time zone/],
  [{ kind: "cron", expr: "0 7 * * *", everyMs: 5 }, /schedule\.everyMs does not go with kind "cron"/],
  [{ kind: "every" }, /schedule\.everyMs is required/],
  [{ kind: "every", everyMs: 9_999 }, /from 10000 \(10 seconds\)/],
  [{ kind: "every", everyMs: EVERY_MAX_MS + 1 }, /10 years/],
  [{ kind: "every", everyMs: 10_000, anchorMs: DATE_MAX_MS + 1 }, /before the year 10000/],
  [{ kind: "at" }, /schedule\.atMs is required/],
  [{ kind: "at", atMs: NOW }, /in the past: 2026-01-01T00:00:00.000Z/],
  [{ kind: "at", atMs: DATE_MAX_MS + 1 }, /before the year 10000/],
];

test.each(REFUSED)("%j is refused with the reason", async (asked, words) => {
  const schedule = await readSchedule(asked, calendar);
  expect(schedule).toMatchObject({
    ok: false,
    code: "invalid_argument",
    error: expect.stringMatching(words),
  });
});

test("for an unknown time zone the error suggests similar names", async () => {
  const schedule = await readSchedule(cron("0 7 * * *", "Europe/Berln"), calendar);
  expect(schedule).toMatchObject({ hint: expect.stringContaining("Europe/Berlin") });
});
