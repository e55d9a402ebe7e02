// Events for clients: their kinds, receivers and order, and the treatment of slow readers.

import { expect } from "vitest";
import type { GatewayError } from "../../../src/contract/client/node.ts";
import { test } from "../../kit/deep.ts";
import { whole } from "../../kit/live-text.ts";
import { fakeWorld } from "../../kit/world.ts";
import { joinedNode, pairedDevice } from "../clients/devices.ts";
import { type Frame, joined, openHouse, operatorToken, type Play } from "../kit.ts";

const ended = (runId: string) => (frame: Frame) =>
  frame.event === "chat" && frame.payload.runId === runId && frame.payload.state !== "delta";

test("reply and announce turns of two sessions are published as lifecycle events only", async () => {
  const play: Play = ({ run, text }) => {
    if (run.flow === undefined) return "ok";
    if (run.flow.step === "round1") return "answer one";
    text(whole("a draft that nobody may see"));
    return run.flow.step === "reply" ? "REPLY_SKIP" : "for the people";
  };
  const agentToAgent = { maxPingPongTurns: 2, maxHops: 16, maxChainRuns: 200 };
  const house = await openHouse({ play, choices: { session: { agentToAgent } } });
  const raw = await joined(house);
  const say = async (id: string, method: string, params: object) => {
    raw.send({ type: "req", id, method, params });
    return raw.res(id);
  };
  const target = "agent:research:main";
  await say("route", "chat.send", { sessionKey: target, message: "hi", idempotencyKey: "route" });
  await raw.next(ended("route"));
  const args = { sessionKey: target, message: "ask", timeoutSeconds: 5 };
  const sent = await say("tool", "tools.invoke", { name: "sessions_send", arguments: args });
  expect(sent.payload).toMatchObject({ status: "ok", reply: "answer one" });
  await raw.next((frame) => frame.event === "chat" && frame.payload.stopReason === "delivered");
  const agent = raw.frames.filter((frame) => frame.event === "agent").map((frame) => frame.payload);
  const stepOf = new Map<string, string>(agent.map(({ runId, data }) => [runId, data.flowStep ?? ""]));
  const chat = raw.frames.filter((frame) => frame.event === "chat").map((frame) => frame.payload);
  expect(new Set(stepOf.values())).toEqual(new Set(["", "round1", "reply", "announce"]));
  expect(
    chat.map(({ runId, state, message }) => [stepOf.get(runId), state, message.content[0].text]),
  ).toEqual([
    ["", "final", "ok"],
    ["round1", "final", "answer one"],
    ["announce", "final", "for the people"],
  ]);
  expect(JSON.stringify(raw.frames)).not.toContain("a draft");
  const flow = agent.filter(({ stream }) => stream === "flow");
  expect(flow.map(({ data }) => data.step)).toContain("announce");
});

test("if a run's answer is a skip token, its final event has no message", async () => {
  const house = await openHouse({ play: ({ run }) => (run.flow === undefined ? "ok" : "ANNOUNCE_SKIP") });
  const raw = await joined(house);
  const args = { sessionKey: "agent:research:main", message: "ask", timeoutSeconds: 5 };
  raw.send({
    type: "req",
    id: "t",
    method: "tools.invoke",
    params: { name: "sessions_send", arguments: args },
  });
  const final = await raw.next((frame) => frame.event === "chat");
  expect(final.payload).toMatchObject({ sessionKey: "agent:research:main", state: "final" });
  expect(final.payload).not.toHaveProperty("message");
});

test("an operator's note is published once, as a finished message", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.send({
    type: "req",
    id: "i",
    method: "chat.inject",
    params: { sessionKey: "main", message: "note", label: "ops" },
  });
  const { runId } = (await raw.res("i")).payload;
  const final = await raw.next(ended(runId));
  expect(final.payload).toMatchObject({
    state: "final",
    stopReason: "injected",
    message: { content: [{ text: "[ops]\n\nnote" }] },
  });
  raw.send({
    type: "req",
    id: "s",
    method: "send",
    params: { to: "main", message: "to people", idempotencyKey: "s" },
  });
  const sent = await raw.res("s");
  expect(sent.payload).toMatchObject({ messageId: expect.any(String), channel: "webchat", status: "queued" });
  await raw.next((frame) => frame.event === "chat" && JSON.stringify(frame).includes("to people"));
  const list = await (await house.client()).request("deliveries.list");
  expect(list.deliveries).toHaveLength(1);
  raw.send({ type: "req", id: "h", method: "chat.history", params: { sessionKey: "main" } });
  expect((await raw.res("h")).payload.messages).toHaveLength(2);
  const shown = raw.frames.filter(
    (frame) => frame.event === "chat" && JSON.stringify(frame).includes("to people"),
  );
  expect(shown).toHaveLength(1);
});

