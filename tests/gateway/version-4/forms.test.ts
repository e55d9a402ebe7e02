// Clients of protocol version 4: methods that they call in another form, or under another name.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LogTail } from "../../../src/world/log-tail.ts";
import { temporaryFolder } from "../../kit/cleanup.ts";
import { fakeWorld } from "../../kit/world.ts";
import { agentSettings } from "../../tools/app.ts";
import { openHouse } from "../kit.ts";
import { clientOf, V4 } from "./client.ts";

const HOUR_MS = 3_600_000;

const tea = (more: object = {}) => ({
  name: "tea",
  schedule: { kind: "every", everyMs: HOUR_MS },
  sessionTarget: "isolated",
  wakeMode: "now",
  payload: { kind: "agentTurn", message: "make tea" },
  delivery: { mode: "none" },
  ...more,
});

test("a job is added, changed, run, listed by offset and removed in the form of version 4", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const added = (await ask("cron.add", tea())).payload as { id: string };
  expect(added).toMatchObject({
    agentId: "main",
    name: "tea",
    enabled: true,
    schedule: { kind: "every", everyMs: HOUR_MS },
    sessionTarget: "isolated",
    payload: { kind: "agentTurn", message: "make tea" },
    delivery: { mode: "none" },
  });
  const at = "2100-01-31T09:00:00.000Z";
  const once = await ask("cron.add", tea({ name: "once", schedule: { kind: "at", at } }));
  expect(once.payload).toMatchObject({ schedule: { kind: "at", at }, nextRunAtMs: Date.parse(at) });
  const first = (await ask("cron.list", { includeDisabled: true, limit: 1, offset: 0 })).payload as {
    jobs: { id: string }[];
    snapshotRevision: string;
  };
  expect(first).toMatchObject({ total: 2, offset: 0, limit: 1, hasMore: true, nextOffset: 1 });
  const second = await ask("cron.list", { limit: 1, offset: 1 });
  const { snapshotRevision } = first;
  expect(second.payload).toMatchObject({ offset: 1, hasMore: false, nextOffset: null, snapshotRevision });
  expect((second.payload as typeof first).jobs.concat(first.jobs).map(({ id }) => id)).toContain(added.id);
  const { nextWakeAtMs, ...status } = (await ask("cron.status")).payload as { nextWakeAtMs: number };
  expect(status).toEqual({ enabled: true, jobs: 2 });
  expect(nextWakeAtMs).toBeLessThan(Date.parse(at));
  const started = (await ask("cron.run", { id: added.id, mode: "force" })).payload as { runId: string };
  expect(started).toMatchObject({ ok: true, enqueued: true });
  expect(await ask("agent.wait", { runId: started.runId })).toMatchObject({ payload: { status: "ok" } });
  const entries = [{ jobId: added.id, runId: started.runId, status: "ok", action: "finished" }];
  expect((await ask("cron.runs", { jobId: added.id })).payload).toMatchObject({ entries, total: 1 });
  const patch = { enabled: false, payload: { kind: "agentTurn", message: "make coffee" } };
  const changed = await ask("cron.update", { jobId: added.id, patch });
  expect(changed.payload).toMatchObject({ enabled: false, payload: { message: "make coffee" }, name: "tea" });
  expect((await ask("cron.get", { id: added.id })).payload).toMatchObject({
    state: { lastStatus: "ok" },
    payload: { message: "make coffee" },
  });
  expect(await ask("cron.remove", { jobId: added.id })).toMatchObject({ ok: true });
  expect((await ask("cron.get", { id: added.id })).error?.details).toMatchObject({
    code: "cron_job_not_found",
  });
});

test.each([
  ["sessionTarget", { sessionTarget: "main" }, "session of its own"],
  ["payload", { payload: { kind: "systemEvent", text: "wake up" } }, "sends a message to an agent"],
  ["payload", { payload: { kind: "command", argv: ["rm"] } }, "sends a message to an agent"],
  ["delivery", { delivery: { mode: "webhook", to: "https://example.com" } }, "chat or nowhere"],
  ["delivery.to", { delivery: { mode: "announce", channel: "telegram" } }, "delivery.to is missing"],
  ["schedule.at", { schedule: { kind: "at", at: "tomorrow" } }, "not a date"],
  ["trigger", { trigger: { script: "true" } }, "no trigger"],
])("CF1: a job whose %s cannot be kept is refused in words: %j", async (_name, more, words) => {
  const ask = await clientOf(await openHouse());
  const refused = await ask("cron.add", tea(more));
  expect(refused.error).toMatchObject({ code: "INVALID_REQUEST" });
  expect(refused.error?.message).toContain(words);
  expect((await ask("cron.list")).payload).toMatchObject({ jobs: [], total: 0 });
});

