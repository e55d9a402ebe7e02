// The jobs that agents make with the tool `cron`: which sessions may, where their runs and answers go, their
// limits, and that operators see and remove them.

import { expect, test } from "vitest";
import type { Channel, OutgoingMessage } from "../../../src/channels/channel.ts";
import { isCompaction, textOf } from "../../../src/core/shapes/message.ts";
import type { Settings } from "../../../src/core/shapes/settings/settings.ts";
import { createAgentJobs } from "../../../src/features/cron/agent-jobs.ts";
import { AGENT_JOBS_MAX, SESSION_JOBS_MAX } from "../../../src/features/cron/job.ts";
import { jobsDenied } from "../../../src/features/cron/rules.ts";
import { jobsOfSession, listJobs, putJob } from "../../../src/features/cron/store.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { openFlowApp } from "../../kit/engine/flow-app.ts";
import { type ScriptedCall, scriptedModel } from "../../kit/scripted-model.ts";
import { until } from "../../kit/until.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { chainOf, settingsWith } from "../../tools/app.ts";

const MAIN = "agent:main:main";
const MINUTE = 60_000;
const ANN = { channel: "chat", to: "ann", accountId: "a" };
const OWNED: Settings = { ...settingsWith(), owners: ["telegram:7"] };

test.each([
  [[MAIN], undefined],
  [["agent:main:notes"], undefined],
  [["agent:main:telegram:dm:7"], undefined],
  [["agent:main:telegram:dm:8"], "strangers"],
  [["agent:main:telegram:group:7"], "strangers"],
  [["hook:mail"], "strangers"],
  [["node-phone"], "strangers"],
  [["agent:main:openai:user-1"], "strangers"],
  [["cron:1"], "session of a scheduled job"],
  [["agent:main:subagent:1", MAIN], "sub-agent"],
])("the agent of the session %j may not make jobs because: %s", (keys, why) => {
  const denied = jobsDenied(chainOf(...keys), OWNED);
  if (why === undefined) expect(denied).toBeUndefined();
  else expect(denied).toContain(why);
});

interface Ground {
  readonly house: House;
  readonly world: FakeWorld;
  readonly sent: OutgoingMessage[];
  /** Sets the calls that the model makes on a message that begins with "call", and its answer after them. */
  plan(calls: readonly ScriptedCall["arguments"][], answer?: string): void;
  /** Calls the tool in a run of the main session that Ann's message starts, and returns the results. */
  call(...calls: ScriptedCall["arguments"][]): Promise<Record<string, unknown>[]>;
  systems(): string[];
}

/** Opens a gateway whose model repeats messages, unless they begin with "call". */
async function open(more: { guest?: boolean; fails?: boolean; dir?: string } = {}): Promise<Ground> {
  const sent: OutgoingMessage[] = [];
  const chat: Channel = {
    id: "chat",
    deduplicates: true,
    async deliver(message) {
      sent.push(message);
      return { kind: "sent" };
    },
  };
  const world = fakeWorld();
  let wanted: ScriptedCall[] = [];
  let ending = "";
  const plan: Ground["plan"] = (calls, answer = "REPLY_SKIP") => {
    wanted = calls.map((one) => ({ name: "cron", arguments: one ?? {} }));
    ending = answer;
  };
  const model = scriptedModel(({ entries }) => {
    const last = entries.at(-1);
    const text = last === undefined || isCompaction(last) ? "" : textOf(last);
    if (text.startsWith("call")) return { toolCalls: wanted };
    if (last !== undefined && !isCompaction(last) && last.role === "toolResult") return ending;
    return more.fails === true ? { error: "the model is down" } : `done: ${text}`;
  });
  const house = await openHouse({ model, world, channels: [chat], choices: { tools: {} } });
  let rounds = 0;
  const call: Ground["call"] = async (...args) => {
    rounds += 1;
    plan(args);
    const input = { text: `call ${rounds}`, ...(more.guest === true ? { guest: true } : {}) };
    const accepted = await house.engine.accept({ sessionKey: MAIN, input, route: ANN });
    if (!accepted.ok) throw new Error(accepted.error);
    const { runId } = accepted.value.run;
    const client = await house.client();
    await client.request("agent.wait", { runId });
    const rows = await house.store.db
      .selectFrom("messages")
      .select("entry_json")
      .where("run_id", "=", runId)
      .where("role", "=", "toolResult")
      .orderBy("seq")
      .execute();
    return rows.map(({ entry_json }) => JSON.parse(textOf(JSON.parse(entry_json))));
  };
  return { house, world, sent, plan, call, systems: () => model.requests.map(({ system }) => system) };
}

