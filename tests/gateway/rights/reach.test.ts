// I9: the information that a token with key patterns may and may not get.

import { expect, test } from "vitest";
import { insertBinding } from "../../../src/store/queries/channels/thread-bindings.ts";
import type { Tx } from "../../../src/store/sql.ts";
import { fakeWorld } from "../../kit/world.ts";
import { joined, openHouse, operatorToken } from "../kit.ts";

const scoped = operatorToken("scoped", "operator.admin", ["agent:research:*"]);

test("I9: events of a conversation show a scoped token only the party that it covers", async () => {
  const agentToAgent = { maxPingPongTurns: 1, maxHops: 16, maxChainRuns: 200 };
  const house = await openHouse({ gateway: { tokens: [scoped] }, choices: { session: { agentToAgent } } });
  const [all, research] = [await joined(house), await joined(house, { auth: { token: "scoped" } })];
  const args = { sessionKey: "agent:research:main", message: "ask", timeoutSeconds: 5 };
  all.send({
    type: "req",
    id: "t",
    method: "tools.invoke",
    params: { name: "sessions_send", arguments: args },
  });
  await all.res("t");
  const flow = await research.next((frame) => frame.event === "agent" && frame.payload.stream === "flow");
  expect(flow.payload.data).toMatchObject({ to: "agent:research:main" });
  await research.next((frame) => frame.event === "agent" && frame.payload.data.step === "ended");
  const told = research.frames.filter((frame) => frame.seq !== undefined);
  expect(JSON.stringify(told)).not.toContain("agent:main:main");
  expect(JSON.stringify(told)).toContain('"from":"(not visible)"');
  const events = all.frames.filter((frame) => frame.event === "agent" && frame.payload.stream === "flow");
  expect(JSON.stringify(events)).not.toContain("not visible");
});

test("seq increases within a run, even if its flow publishes events before the run begins", async () => {
  const agentToAgent = { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200 };
  const house = await openHouse({ choices: { session: { agentToAgent } } });
  const raw = await joined(house);
  const args = { sessionKey: "agent:research:main", message: "ask", timeoutSeconds: 5 };
  raw.send({
    type: "req",
    id: "t",
    method: "tools.invoke",
    params: { name: "sessions_send", arguments: args },
  });
  await raw.next((frame) => frame.event === "agent" && frame.payload.data.step === "ended");
  const numbers = new Map<string, number[]>();
  for (const { event, payload } of raw.frames) {
    if (event !== "agent" && event !== "chat") continue;
    numbers.set(payload.runId, [...(numbers.get(payload.runId) ?? []), payload.seq]);
  }
  expect(numbers.size).toBeGreaterThan(2);
  for (const [runId, seen] of numbers) expect(seen, runId).toEqual(seen.toSorted((a, b) => a - b));
});

test("the outbox of a session is found by any spelling of its key", async () => {
  const house = await openHouse();
  const client = await house.client();
  await client.call("send", { to: "main", message: "x", idempotencyKey: "s" });
  const list = await client.call("deliveries.list", { sessionKey: "main" });
  expect(list).toMatchObject({ count: 1 });
  await expect(client.call("deliveries.list", { cursor: "made up" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
  });
});

test("a message for one agent is not given to a session of another agent", async () => {
  const house = await openHouse();
  const client = await house.client();
  const params = { message: "x", agentId: "research", sessionKey: "agent:main:main", idempotencyKey: "a" };
  await expect(client.call("agent", params)).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  const fits = { ...params, sessionKey: "agent:research:main" };
  expect(await client.call("agent", fits)).toMatchObject({ sessionKey: "agent:research:main" });
});

test("I9: a scoped token sees neither the amount of work nor the connected clients", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world, gateway: { tokens: [scoped] } });
  const all = await joined(house);
  const raw = await joined(house, { auth: { token: "scoped" } });
  const { snapshot } = (await raw.res("hello")).payload;
  expect(snapshot.presence).toHaveLength(1);
  expect(snapshot).not.toHaveProperty("stateDir");
  expect(snapshot.health).not.toHaveProperty("lanes");
  expect(snapshot.health).not.toHaveProperty("deliveries");
  raw.send({ type: "req", id: "s", method: "status" });
  const status = (await raw.res("s")).payload;
  for (const field of ["connections", "lanes", "deliveries"]) expect(status).not.toHaveProperty(field);
  for (let index = 0; index < 4; index++) await world.advance(15_000);
  await all.next((frame) => frame.event === "health");
  await all.next((frame) => frame.event === "presence");
  await raw.next((frame) => frame.event === "tick");
  const told = raw.frames.filter((frame) => frame.seq !== undefined).map((frame) => frame.event);
  expect(new Set(told)).toEqual(new Set(["tick"]));
});

test("if a client disconnects, it is no longer counted and gets no more events", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const [stays, leaves] = [await joined(house), await joined(house)];
  leaves.socket.close();
  await leaves.closed();
  await world.advance(1_000);
  await stays.next((frame) => frame.event === "presence" && frame.payload.presence.length === 1);
  stays.send({ type: "req", id: "s", method: "status" });
  expect((await stays.res("s")).payload.connections).toBe(1);
});

test("E1: no event of the engine shows the text of a reply turn", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  const run = { runId: "r", sessionKey: "agent:main:main" };
  const { bus } = house.engine;
  bus.publish({
    ...run,
    kind: "run_started",
    chainId: "c",
    startedAt: house.engine.now(),
    flowStep: "reply",
  });
  bus.publish({ ...run, kind: "text", part: "1.0", offset: 0, text: "a draft" });
  bus.publish({ kind: "session", sessionKey: "agent:main:main", change: "updated" });
  await raw.next((frame) => frame.event === "sessions");
  const told = raw.frames.filter((frame) => frame.seq !== undefined).map((frame) => frame.event);
  // Presence and attention hints have no text, and come at their own times.
  const isTimed = (event: string | undefined) => event !== "presence" && event !== "attention";
  expect(told.filter(isTimed)).toEqual(["agent", "sessions"]);
});

test("I9: a token gets every binding that it covers, however many other bindings there are", async () => {
  const house = await openHouse({ gateway: { tokens: [scoped] } });
  const times = { usedAt: 1, idleMs: 0, maxAgeMs: 0 };
  const bind = (tx: Tx, to: string, sessionKey: string, createdAt: number) =>
    insertBinding(tx, { route: { channel: "telegram", to }, sessionKey, kind: "bound", createdAt, ...times });
  await house.store.transaction(async (tx) => {
    await bind(tx, "mine", "agent:research:main", 1);
    for (let made = 0; made < 1_000; made += 1) await bind(tx, `${made}`, `agent:main:chat:${made}`, 2);
  });
  const client = await house.client({ token: "scoped" });
  const { bindings } = await client.request("bindings.list", {});
  expect(bindings.map(({ route }) => route.to)).toEqual(["mine"]);
});
