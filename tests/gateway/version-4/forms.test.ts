// Clients of protocol version 4: methods that they call in another form, or under another name.

import { expect, test } from "vitest";
import { type House, joined, openHouse, type Raw } from "../kit.ts";

const HOUR_MS = 3_600_000;
const V4 = { minProtocol: 4, maxProtocol: 4 };

async function clientOf(house: House, more: object = {}) {
  const raw: Raw = await joined(house, { ...V4, ...more });
  let count = 0;
  return async (method: string, params: object = {}) => {
    const id = `request-${++count}`;
    raw.send({ type: "req", id, method, params });
    return raw.res(id);
  };
}

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

test("log lines are texts, and a numeric cursor continues after them", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const { cursor, lines } = (await ask("logs.tail", { limit: 5, maxBytes: 10_000 })).payload as {
    cursor: number;
    lines: string[];
  };
  expect(lines.every((line) => typeof JSON.parse(line).message === "string")).toBe(true);
  const later = await ask("logs.tail", { cursor });
  expect(later.payload).toMatchObject({ reset: false });
  const earlier = await ask("logs.tail", { cursor: 1_000_000 });
  expect(earlier.payload).toMatchObject({ reset: true });
});

test("channels, devices and nodes are listed with the rights of reading, however the client names them", async () => {
  const house = await openHouse();
  const ask = await clientOf(house, { scopes: ["operator.pairing"] });
  expect((await ask("channels.status", { probe: false })).payload).toMatchObject({
    channelOrder: ["webchat"],
    channelAccounts: { webchat: [{ accountId: "default", configured: true, connected: true }] },
  });
  expect((await ask("device.pair.list")).payload).toEqual({ pending: [], paired: [] });
  expect((await ask("cron.add", tea())).error?.message).toContain("operator.admin");
});