test("I9: events reach only the tokens that cover their session", async () => {
  const scoped = operatorToken("scoped", "operator.read", ["agent:research:*"]);
  const house = await openHouse({
    gateway: { tokens: [scoped, { token: "node", role: "node", scopes: [] }] },
  });
  const [all, research, node] = [
    await joined(house),
    await joined(house, { auth: { token: "scoped" } }),
    await joinedNode(house, await pairedDevice(house, "node"), { token: "node" }),
  ];
  for (const sessionKey of ["agent:main:main", "agent:research:main"]) {
    const params = { sessionKey, message: "x", idempotencyKey: sessionKey };
    all.send({ type: "req", id: sessionKey, method: "chat.send", params });
    await all.next(ended(sessionKey));
  }
  await research.next(ended("agent:research:main"));
  // A hint has no content. On a slow machine it arrives before the run ends.
  const about = research.frames
    .filter((frame) => frame.seq !== undefined && frame.event !== "attention")
    .map((frame) => frame.payload.sessionKey ?? frame.payload.key);
  expect(new Set(about)).toEqual(new Set(["agent:research:main"]));
  expect(node.frames.filter((frame) => frame.seq !== undefined)).toEqual([]);
});

test("`tick` and `health` are sent at intervals, and `shutdown` before a planned stop", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const raw = await joined(house);
  for (let index = 0; index < 4; index++) await world.advance(15_000);
  await raw.next((frame) => frame.event === "health");
  expect(raw.frames.filter((frame) => frame.event === "tick")).toHaveLength(4);
  void house.gateway.close({ reason: "update", restartExpectedMs: 1_000 });
  expect((await raw.next((frame) => frame.event === "shutdown")).payload).toEqual({
    reason: "update",
    restartExpectedMs: 1_000,
  });
  expect((await raw.closed()).code).toBe(1001);
  await expect(joined(house)).rejects.toThrow();
});

test("after the announcement of a stop, connected clients still get answers, and new clients are refused", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  house.gateway.announce({ reason: "update" });
  await raw.next((frame) => frame.event === "shutdown");
  raw.send({ type: "req", id: "h", method: "health" });
  expect((await raw.res("h")).ok).toBe(true);
  await expect(joined(house)).rejects.toThrow("503");
  await house.gateway.close();
  await raw.closed();
  expect(raw.frames.filter((frame) => frame.event === "shutdown")).toHaveLength(1);
});

test.deep("a slow reader is closed with 1013; other readers get all of their events", async () => {
  // Large events: the slow reader's socket is destroyed 30 s after the close frame, even if it has not read
  // that frame.
  const text = "x".repeat(200_000);
  const runs = 80;
  const world = fakeWorld();
  const house = await openHouse({ world, play: () => text, gateway: { maxBufferedBytes: 2_000_000 } });
  const [slow, quick] = [await joined(house), await joined(house)];
  slow.socket.pause();
  const client = await house.client();
  let last = "";
  for (let index = 0; index < runs; index++) {
    last = `run-${index}`;
    await client.call("chat.send", { sessionKey: "main", message: "go", idempotencyKey: last });
    await quick.next(ended(last));
  }
  slow.socket.resume();
  expect((await slow.closed()).code).toBe(1013);
  const finals = quick.frames.filter((frame) => frame.event === "chat" && frame.payload.state === "final");
  expect(finals).toHaveLength(runs);
  const numbers = quick.frames.filter((frame) => frame.seq !== undefined).map((frame) => frame.seq);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
});

test("a bug in a method gives an error with a reference number and without a stack trace", async () => {
  const world = fakeWorld({ clock: "real" });
  const house = await openHouse({ world });
  const client = await house.client();
  await house.store.close();
  const failed: GatewayError = await client.call("sessions.list", {}).then(
    () => Promise.reject(new Error("it was answered")),
    (error) => error,
  );
  expect(failed).toMatchObject({
    code: "UNAVAILABLE",
    details: { code: "internal", reference: expect.any(String) },
  });
  expect(failed.message).not.toMatch(/at |\.ts|sqlite/i);
  expect(JSON.stringify(world.logged)).toContain(failed.details.reference);
});
