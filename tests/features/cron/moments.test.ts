// The times that models write: relative, times of day, dates with and without an offset, in any zone.

import { expect, test } from "vitest";
import { localTime, readMoment } from "../../../src/features/cron/moments.ts";

/** A Friday afternoon in Berlin. */
const NOW = Date.UTC(2026, 10, 27, 16, 40);
const read = (text: string, zone = "Europe/Berlin", now = NOW) => {
  const found = readMoment(text, { now, zone });
  return found.ok ? localTime(found.value, zone) : found.error;
};

test.each([
  ["in 20 minutes", "Friday, 2026-11-27T18:00:00+01:00"],
  ["90s", "Friday, 2026-11-27T17:41:30+01:00"],
  ["in 1 hour and 30 minutes", "Friday, 2026-11-27T19:10:00+01:00"],
  ["18:00", "Friday, 2026-11-27T18:00:00+01:00"],
  ["at 6pm", "Friday, 2026-11-27T18:00:00+01:00"],
  ["today 18:00", "Friday, 2026-11-27T18:00:00+01:00"],
  ["6:30 am", "Saturday, 2026-11-28T06:30:00+01:00"],
  ["12 am", "Saturday, 2026-11-28T00:00:00+01:00"],
  ["tomorrow at 09:30", "Saturday, 2026-11-28T09:30:00+01:00"],
  ["2026-11-27T18:00", "Friday, 2026-11-27T18:00:00+01:00"],
  ["2026-11-27 18:00:30", "Friday, 2026-11-27T18:00:30+01:00"],
  ["2026-11-27T18:00:00Z", "Friday, 2026-11-27T19:00:00+01:00"],
  ["2026-11-27T18:00:00.000-05:00", "Saturday, 2026-11-28T00:00:00+01:00"],
  ["2027-07-01T12:00", "Thursday, 2027-07-01T12:00:00+02:00"],
  [String(NOW + 60_000), "Friday, 2026-11-27T17:41:00+01:00"],
])("%j is %s", (text, expected) => expect(read(text)).toBe(expected));

test.each([
  ...["", "six", "18", "25:00", "13pm", "2026-13-01T00:00", "tomorrow", "in a while", "9".repeat(15)],
  ...["2027-02-30T09:00", "2027-02-29 09:00Z", "2027-04-31T09:00+02:00", "2027-03-01T25:00", "12:60"],
])("%j is not a time, and the error says the current one", (text) => {
  expect(read(text)).toContain("is not a time. It is Friday, 2026-11-27T17:40:00+01:00 now (Europe/Berlin)");
});

test.each(["17:40", "today 09:00"])("%j of today is past; alone, a time of day is the next one", (text) => {
  const isToday = text.startsWith("today");
  expect(read(text)).toContain(isToday ? "is in the past" : "Saturday, 2026-11-28T17:40");
});

test("MO1: times near a change of the clock are in the zone", () => {
  const before = Date.UTC(2027, 2, 27, 12);
  expect(read("2027-03-28T01:30", "Europe/Berlin", before)).toBe("Sunday, 2027-03-28T01:30:00+01:00");
  expect(read("2027-03-28T03:30", "Europe/Berlin", before)).toBe("Sunday, 2027-03-28T03:30:00+02:00");
  expect(read("tomorrow 12:00", "Europe/Berlin", before)).toBe("Sunday, 2027-03-28T12:00:00+02:00");
  expect(read("2027-03-28T12:00", "America/New_York", before)).toBe("Sunday, 2027-03-28T12:00:00-04:00");
  expect(read("2027-03-28T12:00", "Asia/Kathmandu", before)).toBe("Sunday, 2027-03-28T12:00:00+05:45");
});