/** Lets due work continue until the condition holds. */
async function turning(world: FakeWorld, holds: () => boolean | Promise<boolean>): Promise<void> {
  await until(async () => {
    await world.advance(0);
    return holds();
  });
}

const REMIND = { action: "add", message: "remind Ann of tea", at: "in 20 minutes" };

test("a reminder runs in the session that asked, and its answer goes to the chat that asked", async () => {
  const { house, world, sent, call, systems } = await open();
  const [made] = await call(REMIND);
  expect(made).toMatchObject({
    status: "ok",
    now: "Thursday, 2026-01-01T00:00:00+00:00",
    timeZone: "UTC",
    job: { next: "Thursday, 2026-01-01T00:20:00+00:00", schedule: "once", message: "remind Ann of tea" },
  });
  // Somebody else writes to the session meanwhile.
  const bob = { ...ANN, to: "bob" };
  await house.store.transaction((tx) => updateSession(tx, MAIN, { lastRoute: bob }));
  await world.advance(20 * MINUTE);
  await turning(world, () => sent.length > 0);
  expect(sent).toMatchObject([{ text: "done: remind Ann of tea", route: ANN }]);
  expect(systems().at(-1)).toContain("Scheduled job context\n");
  expect(systems().at(-1)).toContain("You made it in this session");
  const run = await house.store.db
    .selectFrom("runs")
    .selectAll()
    .orderBy("accepted_at", "desc")
    .executeTakeFirst();
  expect(run).toMatchObject({ session_key: MAIN, state: "ok" });
  expect(JSON.parse(run?.input_json ?? "{}").provenance).toMatchObject({ kind: "cron" });
  // Its only date is over, so nothing is left of it.
  await turning(world, async () => (await listJobs(house.store.db, 5)).length === 0);
});

test("a reminder whose run fails tells the person, and stays for operators to see", async () => {
  const { house, world, sent, call } = await open({ fails: true });
  await call(REMIND);
  await world.advance(20 * MINUTE);
  await turning(world, () => sent.length > 0);
  expect(sent).toMatchObject([{ text: expect.stringContaining("I could not finish this"), route: ANN }]);
  const client = await house.client();
  const { jobs } = await client.request("cron.list", {});
  expect(jobs).toMatchObject([
    { madeBy: MAIN, key: MAIN, enabled: false, state: { last: { status: "error" } } },
  ]);
});

test("a job that repeats can be removed in its own run, whose answer still goes out", async () => {
  const { house, world, sent, plan, call } = await open();
  const [made] = await call({ action: "add", message: "call home", every: "30 minutes" });
  expect(made).toMatchObject({ job: { schedule: "every 30 minutes" } });
  const [listed] = await call({ action: "list" });
  const [{ id }] = (listed as { jobs: [{ id: string }] }).jobs;
  expect(listed).toMatchObject({ count: 1, jobs: [{ next: expect.stringContaining("00:30:00") }] });
  plan([{ action: "remove", id }], "home is well");
  await world.advance(30 * MINUTE);
  await turning(world, () => sent.length > 0);
  expect(sent).toMatchObject([{ text: "home is well", route: ANN }]);
  expect(await jobsOfSession(house.store.db, MAIN)).toEqual([]);
});

test("a time in the past, an unknown form and a wrong choice are errors that say the current time or what to do", async () => {
  const { call } = await open();
  const results = await call(
    { ...REMIND, at: "2025-12-31T23:00" },
    { ...REMIND, at: "soon" },
    { ...REMIND, every: "1 hour" },
    { action: "add", message: "x" },
    { action: "add", at: "in 5 minutes" },
    { action: "add", message: "x", every: "10 seconds" },
    { action: "add", message: "x", cron: "a b" },
    { action: "add", message: "x", at: "12:00", timeZone: "Berlin" },
    { action: "add", message: "x", at: "2099-01-01T00:00" },
    { action: "add", message: "x".repeat(4_001), at: "12:00" },
    { action: "remove", id: "nothing" },
  );
  expect(results.map(({ status }) => status)).toEqual(results.map(() => "error"));
  expect(results.map(({ error }) => error)).toEqual([
    "at: Wednesday, 2025-12-31T23:00:00+00:00 is in the past. It is Thursday, 2026-01-01T00:00:00+00:00 now (UTC).",
    'at: "soon" is not a time. It is Thursday, 2026-01-01T00:00:00+00:00 now (UTC).',
    "add needs exactly one of at, every and cron",
    "add needs exactly one of at, every and cron",
    "add needs message",
    "every: the shortest interval is one minute",
    expect.stringContaining('cron: "a b" is not a cron expression'),
    expect.stringContaining('timeZone: there is no time zone "Berlin"'),
    "the first date is more than five years away",
    expect.stringContaining("4001 characters"),
    'this session has made no job "nothing"',
  ]);
});

