// Events of a node over real sockets: which events start a run, in which session, and how often.

import { expect, test } from "vitest";
import { joinedNode, NODE_TOKENS, pairedDevice, said } from "../../gateway/clients/devices.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { fakeWorld, settableWorld } from "../../kit/world.ts";

const gateway = { tokens: NODE_TOKENS };

const plainSession = async (house: House): Promise<string[]> => {
  const rows = await house.store.db.selectFrom("sessions").select("key").execute();
  return rows.map(({ key }) => key).filter((key) => key.startsWith("node-"));
};

test("NO1: an event starts one run in the node's own session, even if the event is sent twice", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  const words = { message: "is anybody there?", thinking: "low", timeoutSeconds: 60 };
  const first = await said(raw, "agent.request", words, { idempotencyKey: "event-1" });
  const second = await said(raw, "agent.request", words, { idempotencyKey: "event-1" });
  expect(first.payload).toMatchObject({ ok: true, handled: true, sessionKey: `node-${key.id}` });
  expect(second.payload).toEqual(first.payload);
  const spoken = await said(raw, "voice.transcript", { text: "turn it off" });
  expect(spoken.payload).toMatchObject({ handled: true });
  const runs = await house.store.db.selectFrom("runs").selectAll().execute();
  expect(runs).toHaveLength(2);
  expect(runs.map(({ input_json }) => JSON.parse(input_json).context.split("\n")[0])).toEqual([
    "Node context",
    "Node context",
  ]);
  expect(await plainSession(house)).toEqual([`node-${key.id}`]);
  // The idempotency keys of another node are separate.
  const other = await joinedNode(house, await pairedDevice(house));
  const theirs = await said(other, "agent.request", words, { idempotencyKey: "event-1" });
  expect(theirs.payload.runId).not.toBe(first.payload.runId);
});

test("unknown and malformed events start no run", async () => {
  const house = await openHouse({ gateway });
  const raw = await joinedNode(house, await pairedDevice(house));
  const keys = () => house.store.db.selectFrom("idempotency").select("key").execute();
  const before = await keys();
  for (const event of ["exec.finished", "chat.subscribe", "toString", "__proto__"]) {
    const told = await said(raw, event, { message: "x" }, { idempotencyKey: event });
    expect(told.payload).toEqual({ ok: true, handled: false });
  }
  const wrong: [unknown, object?][] = [
    [{}],
    [{ message: "" }],
    [{ message: 7 }],
    [{ message: "\ud800" }],
    [{ message: "x".repeat(100_001) }],
    [{ message: "x", timeoutSeconds: -1 }],
    [{ message: "x", thinking: "very" }],
    [[]],
    ["text"],
    [undefined, { payloadJSON: "{" }],
    [undefined, { payloadJSON: `{"message":"x","a":${"[".repeat(5_000)}${"]".repeat(5_000)}}` }],
    [{ message: "x", sessionKey: "cron:not:a:key" }],
  ];
  for (const [payload, more] of wrong) {
    const { error } = await said(raw, "agent.request", payload, more);
    expect({ payload, code: error?.code }).toEqual({ payload, code: "INVALID_REQUEST" });
  }
  expect(await house.store.db.selectFrom("runs").select("run_id").execute()).toEqual([]);
  // Nothing of a refused event is stored, so refused events cannot fill the store.
  expect(await keys()).toEqual(before);
});

test("NO1, I9: an event writes to another session only if the token's patterns cover it, and never creates one", async () => {
  const nodes = { allowedSessionKeys: ["agent:research:*", "node-*", "hook:*"] };
  const house = await openHouse({ gateway, choices: { features: { nodes } } });
  const raw = await joinedNode(house, await pairedDevice(house));
  const to = async (sessionKey: string, more: object = {}) => {
    const { payload, error } = await said(raw, "agent.request", { message: "hi", sessionKey, ...more });
    return payload?.sessionKey ?? error?.details?.code;
  };
  expect(await to("agent:research:main")).toBe("agent:research:main");
  for (const key of [
    "main",
    "agent:main:main",
    "agent:writer:main",
    "agent:main:chat:none",
    "global",
    "unknown",
  ]) {
    expect(await to(key), key).toBe("not_visible");
  }
  for (const key of ["node-another", "hook:x", "agent:research:chat:none"]) {
    expect(await to(key), key).toBe("session_not_found");
  }
  expect(await to("agent:research:main", { deliver: true })).toBe("not_visible");
  const closed = await openHouse({ gateway });
  const other = await joinedNode(closed, await pairedDevice(closed));
  const { error } = await said(other, "agent.request", { message: "hi", sessionKey: "agent:research:main" });
  expect(error?.details?.code).toBe("not_visible");
});

test("NO2: an answer is sent to the destination that the node named, and no route changes", async () => {
  const nodes = { allowedSessionKeys: ["agent:research:main"] };
  const house = await openHouse({ gateway, choices: { features: { nodes } }, play: () => "the answer" });
  const raw = await joinedNode(house, await pairedDevice(house));
  const admin = await house.client();
  const delivered = said(raw, "agent.request", { message: "hi", deliver: true, to: "agent:research:main" });
  const { payload } = await delivered;
  expect((await admin.request("agent.wait", { runId: payload.runId })).status).toBe("ok");
  await expect
    .poll(async () => (await admin.request("chat.history", { sessionKey: "agent:research:main" })).messages)
    .toMatchObject([{ role: "assistant", content: [{ text: "the answer" }] }]);
  const sessions = await house.store.db.selectFrom("sessions").selectAll().execute();
  expect(sessions.map(({ last_channel }) => last_channel)).toEqual(sessions.map(() => null));
});

test("NH4: the runs that a node starts per minute are limited, without affecting other nodes", async () => {
  const world = fakeWorld();
  const house = await openHouse({ gateway, world });
  const [raw, other] = [
    await joinedNode(house, await pairedDevice(house)),
    await joinedNode(house, await pairedDevice(house)),
  ];
  const codes: (string | undefined)[] = [];
  for (let index = 0; index < 62; index++) {
    codes.push((await said(raw, "agent.request", { message: `${index}` })).error?.code);
  }
  expect(codes.filter((code) => code === undefined)).toHaveLength(60);
  expect(codes.slice(60)).toEqual(["RATE_LIMITED", "RATE_LIMITED"]);
  expect((await said(other, "agent.request", { message: "me" })).ok).toBe(true);
  await world.advance(1_000);
  expect((await said(raw, "agent.request", { message: "later" })).ok).toBe(true);
});

test("NH4: a node that used up its runs waits no longer when the wall clock is set back", async () => {
  const { world, set } = settableWorld();
  const house = await openHouse({ gateway, world });
  const raw = await joinedNode(house, await pairedDevice(house));
  for (let index = 0; index < 60; index++) await said(raw, "agent.request", { message: `${index}` });
  expect((await said(raw, "agent.request", { message: "early" })).error?.code).toBe("RATE_LIMITED");
  set(-3_600_000);
  await world.advance(1_000);
  expect((await said(raw, "agent.request", { message: "later" })).ok).toBe(true);
});
