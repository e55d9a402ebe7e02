// Scheduled jobs on the command line, with a real gateway.

import { expect, test } from "vitest";
import { readDuration } from "../../../src/core/duration.ts";
import { readDate } from "../../../src/features/cron/commands.ts";
import { makeHome, run, runJson, startGateway } from "../../cli/kit.ts";

test("a job can be added, listed, changed, run and removed, and its runs are listed", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  expect((await run(home, ["cron"])).out).toContain("No scheduled jobs");
  const made = await run(home, [
    ...["cron", "add", "say nothing is new", "--cron", "30 7 * * 1-5", "--tz", "Europe/Berlin"],
    ...["--name", "Morning report", "--deliver", "main", "--timeout", "60", "--missed", "skip"],
  ]);
  expect(made.out).toMatch(/^\S+ is scheduled: Monday to Friday at 07:30; next: .+ 07:30 Europe\/Berlin\n$/);
  const id = made.out.slice(0, made.out.indexOf(" "));
  const list = (await run(home, ["cron", "list"])).out;
  expect(list).toMatch(/ID +NAME +SCHEDULE +NEXT +AGENT/);
  expect(list).toMatch(/Morning report +Monday to Friday at 07:30/);
  const value = await runJson(home, ["cron", "list"]);
  expect(value).toMatchObject({
    jobs: [
      { id, missed: "skip", timeoutSeconds: 60, deliver: { channel: "webchat", to: "agent:main:main" } },
    ],
  });
  expect(list).toMatch(/ main +fresh/);
  expect((await run(home, ["cron", "run", "Morning report"])).out).toContain(`runs now in cron:${id}`);
  const mistyped = await run(home, ["cron", "run", "Mourning report"]);
  expect(mistyped).toMatchObject({ code: 1, err: expect.stringContaining('Did you mean "Morning report"?') });
  await run(home, ["cron", "add", "x", "--every", "1h", "--name", "Morning report"]);
  const two = await run(home, ["cron", "remove", "Morning report"]);
  expect(two).toMatchObject({ code: 1, err: expect.stringContaining("2 jobs have the name") });
  expect(two.err).toContain(id);
  const other = /([0-9a-f-]{36})/.exec(two.err.replace(id, ""))?.[1] ?? "";
  expect((await run(home, ["cron", "remove", other])).code).toBe(0);
  const changed = await run(home, [
    "cron",
    "update",
    id,
    "--every",
    "30m",
    "--no-deliver",
    "--name",
    "",
    "--conversation",
    "keep",
  ]);
  expect(changed.out).toContain(`${id} is changed: every 30 minutes`);
  const after = await runJson(home, ["cron", "list"]);
  expect(after).toMatchObject({ jobs: [{ words: "every 30 minutes", session: "keep" }] });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  expect((await run(home, ["cron"])).out).toMatch(
    new RegExp(`every 30 minutes +\\d+ \\w+ \\d{4}, \\d\\d:\\d\\d ${zone} `),
  );
  expect(JSON.stringify(after)).not.toMatch(/"deliver"|Morning report/);
  expect((await run(home, ["cron", "run", id])).out).toContain(`runs now in cron:${id}`);
  await expect.poll(async () => (await run(home, ["cron", "runs", id])).out).toMatch(/manual +ok/);
  expect((await run(home, ["cron", "update", id, "--disable"])).code).toBe(0);
  expect((await run(home, ["cron", "list"])).out).toMatch(/every 30 minutes +off/);
  expect((await run(home, ["cron", "remove", id])).out).toContain("Its conversation was kept");
  expect((await run(home, ["sessions"])).out).toContain(`cron:${id}`);
  expect(await run(home, ["cron", "runs", id])).toMatchObject({ code: 1 });
});