test("an announced job delivers to the named chat, else to the last place of the main session", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  await ask("chat.send", { sessionKey: "main", message: "hello", idempotencyKey: "one" });
  const added = await ask("cron.add", tea({ delivery: { mode: "announce", channel: "last" } }));
  expect(added.payload).toMatchObject({ delivery: { channel: "last", to: "agent:main:main" } });
});

test("log lines are texts within a limit of bytes, and a numeric cursor continues after them", async () => {
  const logTail = new LogTail();
  const ask = await clientOf(await openHouse({ world: { ...fakeWorld({ clock: "real" }), logTail } }));
  const say = (msg: string) => logTail.write(`${JSON.stringify({ level: 30, time: 1_000, msg })}\n`);
  const read = async (params: object) => {
    const page = (await ask("logs.tail", params)).payload as { cursor: number; lines: string[] };
    return { ...page, lines: page.lines.map((line) => JSON.parse(line) as object) };
  };
  for (const msg of ["one", "two", "three"]) say(msg);
  const time = "1970-01-01T00:00:01.000Z";
  const [one, two, three, four] = ["one", "two", "three", "four"].map((message) => {
    return { time, level: "info", message };
  });
  const first = await read({ limit: 5 });
  expect(first).toMatchObject({ lines: [one, two, three], truncated: false, reset: false });
  const bytes = Buffer.byteLength(JSON.stringify(two) + JSON.stringify(three));
  expect(await read({ maxBytes: bytes })).toMatchObject({ lines: [two, three], truncated: true });
  say("four");
  expect(await read({ cursor: first.cursor })).toMatchObject({ lines: [four], reset: false });
  // A cursor of an earlier process, whose log was longer.
  const earlier = await read({ cursor: 1_000_000 });
  expect(earlier).toMatchObject({ lines: [one, two, three, four], reset: true });
});

test("an agent's skills are listed as ready, and there are no hooks", async () => {
  const workspace = temporaryFolder();
  const folder = join(workspace, ".agents", "skills", "brew");
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "SKILL.md"),
    "---\nname: brew\ndescription: Brewing tea.\n---\nUse hot water.\n",
  );
  const house = await openHouse({ choices: { agents: [agentSettings("main", { workspace })] } });
  const ask = await clientOf(house);
  for (const params of [{}, { agentId: "main" }])
    expect((await ask("skills.status", params)).payload.skills).toMatchObject([
      { name: "brew", description: "Brewing tea.", baseDir: folder, eligible: true, missing: { bins: [] } },
    ]);
  expect((await ask("skills.status", { agentId: "nobody" })).error?.details).toMatchObject({
    code: "agent_not_found",
  });
  expect((await ask("hooks.status", { agentId: "main" })).payload).toMatchObject({ hooks: [] });
});

test("message.action sends a text to a place, and refuses other actions and files in words", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  await ask("chat.send", { sessionKey: "main", message: "hello", idempotencyKey: "one" });
  const action = { channel: "webchat", action: "send", idempotencyKey: "two" };
  const params = { to: "main", message: "the build is done" };
  const sent = await ask("message.action", { ...action, params });
  expect(sent.payload).toMatchObject({ channel: "webchat", status: "queued", sessionKey: "agent:main:main" });
  for (const more of [{ action: "react" }, { params: { ...params, media: "/etc/passwd" } }]) {
    const refused = await ask("message.action", { ...action, params, ...more, idempotencyKey: "three" });
    expect(refused.error?.message).toContain("can only send a text");
  }
});

test("channels, devices and nodes are listed with the rights of reading, however the client names them", async () => {
  const house = await openHouse();
  const ask = await clientOf(house, { ...V4, scopes: ["operator.pairing"] });
  expect((await ask("channels.status", { probe: false })).payload).toMatchObject({
    channelOrder: ["webchat"],
    channelAccounts: { webchat: [{ accountId: "default", configured: true, connected: true }] },
  });
  expect((await ask("device.pair.list")).payload).toEqual({ pending: [], paired: [] });
  expect((await ask("cron.add", tea())).error?.message).toContain("operator.admin");
});
