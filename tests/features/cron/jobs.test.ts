// Jobs and their runs with the real engine and store, and a fake clock. Each due time gives one run, whatever
// else happens.

import { describe, expect, test } from "vitest";
import { operatorViewer } from "../../../src/access/access.ts";
import { optional } from "../../../src/core/optional.ts";
import {
  addJob,
  type JobCaller,
  type JobContext,
  type JobPatch,
  removeJob,
  runJob,
  updateJob,
} from "../../../src/features/cron/jobs.ts";
import { getJob, putJob } from "../../../src/features/cron/store.ts";
import { storedKinds } from "../../../src/store/queries/deadlines.ts";
import { deleteSessionRows, updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { tokenId } from "../../../src/triggers/creator.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { ADMIN, add, cronKey, jobsOf, turnsOf, untilTurns } from "./kit.ts";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

async function open(more: Partial<FlowAppOptions> & { world: FakeWorld }): Promise<FlowApp> {
  return openFlowApp({ plays: {}, ...more });
}

/** Advances the clock in steps, so that due work can finish. */
async function pass(app: FlowApp, world: FakeWorld, ms: number, stepMs = ms): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await world.advance(stepMs);
    do await world.advance(0);
    while (!(await app.isQuiet()) || (await overdue(app, world)));
  }
}

/** Returns the first due time of a job. */
async function nextDate({ store }: FlowApp): Promise<number | undefined> {
  return (await storedKinds(store.db, 0)).find(({ kind }) => kind === "cron")?.firstAt;
}

/** Returns true if a due time has not been handled. */
async function overdue(app: FlowApp, world: FakeWorld): Promise<boolean> {
  return ((await nextDate(app)) ?? Number.POSITIVE_INFINITY) <= world.clock.now();
}

test("a job of each kind runs at its due times, in the session cron:<id>, with the job's message and provenance cron", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const now = world.clock.now();
  const every = await add(app, { schedule: { kind: "every", everyMs: 10 * MINUTE }, message: "look" });
  const once = await add(app, { schedule: { kind: "at", atMs: now + 25 * MINUTE } });
  const daily = await add(app, { schedule: { kind: "cron", expr: "20 0 * * *" }, agentId: "Research" });
  await pass(app, world, 30 * MINUTE, MINUTE);
  expect(await turnsOf(app, every)).toEqual(["schedule ok", "schedule ok", "schedule ok"]);
  expect(await turnsOf(app, once)).toEqual(["schedule ok"]);
  expect(await turnsOf(app, daily)).toEqual(["schedule ok"]);
  const [run] = await app.runs(cronKey(every.id));
  expect(run).toMatchObject({
    acceptedAt: now + 10 * MINUTE,
    agentId: "main",
    hop: 0,
    input: { text: "look", provenance: { kind: "cron", source: every.id } },
  });
  expect(await app.session(cronKey(daily.id))).toMatchObject({ kind: "cron", agentId: "research" });
  expect(await getJob(app.store.db, once.id)).toMatchObject({ enabled: false });
  expect((await getJob(app.store.db, once.id))?.nextAt).toBeUndefined();
  expect((await getJob(app.store.db, daily.id))?.nextAt).toBe(now + DAY + 20 * MINUTE);
});

test("runs have the job's model, thinking level and time limit, and the session has the job's name", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, {
    schedule: { kind: "every", everyMs: HOUR },
    name: "  Morning report ",
    model: "offline/rehearsal",
    thinking: "high",
    timeoutSeconds: 90,
  });
  await pass(app, world, HOUR);
  const session = await app.session(cronKey(job.id));
  expect(session).toMatchObject({ label: "Morning report", model: "offline/rehearsal" });
  const [run] = await app.runs(session.key);
  expect(run).toMatchObject({ timeoutMs: 90_000, input: { thinking: "high" } });
  const renamed = await updateJob(jobsOf(app), ADMIN, job.id, { name: "Evening", model: null });
  expect(renamed).toMatchObject({ ok: true, value: { name: "Evening" } });
  expect(await app.session(session.key)).toMatchObject({ label: "Evening" });
  expect((await app.session(session.key)).model).toBeUndefined();
});