test("invalid options are refused without a gateway, invalid schedules by the gateway", async () => {
  const { home } = await makeHome();
  const wrong: readonly (readonly [string[], RegExp])[] = [
    [["add", "x"], /the job has no schedule/],
    [["add", "x", "--every", "often"], /--every must be a duration like 30s/],
    [["add", "x", "--in", "soon"], /--in must be a duration/],
    [["add", "x", "--at", "tomorrow"], /--at must be a date like/],
    [["add", "x", "--every", "1h", "--cron", "0 * * * *"], /one of --cron, --every/],
    [["add", "x", "--every", "1h", "--tz", "UTC"], /--tz requires --cron/],
    [["add", "x", "--every", "1h", "--missed", "never"], /missed/],
    [["update", "an-id"], /nothing to change: give at least one option/],
  ];
  for (const [args, words] of wrong) {
    const { code, err } = await run(home, ["cron", ...args]);
    expect({ args, code, said: words.test(err) ? "" : err }).toEqual({ args, code: 2, said: "" });
  }
  await startGateway(home);
  const refused = await run(home, ["cron", "add", "x", "--cron", "61 * * * *"]);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("Invalid value for minute: 61") });
  expect(refused.err).toContain("Five fields: minute, hour");
  const unknown = await run(home, ["cron", "remove", "nothing"]);
  expect(unknown).toMatchObject({
    code: 1,
    err: expect.stringContaining('No job has the id or name "nothing"'),
  });
});

test("a job can be named by its id, or by a unique name", async () => {
  const { home } = await makeHome();
  await startGateway(home);
  for (const name of ["news", "twice", "twice"])
    expect((await run(home, ["cron", "add", "say so", "--every", "1h", "--name", name])).code).toBe(0);
  expect((await run(home, ["cron", "run", "news"])).out).toMatch(/^[0-9a-f-]{36} runs now in cron:/);
  await expect.poll(async () => (await run(home, ["cron", "runs", "news"])).out).toMatch(/manual +ok/);
  expect((await run(home, ["cron", "update", "news", "--name", "old"])).out).toContain("is changed");
  expect(await run(home, ["cron", "remove", "news"])).toMatchObject({ code: 1 });
  expect(await run(home, ["cron", "remove", "twice"])).toMatchObject({
    code: 1,
    err: expect.stringContaining('2 jobs have the name "twice". Give an id: '),
  });
  expect((await run(home, ["cron", "remove", "old"])).out).toMatch(/Its conversation was kept/);
});

test("with cron.enabled false, cron list and cron add report that no job will run", async () => {
  const { home } = await makeHome({ cron: { enabled: false } });
  await startGateway(home);
  expect((await run(home, ["cron", "add", "x", "--in", "2h"])).err).toContain("cron.enabled is false");
  expect((await run(home, ["cron"])).err).toContain("cron.enabled is false");
});

test.each([
  ["30s", 30_000],
  ["15m", 900_000],
  ["2h 30m", 9_000_000],
  ["1D", 86_400_000],
  ["90 min", 5_400_000],
  ["", undefined],
  ["5", undefined],
  ["2 weeks", 1_209_600_000],
  ["1 hour and 30 minutes", 5_400_000],
  ["5 moons", undefined],
  ["-5m", undefined],
  ["5m later", undefined],
  ["1.5h", 5_400_000],
  ["1h30m", 5_400_000],
])("the duration %j means %j ms", (text, ms) => expect(readDuration(text)).toBe(ms));

test.each([
  ["2027-03-01T09:00Z", Date.UTC(2027, 2, 1, 9)],
  ["2027-03-01T09:00:30+01:00", Date.UTC(2027, 2, 1, 8, 0, 30)],
  ["2027-03-01 09:00", new Date(2027, 2, 1, 9).getTime()],
  ["2027-03-01", new Date(2027, 2, 1).getTime()],
  ["1830000000000", 1_830_000_000_000],
  ["1.3.2027", undefined],
  ["tomorrow", undefined],
  ["2027-13-01", undefined],
])("the date %j is %j", (text, ms) => expect(readDate(text)).toBe(ms));
