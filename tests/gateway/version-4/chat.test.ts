// Clients of protocol version 4 hold a chat: agents, messages, receipts of inputs, and permission requests.

import { expect, test } from "vitest";
import type { LaneHandle } from "../../../src/engine/run/execution.ts";
import { getRun } from "../../../src/store/queries/runs/runs.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { askIn } from "../../kit/engine/asking.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { type House, joined, openHouse, quiet } from "../kit.ts";
import { clientOf, V4 } from "./client.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

test("agents have their model as an object, and messages are read and watched by their session's key", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const { payload: listed } = await ask("agents.list", {});
  expect(listed.agents[0]).toMatchObject({ id: "main", model: { primary: expect.stringContaining("/") } });
  await ask("chat.send", { sessionKey: MAIN, message: "hello", idempotencyKey: "one" });
  await ask("agent.wait", { runId: "one" });
  const { payload: read } = await ask("sessions.get", { key: MAIN, limit: 1 });
  expect(read.messages).toMatchObject([{ role: "assistant", content: [{ text: "echo hello" }] }]);
  expect((await ask("sessions.get", { key: "agent:none:main" })).ok).toBe(false);
  expect((await ask("sessions.messages.subscribe", { key: MAIN, includeApprovals: true })).payload).toEqual({
    subscribed: true,
    key: MAIN,
  });
  expect((await ask("sessions.messages.unsubscribe", { key: "agent:none:main" })).payload).toEqual({
    subscribed: false,
    key: "agent:none:main",
  });
});

test("chat.history names the inputs that are in the transcript, and those that still wait", async () => {
  const hold = Promise.withResolvers<void>();
  const play = async () => {
    await hold.promise;
    return "done";
  };
  const house = await openHouse({ play });
  const ask = await clientOf(house);
  for (const id of ["one", "two"])
    await ask("chat.send", { sessionKey: MAIN, message: `say ${id}`, idempotencyKey: id });
  const receipts = async (method: string) => {
    const inputRunIds = ["one", "two", "three"];
    return (await ask(method, { sessionKey: MAIN, inputRunIds })).payload.inputReceipts;
  };
  await expect
    .poll(() => receipts("chat.history"))
    .toEqual([
      { runId: "one", state: "consumed", consumedByEventId: expect.any(String) },
      { runId: "two", state: "pending" },
    ]);
  hold.resolve();
  await quiet(house);
  expect((await receipts("chat.startup")).map(({ state }: { state: string }) => state)).toEqual([
    "consumed",
    "consumed",
  ]);
});

test("a live message and the history have the ids by which a client joins them with what it sent", async () => {
  const house = await openHouse();
  const owner = await joined(house, V4);
  const ask = await clientOf(house);
  await ask("chat.send", { sessionKey: MAIN, message: "hello", idempotencyKey: "one" });
  await owner.next(
    ({ payload }) => payload?.message?.stopReason === "stop" && payload.messageId !== undefined,
  );
  const identities = (messages: Record<string, unknown>[]) =>
    messages.map(({ role, idempotencyKey, __openclaw, stopReason }) => {
      return { role, idempotencyKey, stopReason, ...(__openclaw as object) };
    });
  const messages = owner.frames.filter(({ event }) => event === "session.message");
  const live = messages.map(({ payload }) => payload.message);
  const [input, answer] = messages.map(({ payload }) => payload.messageId);
  expect(identities(live)).toEqual([
    { role: "user", idempotencyKey: "one:user", stopReason: undefined, id: input, runId: "one" },
    { role: "assistant", idempotencyKey: undefined, stopReason: "stop", id: answer, runId: "one" },
  ]);
  for (const [method, params] of [
    ["chat.history", { sessionKey: MAIN }],
    ["chat.startup", { sessionKey: MAIN, inputRunIds: ["one"] }],
    ["sessions.get", { key: MAIN }],
  ] as const)
    expect(identities((await ask(method, params)).payload.messages)).toEqual(identities(live));
});

test("I9, I14, E1: a client gets each message of its sessions, redacted, and none of a quiet turn", async () => {
  const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
  const play = ({ run }: LaneHandle) => {
    if (run.flow !== undefined && run.flow.step !== "round1") return "ANNOUNCE_SKIP";
    return run.input.text.includes(key) ? `stored ${key}` : "nothing";
  };
  const token = "a-token-for-one-session";
  const narrow = { token, role: "operator", scopes: ["operator.read"], sessions: [MAIN] } as const;
  const house = await openHouse({ play, gateway: { tokens: [narrow] } });
  const [owner, other] = [await joined(house, V4), await joined(house, { ...V4, auth: { token } })];
  const strict = await joined(house);
  const say = async (sessionKey: string, text: string) => {
    const accepted = await house.engine.accept({ sessionKey, input: { text } });
    if (!accepted.ok) throw new Error(accepted.error);
    await quiet(house);
  };
  await say(RESEARCH, `keep ${key}`);
  const ask = await clientOf(house);
  const args = { sessionKey: RESEARCH, message: "what is new?", timeoutSeconds: 5 };
  await ask("tools.invoke", { name: "sessions_send", arguments: args, sessionKey: MAIN });
  await quiet(house);
  await say(MAIN, "the last one");
  const last = (frame: { event?: string; payload?: unknown }) =>
    frame.event === "chat" && JSON.stringify(frame.payload).includes("nothing");
  const heardBy = async (raw: typeof owner) => {
    await raw.next((frame) => last(frame) && frame.payload.sessionKey === MAIN);
    return raw.frames
      .filter((frame) => frame.event === "session.message")
      .map(({ payload: { sessionKey, message } }) => [sessionKey, message.role, message.content[0].text]);
  };
  const heard = await heardBy(owner);
  expect(heard[0]).toEqual([RESEARCH, "user", expect.not.stringContaining(key)]);
  expect(heard[1]).toEqual([RESEARCH, "assistant", expect.stringMatching(/^stored (?!sk-ant-api03-abc)/)]);
  expect(heard).toContainEqual([RESEARCH, "user", expect.stringContaining("what is new?")]);
  expect(heard).toContainEqual([RESEARCH, "assistant", "nothing"]);
  expect(JSON.stringify(heard)).not.toContain("ANNOUNCE_SKIP");
  expect(await heardBy(other)).toEqual([
    [MAIN, "user", "the last one"],
    [MAIN, "assistant", "nothing"],
  ]);
  expect(await heardBy(strict)).toEqual([]);
});