describe("I13: a job has the rights of the token that created it, checked at each run", () => {
  const token = "a-token-for-jobs-of-the-default-agent";
  const scopes = ["operator.admin"] as const;
  const all = ["cron:*", "agent:main:*", "agent:research:*"];
  const by: JobCaller = { viewer: operatorViewer(scopes, all), id: tokenId(token) };
  const withToken = (app: FlowApp, sessions?: readonly string[]): JobContext => {
    const one = { token, role: "operator", scopes, ...optional({ sessions }) } as const;
    const { settings } = app;
    const gateway = { ...settings.gateway, tokens: sessions === undefined ? [] : [one] };
    return { ...jobsOf(app), settings: { ...settings, gateway } };
  };
  const schedule = { kind: "every", everyMs: HOUR } as const;

  test("I13, CT1: a job runs while its token exists, and reports if the token was removed or covers less", async () => {
    const app = await open({ world: fakeWorld() });
    const made = await addJob(withToken(app, all), by, { schedule, message: "tick" });
    if (!made.ok) throw new Error(made.error);
    const run = (sessions?: readonly string[]) =>
      runJob(withToken(app, sessions), ADMIN, made.value.id, async () => undefined);
    expect(await run()).toMatchObject({
      ok: false,
      error: expect.stringContaining("was removed from the config"),
    });
    expect(await run(["agent:main:*"])).toMatchObject({
      ok: false,
      error: expect.stringContaining("cron:<id>"),
    });
    expect(await run(["cron:*"])).toMatchObject({
      ok: false,
      error: expect.stringContaining("the agent main"),
    });
    expect(await run(all)).toMatchObject({ ok: true });
  });

  test("CT1: if the token of a job was removed, the job's due time is skipped, and its history says so", async () => {
    const world = fakeWorld();
    const app = await open({ world });
    const made = await addJob(withToken(app, all), by, { schedule, message: "tick" });
    if (!made.ok) throw new Error(made.error);
    await pass(app, world, HOUR);
    expect(await turnsOf(app, made.value)).toEqual(["schedule not_visible"]);
  });

  test("CT2: a job of the gateway token keeps all rights; if a scoped token changes a job, the job gets that token's rights", async () => {
    const world = fakeWorld();
    const app = await open({ world });
    const job = await add(app, { schedule });
    expect(job.createdBy).toBeUndefined();
    const changed = await updateJob(withToken(app, all), by, job.id, { message: "other" });
    expect(changed).toMatchObject({ ok: true, value: { createdBy: tokenId(token) } });
    // A change with the gateway's own token does not extend the rights of the job, unless the job's token was
    // removed.
    const kept = await updateJob(withToken(app, all), ADMIN, job.id, { name: "n" });
    expect(kept).toMatchObject({ ok: true, value: { createdBy: tokenId(token) } });
    const taken = await updateJob(withToken(app), ADMIN, job.id, { name: "m" });
    expect(taken.ok && taken.value.createdBy).toBeUndefined();
    expect((await runJob(withToken(app), ADMIN, job.id, async () => undefined)).ok).toBe(true);
  });
});

