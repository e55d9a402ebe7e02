// The client's event streams: filters, notices to slow readers, and ends.

import fc from "fast-check";
import { expect, test } from "vitest";
import { EventStream } from "../../../src/contract/client/event-stream.ts";
import { connect, GatewayError } from "../../../src/contract/client/node.ts";
import type { GatewayEvent } from "../../../src/contract/client/types.ts";
import type { EventFrame } from "../../../src/contract/frames.ts";
import { cleanup, temporaryFolder } from "../../kit/engine/engine.ts";
import { scriptedGateway } from "../../kit/scripted-gateway.ts";
import { openHouse } from "../kit.ts";

const ALL = { sessionKey: undefined, runId: undefined, names: undefined };

const chat = (runId: string, state: string, seq = 0, text = ""): EventFrame => ({
  type: "event",
  event: "chat",
  payload: { runId, sessionKey: `agent:${runId}:main`, seq, state, text },
});

const tool = (runId: string, seq: number): EventFrame => ({
  type: "event",
  event: "agent",
  payload: { runId, sessionKey: `agent:${runId}:main`, seq, stream: "tool", ts: 0, data: {} },
});

/** Returns the events that can be read without waiting. */
async function readNow(stream: EventStream): Promise<GatewayEvent[]> {
  stream.end();
  const read: GatewayEvent[] = [];
  for await (const event of stream) read.push(event);
  return read;
}

test("a reader of one session gets only events of that session, however the reader spells the key", async () => {
  const house = await openHouse();
  const client = await house.client();
  const mine = client.events({ sessionKey: "main", names: ["chat"] });
  const theirs = client.events({ sessionKey: "Agent:Research:MAIN" });
  await client.agent({ message: "for research", sessionKey: "agent:research:main" }).done;
  const { runId, done } = client.agent({ message: "for main" });
  await done;
  const { value } = await mine.next();
  expect(value).toMatchObject({ event: "chat", payload: { runId, sessionKey: "agent:main:main" } });
  for await (const { event, payload } of theirs) {
    expect(JSON.stringify(payload)).toContain("agent:research:main");
    if (event === "chat") break;
  }
});

test("an invalid session key is refused at once, with the list of valid forms", async () => {
  const house = await openHouse();
  const client = await house.client();
  expect(() => client.events({ sessionKey: "agent:UP CASE:x:y:z" })).toThrow(GatewayError);
  expect(() => client.events({ sessionKey: "cron:non:sense" })).toThrow(
    expect.objectContaining({
      code: "INVALID_REQUEST",
      reason: "invalid_session_key",
      hint: expect.stringContaining("agent:<agentId>:main"),
    }),
  );
});

test("ES1: a slow reader gets a notice in place of the events that it missed, and then the newest events", async () => {
  const stream = new EventStream(ALL, 8, () => {});
  for (let seq = 0; seq < 20; seq++) stream.offer(tool(seq % 2 === 0 ? "a" : "b", seq), 10);
  const [missed, ...rest] = await readNow(stream);
  const seqs = rest.map(({ payload }) => (payload as { seq: number }).seq);
  expect(missed).toEqual({
    event: "missed",
    payload: {
      reason: "slow-reader",
      events: { agent: 20 - seqs.length },
      sessionKeys: ["agent:a:main", "agent:b:main"],
    },
  });
  expect(seqs.at(-1)).toBe(19);
  expect(rest.length).toBeLessThanOrEqual(8);
});

test("ES2: a missed text is not reported if a later text replaces it", async () => {
  const stream = new EventStream(ALL, 8, () => {});
  stream.offer(tool("a", 1), 1);
  for (let seq = 0; seq < 1_000; seq++) stream.offer(chat("a", "delta", seq), 1);
  stream.offer(chat("a", "final", 1_000), 1);
  const read = await readNow(stream);
  expect(read[0]).toMatchObject({ event: "agent", payload: { seq: 1 } });
  expect(read.at(-1)).toMatchObject({ payload: { state: "final" } });
  expect(read.filter(({ event }) => event === "missed")).toEqual([]);
});

test("ES1: waiting events are limited by size, but the newest one is always kept", async () => {
  const stream = new EventStream(ALL, 1_000, () => {});
  for (let seq = 0; seq < 50; seq++) stream.offer(tool("a", seq), 1024 * 1024);
  stream.offer(tool("a", 50), 100 * 1024 * 1024);
  const read = await readNow(stream);
  expect(read).toHaveLength(2);
  expect(read).toMatchObject([{ payload: { events: { agent: 50 } } }, { payload: { seq: 50 } }]);
});

