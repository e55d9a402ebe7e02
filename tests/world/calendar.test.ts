// The machine's time zone and the date in it, each in a process with its own zone.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { lacks } from "../kit/process/lacks.ts";

const MODULE = new URL("../../src/world/calendar.ts", import.meta.url).href;
const PROGRAM = `
  import { createCalendar } from ${JSON.stringify(MODULE)};
  const calendar = createCalendar(() => process.env.TZ);
  let formatters = 0;
  Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
    construct: (target, given) => (formatters++, new target(...given)),
  });
  const days = process.argv.slice(1).map((text) => calendar.today(Date.parse(text)).date);
  console.log(JSON.stringify({ zone: calendar.timeZone(), days, formatters }));`;

/** Runs the program with this `TZ`. Undefined: with the zone of the system. */
async function inZone(TZ: string | undefined, ...times: string[]) {
  const { TZ: _own, ...env } = process.env;
  const args = ["--input-type=module", "--eval", PROGRAM, ...times];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: TZ === undefined ? env : { ...env, TZ },
  });
  return JSON.parse(stdout) as { zone: string; days: string[]; formatters: number };
}

const noZones = lacks("the table of time zones", existsSync("/usr/share/zoneinfo/Europe/Berlin"));

// Skipped on a machine without the system's table of zones.
test.skipIf(noZones)("CA1: the date changes at midnight of the zone, and Intl is not asked", async () => {
  const times = ["2026-11-21T22:59:00Z", "2026-11-21T23:01:00Z"];
  expect(await inZone("Europe/Berlin", ...times)).toEqual({
    zone: "Europe/Berlin",
    days: ["Saturday, 2026-11-21", "Sunday, 2026-11-22"],
    formatters: 0,
  });
  const [days, zone] = [["Saturday, 2026-11-21", "Saturday, 2026-11-21"], "America/New_York"];
  expect(await inZone(`:${zone}`, ...times)).toEqual({ zone, days, formatters: 0 });
  expect(await inZone("Etc/UTC", "2027-01-03T23:59:00Z")).toEqual({
    ...{ zone: "UTC", days: ["Sunday, 2027-01-03"], formatters: 0 },
  });
});

test("a TZ that is no time zone counts as UTC", async () => {
  for (const zone of ["Nowhere/Town", "", "Europe", "localtime", "posixrules", "Factory"])
    expect(await inZone(zone, "2026-11-21T23:59:00Z")).toMatchObject({
      zone: "UTC",
      days: ["Saturday, 2026-11-21"],
    });
});

test("if Intl names the zone, the date is that of this zone, also if Node's own date is another", async () => {
  for (const zone of ["/usr/share/zoneinfo/Europe/Berlin", "Japan", "PST"]) {
    const { zone: named, days } = await inZone(zone, "2026-07-21T22:30:00Z");
    const date = new Date("2026-07-21T22:30:00Z").toLocaleDateString("sv", { timeZone: named });
    expect([zone, days[0]]).toEqual([zone, expect.stringContaining(`day, ${date}`)]);
  }
});

test("TZ may name the zone of the system", async () => {
  expect(await inZone(":/etc/localtime", "2026-11-21T12:00:00Z")).toEqual(
    await inZone(undefined, "2026-11-21T12:00:00Z"),
  );
});

test("without TZ, it is the zone of the system", async () => {
  const { TZ: _own, ...env } = process.env;
  const ask = "console.log(new Intl.DateTimeFormat().resolvedOptions().timeZone)";
  const { stdout } = await promisify(execFile)(process.execPath, ["--eval", ask], { env });
  expect((await inZone(undefined)).zone).toBe(stdout.trim());
});