describe("the clocks change", () => {
  test.each([
    ["has no 02:30", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"],
    ["has two of it", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"],
  ])("DT2: on the night that %s a job at 02:30 runs once", async (_, start, due) => {
    const world = fakeWorld({ startMs: Date.parse(start) });
    const app = await open({ world });
    const job = await add(app, { schedule: { kind: "cron", expr: "30 2 * * *", tz: "Europe/Berlin" } });
    await pass(app, world, DAY, 10 * MINUTE);
    expect(await turnsOf(app, job)).toEqual(["schedule ok"]);
    const [run] = await app.runs(cronKey(job.id));
    expect(run?.acceptedAt).toBe(Date.parse(due));
  });
});

describe("after a long stop", () => {
  async function stopped(
    missed: "once" | "skip",
    schedule: Parameters<typeof add>[1]["schedule"],
    ms: number,
  ) {
    const dir = temporaryFolder();
    const world = fakeWorld();
    const first = await open({ world, dir });
    const job = await add(first, { schedule, missed });
    await first.stop(0);
    const later = fakeWorld({ startMs: world.clock.now() + ms, seed: 2 });
    const app = await open({ world: later, dir });
    const turns = await untilTurns(app, job, 1);
    return { app, job, turns, now: later.clock.now(), world: later };
  }

  test("TU3: with `once`, missed due times give one run in all, and the next run is on time", async () => {
    const { app, job, turns, world } = await stopped("once", { kind: "every", everyMs: HOUR }, 10.5 * HOUR);
    expect(turns).toEqual(["late ok"]);
    expect((await getJob(app.store.db, job.id))?.nextAt).toBe(world.clock.now() + 0.5 * HOUR);
    await pass(app, world, HOUR, MINUTE);
    expect(await turnsOf(app, job)).toEqual(["late ok", "schedule ok"]);
  });

  test("TU3: with `skip`, missed due times are skipped and recorded, and the next run is on time", async () => {
    const { app, job, turns, world } = await stopped(
      "skip",
      { kind: "cron", expr: "0 * * * *" },
      10.5 * HOUR,
    );
    expect(turns).toEqual(["late missed"]);
    await pass(app, world, HOUR, MINUTE);
    expect(await turnsOf(app, job)).toEqual(["late missed", "schedule ok"]);
  });

  test("TU3: a single missed due time is caught up with `once` and skipped with `skip`", async () => {
    const schedule = { kind: "at", atMs: fakeWorld().clock.now() + HOUR } as const;
    expect((await stopped("once", schedule, DAY)).turns).toEqual(["late ok"]);
    const skipped = await stopped("skip", schedule, DAY);
    expect(skipped.turns).toEqual(["late missed"]);
    expect(await getJob(skipped.app.store.db, skipped.job.id)).toMatchObject({ enabled: false });
  });

  test("a due time that is slightly late is not missed", async () => {
    expect((await stopped("skip", { kind: "every", everyMs: HOUR }, HOUR + 30_000)).turns).toEqual([
      "schedule ok",
    ]);
  });
});

test("TU2: if the previous run is unfinished, a due time is skipped", async () => {
  const world = fakeWorld();
  const held = Promise.withResolvers<void>();
  const plays: FlowAppOptions["plays"] = {};
  const app = await open({ world, plays });
  const job = await add(app, { schedule: { kind: "every", everyMs: MINUTE } });
  plays[cronKey(job.id)] = async () => {
    await held.promise;
    return "done";
  };
  await world.advance(MINUTE);
  while ((await turnsOf(app, job))[0] !== "schedule running") await world.advance(0);
  await world.advance(MINUTE);
  while ((await turnsOf(app, job)).length < 2) await world.advance(0);
  expect(await turnsOf(app, job)).toEqual(["schedule running", "schedule still_running"]);
  const byHand = await runJob(jobsOf(app), ADMIN, job.id, async () => {});
  expect(byHand).toMatchObject({ ok: false, code: "cron_job_busy" });
  held.resolve();
  await app.quiet();
  await pass(app, world, MINUTE);
  expect(await turnsOf(app, job)).toEqual(["schedule ok", "schedule still_running", "schedule ok"]);
});

test("a job of another session runs there and in its name, and /reset begins a new conversation unless a run is going on", async () => {
  const world = fakeWorld();
  const held = Promise.withResolvers<void>();
  const MAIN = "agent:main:main";
  const session = { key: MAIN, agentId: "main" };
  const plays: FlowAppOptions["plays"] = { [MAIN]: () => "HEARTBEAT_OK" };
  const app = await open({ world, plays });
  const deliver = { channel: "last", to: MAIN };
  const beat = await add(app, {
    schedule: { kind: "every", everyMs: HOUR },
    message: "look",
    session,
    deliver,
  });
  await pass(app, world, HOUR);
  const other = { ...session, agentId: "other" };
  const foreign = addJob(jobsOf(app), ADMIN, { schedule: beat.schedule, message: "x", session: other });
  await expect(foreign).resolves.toMatchObject({ ok: false });
  expect(await app.texts(MAIN)).toEqual(["user: look", "assistant: HEARTBEAT_OK"]);
  expect(app.sent).toEqual([]);
  plays[MAIN] = () => "The garden is dry.";
  await pass(app, world, HOUR);
  // Its people use the session itself, so the transcript has the answer once.
  expect((await app.texts(MAIN)).slice(2)).toEqual(["user: look", "assistant: The garden is dry."]);
  const reset = await add(app, {
    schedule: { kind: "at", atMs: world.clock.now() + MINUTE },
    message: "/reset",
    session,
  });
  const before = (await app.session(MAIN)).sessionId;
  await pass(app, world, MINUTE);
  expect(await turnsOf(app, reset)).toEqual(["schedule ok"]);
  expect((await app.session(MAIN)).sessionId).not.toBe(before);
  expect(await app.texts(MAIN)).toEqual([expect.stringContaining("started a new conversation")]);
  plays[MAIN] = async () => {
    await held.promise;
    return "done";
  };
  const busy = await add(app, {
    schedule: { kind: "every", everyMs: 2 * MINUTE },
    message: "/reset",
    session,
  });
  await runJob(jobsOf(app), ADMIN, beat.id, async () => {});
  await world.advance(2 * MINUTE);
  while ((await turnsOf(app, busy)).length < 1) await world.advance(0);
  expect(await turnsOf(app, busy)).toEqual(["schedule still_running"]);
  held.resolve();
  await app.quiet();
});

test("JO3: if a job is removed while it runs, only its later due times end", async () => {
  const world = fakeWorld();
  const held = Promise.withResolvers<void>();
  const plays: FlowAppOptions["plays"] = {};
  const app = await open({ world, plays });
  const deliver = { channel: "webchat", to: "agent:main:main" };
  const job = await add(app, { schedule: { kind: "every", everyMs: MINUTE }, deliver });
  plays[cronKey(job.id)] = async () => {
    await held.promise;
    return "done";
  };
  await world.advance(MINUTE);
  while ((await turnsOf(app, job))[0] !== "schedule running") await world.advance(0);
  expect(await removeJob(jobsOf(app), ADMIN, job.id, async () => {})).toMatchObject({ ok: true });
  held.resolve();
  await app.quiet();
  await pass(app, world, HOUR, MINUTE);
  expect((await app.texts(cronKey(job.id))).slice(-2)).toEqual(["user: tick", "assistant: done"]);
  expect(await app.runs(cronKey(job.id))).toMatchObject([{ state: "ok" }]);
  // The run was started with this destination.
  expect(app.sent).toHaveLength(1);
  expect(await nextDate(app)).toBeUndefined();
  expect(await app.store.db.selectFrom("cron_runs").selectAll().execute()).toEqual([]);
});

test("a paused job has no due time; after it is resumed it gets the next one, and no due time counts as missed", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR } });
  const jobs = jobsOf(app);
  await updateJob(jobs, ADMIN, job.id, { enabled: false });
  await pass(app, world, 5.5 * HOUR, HOUR / 2);
  expect(await turnsOf(app, job)).toEqual([]);
  expect(await updateJob(jobs, ADMIN, job.id, { enabled: true })).toMatchObject({
    value: { enabled: true, nextAt: world.clock.now() + HOUR / 2 },
  });
  await pass(app, world, HOUR / 2);
  expect(await turnsOf(app, job)).toEqual(["schedule ok"]);
});

