// Conversations of jobs: each run begins a new one or continues that of the run before it, as the job says.

import { describe, expect, test } from "vitest";
import { openModelPort } from "../../../src/agent/model/port.ts";
import { runJob, updateJob } from "../../../src/features/cron/jobs.ts";
import { listJobs, putJob } from "../../../src/features/cron/store.ts";
import { openHouse } from "../../gateway/kit.ts";
import { type CrashPoint, cleanup, quietWorld, temporaryFolder } from "../../kit/engine/engine.ts";
import { type FlowApp, type FlowAppOptions, openFlowApp } from "../../kit/engine/flow-app.ts";
import { startModelServer } from "../../kit/model-server/server.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";
import { agentSettings } from "../../tools/app.ts";
import { ADMIN, add, cronKey, jobsOf, turnsOf, untilTurns } from "./kit.ts";

const HOUR = 3_600_000;
const EVERY = { kind: "every", everyMs: HOUR } as const;
const MAIN = "agent:main:main";
const RUNS = 4;
const COMMITS_MAX = 40;

/** A gateway with a fake clock, whose model is a server that counts the messages of each request. */
async function openOffice() {
  const world = fakeWorld();
  const served = await startModelServer((_, index) => `Report ${index + 1}.`);
  cleanup(() => served.close());
  const provider = served.provider("openai-completions");
  const agents = [agentSettings("main", { model: `${provider.id}/test-model` })];
  const model = openModelPort(quietWorld());
  const house = await openHouse({ world, model, choices: { providers: [provider], agents } });
  const client = await house.client();
  return {
    client,
    /** Adds a job and returns it with the number of messages of the request of each run. */
    async countMessages(more: object) {
      const before = served.requests.length;
      const { job } = await client.request("cron.add", { schedule: EVERY, message: "news?", ...more });
      for (let run = 1; run <= RUNS; run += 1) {
        await world.advance(HOUR);
        for (;;) {
          const { entries } = await client.request("cron.runs", { id: job.id });
          if (entries.length === run && entries[0]?.status === "ok") break;
          await world.advance(0);
        }
      }
      await client.request("cron.update", { id: job.id, patch: { enabled: false } });
      const counts = served.requests.slice(before).map(({ messages }) => messages.length);
      return { job, counts };
    },
  };
}

const constant = Array(RUNS).fill(1);
const growing = Array.from({ length: RUNS }, (_, index) => 2 * index + 1);

test("a new job that delivers sends one message at each run, and its earlier conversations stay readable", async () => {
  const { client, countMessages } = await openOffice();
  const { job, counts } = await countMessages({ deliver: { to: "main" } });
  expect(job.session).toBe("fresh");
  expect(counts).toEqual(constant);
  const { conversations } = await client.request("sessions.earlier", { key: job.key });
  expect(conversations).toHaveLength(RUNS - 1);
  const sessionId = conversations.at(-1)?.sessionId ?? "";
  const first = await client.request("chat.history", { sessionKey: job.key, sessionId });
  expect(JSON.stringify(first.messages)).toContain("Report 1.");
});

test.each([
  ["fresh", { session: "fresh" }, "fresh", constant],
  ["keep, though it delivers,", { session: "keep", deliver: { to: "main" } }, "keep", growing],
  ["no choice and no destination", {}, "keep", growing],
  ["no choice in another session", { sessionKey: "main", deliver: { channel: "last", to: "main" } }, "keep"],
] as const)("a job with %s sends the messages that it should", async (_, more, session, wanted = growing) => {
  const { countMessages } = await openOffice();
  const { job, counts } = await countMessages(more);
  expect(job.session).toBe(session);
  expect(counts).toEqual(wanted);
});

test("TU4: a run continues the conversation while another run is at work in the session, and stops nothing", async () => {
  const world = fakeWorld();
  const held = Promise.withResolvers<void>();
  const plays: FlowAppOptions["plays"] = {};
  const app = await openFlowApp({ world, plays });
  const job = await add(app, { schedule: EVERY, conversation: "fresh" });
  const key = cronKey(job.id);
  plays[key] = () => "news";
  expect(await runJob(jobsOf(app), ADMIN, job.id, async () => {})).toMatchObject({ ok: true });
  await untilTurns(app, job, 1);
  plays[key] = async () => {
    await held.promise;
    return "an answer";
  };
  await app.tell(key, "a question");
  await world.advance(HOUR);
  while ((await turnsOf(app, job)).length < 2) await world.advance(0);
  held.resolve();
  await untilTurns(app, job, 2);
  const talk = ["user: tick", "assistant: news", "user: a question", "assistant: an answer"];
  expect(await app.texts(key)).toEqual([...talk, "user: tick", "assistant: an answer"]);
  expect((await app.runs(key)).map(({ state }) => state)).toEqual(["ok", "ok", "ok"]);
});