test("TC1: a run of a chain in which a guest wrote makes, sees and removes no jobs, and neither does an operator's call", async () => {
  const { house, call } = await open({ guest: true });
  for (const result of await call(REMIND, { action: "list" }, { action: "remove", id: "x" }))
    expect(result).toMatchObject({ status: "forbidden", code: "tool_denied" });
  const client = await house.client();
  const invoked = await client.request("tools.invoke", { name: "cron", args: REMIND, sessionKey: MAIN });
  expect(invoked).toMatchObject({ status: "forbidden", code: "tool_denied" });
  expect(await listJobs(house.store.db, 5)).toEqual([]);
});

test("AG2: a session and an agent have a limited number of jobs", async () => {
  const { house, call } = await open();
  const results = await call(...Array.from({ length: SESSION_JOBS_MAX + 1 }, () => REMIND));
  expect(results.filter(({ status }) => status === "ok")).toHaveLength(SESSION_JOBS_MAX);
  expect(results.at(-1)).toMatchObject({ code: "too_many_jobs", hint: expect.stringContaining("remove") });
  const [some] = await listJobs(house.store.db, 1);
  if (some === undefined) throw new Error("no job");
  const client = await house.client();
  for (const { id } of (await client.request("cron.list", { limit: 100 })).jobs)
    await client.request("cron.remove", { id });
  await house.store.transaction(async (tx) => {
    for (let at = 0; at < AGENT_JOBS_MAX; at += 1)
      await putJob(tx, { ...some, id: `j${at}`, sessionKey: "agent:main:notes" });
  });
  const [refused] = await call(REMIND);
  expect(refused).toMatchObject({ code: "too_many_jobs", error: expect.stringContaining("100 jobs") });
});

test("a token sees an agent's job if it covers the session that made it, and may change no model or in-house destination", async () => {
  const { house, call } = await open();
  await call(REMIND);
  const client = await house.client();
  const { jobs } = await client.request("cron.list", {});
  const id = jobs[0]?.id ?? "";
  expect(jobs).toMatchObject([{ madeBy: MAIN, key: MAIN, deliver: ANN }]);
  const patched = (patch: object) =>
    client.request("cron.update", { id, patch }).then(
      () => "ok",
      (error: Error) => error.message,
    );
  expect(await patched({ model: "offline/rehearsal" })).toContain("with the session's model");
  expect(await patched({ deliver: { channel: "last", to: MAIN } })).toContain("own session");
  expect(await patched({ message: "remind Ann of coffee" })).toBe("ok");
  expect(await client.request("cron.remove", { id })).toMatchObject({ removed: true });
});

test("AG1: a call that is repeated after a crash makes no second job, also when its time has passed since", async () => {
  const world = fakeWorld();
  const gate = Promise.withResolvers<string>();
  const app = await openFlowApp({ plays: { [MAIN]: () => gate.promise }, world });
  const jobs = createAgentJobs({ engine: () => app.engine, timeZone: () => "UTC" });
  const run = await app.tell(MAIN, "hello");
  const call = { session: await app.session(MAIN), run, callId: "call" };
  const asked = { message: "tea", at: "2026-01-01T00:01" };
  const first = await jobs.add(call, asked);
  await world.advance(2 * MINUTE);
  while ((await app.runs(MAIN)).length < 2) await world.advance(0);
  expect(await jobs.add(call, asked)).toMatchObject({ ok: true, value: { id: first.ok && first.value.id } });
  expect(await jobsOfSession(app.store.db, MAIN)).toHaveLength(1);
  gate.resolve("done");
  await app.quiet();
  expect(await jobsOfSession(app.store.db, MAIN)).toEqual([]);
  expect(await app.runs(MAIN)).toHaveLength(2);
});

test("deleting a session deletes the jobs that its agent made", async () => {
  const { house, call } = await open();
  await call(REMIND);
  const [job] = await listJobs(house.store.db, 1);
  if (job === undefined) throw new Error("no job");
  const client = await house.client();
  const { key } = await client.request("sessions.create", { key: "agent:main:notes", idempotencyKey: "n" });
  await house.store.transaction((tx) => putJob(tx, { ...job, sessionKey: key }));
  await client.request("sessions.delete", { key });
  expect(await listJobs(house.store.db, 5)).toEqual([]);
});