test("ES1: in any order of events and reads, no event is lost without notice, repeated or reordered", async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom("tool" as const, "delta" as const, "final" as const) },
    { weight: 1, arbitrary: fc.constant("read" as const) },
  );
  const story = fc.asyncProperty(
    fc.array(step, { maxLength: 200 }),
    fc.integer({ min: 1, max: 12 }),
    async (steps, bufferMax) => {
      const stream = new EventStream(ALL, bufferMax, () => {});
      const read: GatewayEvent[] = [];
      const unread: Promise<unknown>[] = [];
      let offered = 0;
      let lasting = 0;
      for (const one of steps) {
        if (one === "read") {
          unread.push(stream.next().then(({ value }) => value !== undefined && read.push(value)));
          continue;
        }
        stream.offer(one === "tool" ? tool("a", offered) : chat("a", one, offered), 1);
        offered++;
        if (one !== "delta") lasting++;
      }
      stream.end();
      await Promise.all(unread);
      for await (const event of stream) read.push(event);
      const told = read.filter(({ event }) => event !== "missed");
      const seqs = told.map(({ payload }) => (payload as { seq: number }).seq);
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      const missed = read.flatMap(({ event, payload }) =>
        event === "missed" ? Object.values(payload.events) : [],
      );
      const gone = missed.reduce((sum, count) => sum + count, 0);
      const toldLasting = told.filter(
        ({ payload }) => (payload as { state?: string }).state !== "delta",
      ).length;
      expect(toldLasting + gone).toBeGreaterThanOrEqual(lasting);
      expect(told.length + gone).toBeLessThanOrEqual(offered);
    },
  );
  await fc.assert(story, { numRuns: 300 });
});

test("ES3: when the events end for any reason, a pending read is answered", async () => {
  const house = await openHouse();
  const [closing, breaking] = [await house.client(), await house.client()];
  const over = new AbortController();
  const bySignal = closing.events({ signal: over.signal }).next();
  over.abort();
  expect(await bySignal).toEqual({ done: true, value: undefined });
  const returned = closing.events();
  const pending = returned.next();
  await returned.return?.();
  expect(await pending).toMatchObject({ done: true });
  const byClose = closing.events().next();
  closing.close();
  expect(await byClose).toMatchObject({ done: true });
  expect(await closing.events().next()).toMatchObject({ done: true });
  const broken = breaking.events({ names: ["chat"] }).next();
  await house.gateway.close();
  await expect(broken).rejects.toMatchObject({ code: "CLOSED" });
});

test("CL2: a reader continues after a restart of the gateway, and is notified of the restart", async () => {
  const dir = temporaryFolder();
  const first = await openHouse({ dir });
  const client = await first.client({ reconnect: true });
  const events = client.events({ sessionKey: "main", names: ["chat"] });
  const before = client.agent({ message: "before" });
  await before.done;
  await first.stop();
  await openHouse({ dir, gateway: { port: first.port } });
  const after = client.agent({ message: "after" });
  await after.done;
  const read: unknown[] = [];
  for await (const { event, payload } of events) {
    read.push(event === "missed" ? payload.reason : payload.runId);
    if (event === "chat" && payload.runId === after.runId) break;
  }
  expect(read).toEqual([before.runId, "reconnect", after.runId]);
});

test("an event that this client does not know, of a feature, reaches listeners and readers", async () => {
  const gateway = await scriptedGateway();
  const client = await connect({ url: gateway.url, reconnect: false });
  cleanup(() => client.close());
  const names: string[] = [];
  client.onEvent(({ event }) => names.push(event));
  const events = client.events();
  gateway.event("of.tomorrow", { x: 1 });
  gateway.event("tick", { ts: 7 });
  const unknown = { event: "of.tomorrow", payload: { x: 1 } };
  expect(await events.next()).toEqual({ done: false, value: unknown });
  expect(await events.next()).toEqual({ done: false, value: { event: "tick", payload: { ts: 7 } } });
  expect(names).toEqual(["of.tomorrow", "tick"]);
});

test("an event that arrives together with the greeting reaches listeners that are added right after connecting", async () => {
  const gateway = await scriptedGateway("tick");
  const client = await connect({ url: gateway.url, reconnect: false });
  cleanup(() => client.close());
  const heard: string[] = [];
  client.onEvent(({ event }) => heard.push(`first ${event}`));
  client.onEvent(({ event }) => heard.push(`second ${event}`));
  const answer = client.call("anything");
  (await gateway.request()).answer({});
  await answer;
  gateway.event("shutdown", {});
  await expect.poll(() => heard.at(-1)).toBe("second shutdown");
  expect(heard).toEqual(["first tick", "second tick", "first shutdown", "second shutdown"]);
});
