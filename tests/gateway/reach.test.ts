// I9 from every side: what a token with key patterns may learn, and what it may not.

import { expect, test } from "vitest";
import { joined, openHouse } from "./kit.ts";

const scoped = {
  token: "scoped",
  role: "operator" as const,
  scopes: ["operator.admin" as const],
  sessions: ["agent:research:*"],
};

test("I9: events of a conversation name to a scoped token only the party that it covers", async () => {
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

test("within a run seq rises, also where its flow tells of it before it begins", async () => {
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

test("I9: a row names the spawner of a session only to those who may see it", async () => {
  const house = await openHouse({ gateway: { tokens: [scoped] } });
  await house.store.transaction((tx) =>
    tx
      .updateTable("sessions")
      .set({ spawned_by: "agent:main:main" })
      .where("key", "=", "agent:research:main")
      .execute(),
  );
  const client = await house.client({ token: "scoped" });
  const list = await client.call("sessions.list", {});
  expect(JSON.stringify(list)).toContain("agent:research:main");
  expect(JSON.stringify(list)).not.toContain("agent:main:main");
  const patched = await client.call("sessions.patch", { key: "agent:research:main", label: "x" });
  expect(JSON.stringify(patched)).not.toContain("agent:main:main");
  expect(JSON.stringify(await (await house.client()).call("sessions.list", {}))).toContain(
    '"spawnedBy":"agent:main:main"',
  );
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

test("a message for one agent is not given to a session of another", async () => {
  const house = await openHouse();
  const client = await house.client();
  const params = { message: "x", agentId: "research", sessionKey: "agent:main:main", idempotencyKey: "a" };
  await expect(client.call("agent", params)).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  const fits = { ...params, sessionKey: "agent:research:main" };
  expect(await client.call("agent", fits)).toMatchObject({ sessionKey: "agent:research:main" });
});