test("a new schedule changes the next due time, and other changes do not", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const jobs = jobsOf(app);
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR } });
  await pass(app, world, MINUTE);
  expect(await updateJob(jobs, ADMIN, job.id, { message: "other" })).toMatchObject({
    value: { nextAt: job.nextAt, message: "other" },
  });
  const atMs = world.clock.now() + 2 * MINUTE;
  await updateJob(jobs, ADMIN, job.id, { schedule: { kind: "at", atMs } });
  await pass(app, world, 2 * HOUR, MINUTE);
  expect(await turnsOf(app, job)).toEqual(["schedule ok"]);
  // An ended job can be enabled only if it has a future due time. A new schedule enables it.
  expect(await updateJob(jobs, ADMIN, job.id, { enabled: true })).toMatchObject({
    ok: false,
    code: "invalid_argument",
  });
  await updateJob(jobs, ADMIN, job.id, { schedule: { kind: "every", everyMs: MINUTE } });
  await pass(app, world, MINUTE);
  expect(await turnsOf(app, job)).toEqual(["schedule ok", "schedule ok"]);
});

test("a manual run does not change the due times, and is possible for a paused job", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR }, enabled: false });
  expect(job.nextAt).toBeUndefined();
  expect(await runJob(jobsOf(app), ADMIN, job.id, async () => {})).toMatchObject({ ok: true });
  expect(await untilTurns(app, job, 1)).toEqual(["manual ok"]);
  expect((await getJob(app.store.db, job.id))?.nextAt).toBeUndefined();
});