test("a session and its messages name the chat, with its thread", async () => {
  const house = await openHouse();
  const { engine } = house;
  const owner = await joined(house, V4);
  const ask = await clientOf(house);
  const routes = [
    { channel: "telegram", to: "-100", accountId: "default", threadId: "7" },
    { channel: "webchat", to: MAIN },
  ];
  const shown = [
    { lastChannel: "telegram", lastTo: "-100", lastAccountId: "default", lastThreadId: "7" },
    { lastChannel: "webchat", lastTo: MAIN },
  ];
  for (const [at, lastRoute] of routes.entries()) {
    await engine.commit((unit) => updateSession(unit.tx, MAIN, { lastRoute }));
    const { payload: described } = await ask("sessions.describe", { key: MAIN });
    expect(described.session).toMatchObject({ ...shown[at], deliveryContext: lastRoute });
    const accepted = await engine.accept({
      sessionKey: MAIN,
      input: { text: `say ${at}` },
      route: lastRoute,
    });
    if (!accepted.ok) throw new Error(accepted.error);
    await quiet(house);
  }
  await owner.next(
    ({ event, payload }) => event === "session.message" && payload.message.content[0].text === "echo say 1",
  );
  const messages = owner.frames.filter(({ event }) => event === "session.message");
  const places = messages.map(
    ({ payload: { sessionKey: _, sessionId: _id, messageId: _m, message: _t, ...place } }) => place,
  );
  expect(places).toEqual([shown[0], shown[0], shown[1], shown[1]]);
});

test("I9: permission requests are listed, announced and answered in the form of version 4", async () => {
  const world = quietWorld();
  const play = async (handle: LaneHandle) => {
    const { engine } = await house;
    const { text: title } = handle.run.input;
    return askIn({ engine }, handle, { title });
  };
  const token = "a-token-for-another-session";
  const narrow = { token, role: "operator", scopes: ["operator.read"], sessions: [RESEARCH] } as const;
  const house: Promise<House> = openHouse({ world, play, gateway: { tokens: [narrow] } });
  const { engine } = await house;
  const ask = await clientOf(await house);
  const owner = await joined(await house, V4);
  const others = [await joined(await house, { ...V4, auth: { token } }), await joined(await house)];
  for (const [decision, answered] of [
    ["allow-once", "allow"],
    ["deny", "deny"],
  ] as const) {
    const accepted = await engine.accept({ sessionKey: MAIN, input: { text: "delete the build" } });
    if (!accepted.ok) throw new Error(accepted.error);
    const [open] = await until(async () => {
      const { payload } = await ask("exec.approval.list", {});
      return payload.length === 1 && payload;
    });
    expect(open).toMatchObject({
      id: expect.any(String),
      request: { command: "delete the build", agentId: "main", sessionKey: MAIN },
    });
    expect(open.expiresAtMs - open.createdAtMs).toBe(600_000);
    const ofThis = (event: string) => (frame: { event?: string; payload?: { id?: unknown } }) =>
      frame.event === event && frame.payload?.id === open.id;
    expect((await owner.next(ofThis("exec.approval.requested"))).payload).toEqual(open);
    const wrong = await ask("exec.approval.resolve", { id: open.id, decision: "maybe" });
    expect(wrong.error?.message).toBe("decision must be one of allow-once, allow-always, deny");
    expect((await ask("exec.approval.resolve", { id: open.id, decision })).ok).toBe(true);
    const resolved = await owner.next(ofThis("exec.approval.resolved"));
    expect(resolved.payload).toEqual({ id: open.id, decision });
    const { runId } = accepted.value.run;
    await ask("agent.wait", { runId });
    expect(await getRun((await house).store.db, runId)).toMatchObject({ state: "ok", reply: answered });
  }
  const stopped = await engine.accept({ sessionKey: MAIN, input: { text: "delete all" } });
  if (!stopped.ok) throw new Error(stopped.error);
  const { id } = (await owner.next((frame) => frame.payload?.request?.command === "delete all")).payload;
  await ask("chat.abort", { sessionKey: MAIN });
  const gone = await owner.next(
    (frame) => frame.event === "exec.approval.resolved" && frame.payload.id === id,
  );
  expect(gone.payload).toEqual({ id });
  const heard = (raw: typeof owner) =>
    raw.frames.filter(({ event = "" }) => event.startsWith("exec.approval")).length;
  expect([owner, ...others].map(heard)).toEqual([6, 0, 0]);
});