test("a job keeps its conversation until it is changed; a job of an agent always keeps it", async () => {
  const app = await openFlowApp({ plays: {}, world: fakeWorld() });
  const { id, conversation } = await add(app, { schedule: EVERY });
  expect(conversation).toBe("keep");
  const deliver = { channel: "webchat", to: MAIN };
  const moved = await updateJob(jobsOf(app), ADMIN, id, { deliver });
  expect(moved).toMatchObject({ ok: true, value: { conversation: "keep" } });
  const changed = await updateJob(jobsOf(app), ADMIN, id, { conversation: "fresh" });
  expect(changed).toMatchObject({ ok: true, value: { conversation: "fresh" } });
  const [job] = await listJobs(app.store.db, 1);
  if (job === undefined) throw new Error("the job is there");
  const made = { ...job, id: "made", sessionKey: MAIN, callId: "call", conversation: "keep" } as const;
  await app.engine.commit((unit) => putJob(unit.tx, made));
  const refused = await updateJob(jobsOf(app), ADMIN, "made", { conversation: "fresh" });
  expect(refused).toMatchObject({ ok: false, code: "invalid_argument" });
});

/** Every run of a job gives the same answer. */
const plays = new Proxy<FlowAppOptions["plays"]>(
  {},
  { get: (_, key) => (String(key).startsWith("cron:") ? () => "The report." : undefined) },
);

/** Advances the clock until all work of this many runs of a job is done. */
async function workOff(app: FlowApp, world: FakeWorld, id: string, runs = 2): Promise<void> {
  while ((await turnsOf(app, { id })).length < runs || !(await app.isQuiet())) await world.advance(0);
}

/** Lets the second run of a job crash. Returns false if the run ended before that commit. */
async function crashAt(point: CrashPoint): Promise<boolean> {
  const dir = temporaryFolder();
  const start = fakeWorld();
  const before = await openFlowApp({ plays, dir, world: start, dies: true });
  const { id } = await add(before, { schedule: EVERY, deliver: { channel: "webchat", to: MAIN } });
  await start.advance(HOUR);
  await workOff(before, start, id, 1);
  await before.stop(0);
  await before.store.close();
  const world = fakeWorld({ startMs: start.clock.now(), seed: 2 });
  const first = await openFlowApp({ plays, dir, world, crash: point }).catch(() => undefined);
  if (first === undefined) return true;
  const ended = world.advance(HOUR).then(() => workOff(first, world, id));
  const crashed = first.crashed().then(() => true);
  if (!(await Promise.race([crashed, ended.then(() => false).catch(() => crashed)]))) return false;
  const later = fakeWorld({ startMs: world.clock.now(), seed: 3 });
  const second = await openFlowApp({ plays, dir, world: later });
  const [job] = await listJobs(second.store.db, 1);
  await later.advance(Math.max(0, (job?.createdAt ?? 0) + 2 * HOUR - later.clock.now()));
  await workOff(second, later, id);
  expect(await turnsOf(second, { id })).toEqual(["schedule ok", "schedule ok"]);
  expect(await second.texts(cronKey(id))).toEqual(["user: tick", "assistant: The report."]);
  const ids = second.store.db.selectFrom("session_ids").select("session_id");
  expect(await ids.where("session_key", "=", cronKey(id)).execute()).toHaveLength(2);
  expect(await second.texts(MAIN)).toEqual(["assistant: The report.", "assistant: The report."]);
  await second.stop(0);
  return true;
}

describe.each(["before", "after"] as const)("a crash %s any commit of a second run", (when) => {
  test("I4, TU4: the run and its new conversation begin once", async () => {
    let commit = 1;
    while (commit < COMMITS_MAX && (await crashAt({ commit, when }))) commit += 1;
    expect(commit, "the story has this many commits").toBeGreaterThan(5);
    expect(commit).toBeLessThan(COMMITS_MAX);
  });
});