test("if the job's session was deleted, the next run creates it again", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR } });
  await pass(app, world, HOUR);
  await app.store.transaction((tx) => deleteSessionRows(tx, cronKey(job.id), { transcripts: true }));
  await pass(app, world, HOUR);
  expect(await turnsOf(app, job)).toEqual(["schedule ok", "schedule ok"]);
});

test("a refused run is in the history, and the next due time is set", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR } });
  await pass(app, world, HOUR);
  const archive = (archivedAt: number | null) =>
    app.store.transaction((tx) => updateSession(tx, cronKey(job.id), { archivedAt }));
  await archive(1);
  await pass(app, world, HOUR);
  await archive(null);
  await pass(app, world, HOUR);
  expect(await turnsOf(app, job)).toEqual(["schedule ok", "schedule session_archived", "schedule ok"]);
});

test("a job with an unknown time zone runs once, and is then paused with the reason", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "cron", expr: "0 * * * *" } });
  const schedule = { kind: "cron", expr: "0 * * * *", tz: "Atlantis/Capital" } as const;
  await app.store.transaction((tx) => putJob(tx, { ...job, schedule }));
  await pass(app, world, 2 * HOUR, HOUR);
  expect(await turnsOf(app, job)).toEqual(["schedule ok", "schedule invalid_argument"]);
  expect(await getJob(app.store.db, job.id)).toMatchObject({ enabled: false });
  const change = (patch: JobPatch) => updateJob(jobsOf(app), ADMIN, job.id, patch);
  expect(await change({ message: "other" })).toMatchObject({ ok: true, value: { enabled: false } });
  expect(await change({ enabled: true })).toMatchObject({ ok: false, code: "invalid_argument" });
  // A job without a future due time has ended. A new schedule enables it.
  expect(await change({ schedule: { kind: "every", everyMs: HOUR } })).toMatchObject({
    value: { enabled: true, nextAt: world.clock.now() + HOUR },
  });
});

test("CJ2: the last hundred runs of a job are stored", async () => {
  const world = fakeWorld();
  const app = await open({ world });
  const job = await add(app, { schedule: { kind: "every", everyMs: MINUTE } });
  await pass(app, world, 110 * MINUTE, MINUTE);
  const rows = await app.store.db.selectFrom("cron_runs").selectAll().orderBy("seq").execute();
  expect(rows).toHaveLength(100);
  expect(rows[0]?.due_at).toBe(job.createdAt + 11 * MINUTE);
});

test("with cron.enabled false no job runs, and no due time is lost", async () => {
  const dir = temporaryFolder();
  const world = fakeWorld();
  const app = await open({ world, dir, choices: { features: { cron: { enabled: false } } } });
  const job = await add(app, { schedule: { kind: "every", everyMs: HOUR } });
  await world.advance(5 * HOUR);
  await app.quiet();
  expect(await turnsOf(app, job)).toEqual([]);
  expect(await nextDate(app)).toBe(job.nextAt);
  await app.stop(0);
  const again = await open({ world: fakeWorld({ startMs: world.clock.now(), seed: 2 }), dir });
  expect(await untilTurns(again, job, 1)).toEqual(["late ok"]);
});
