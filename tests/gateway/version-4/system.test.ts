// Clients of protocol version 4: events for a session, heartbeats, devices and their pairing.

import { expect, test } from "vitest";
import { askIn } from "../../kit/engine/asking.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { codeIn, joinedNode, NODE_TOKENS, newDevice, tryNode } from "../clients/devices.ts";
import { type House, openHouse, quiet, TOKEN } from "../kit.ts";
import { clientOf, V4 } from "./client.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";

async function messagesOf(house: House, key: string) {
  await quiet(house);
  const { messages } = await (await house.client()).request("chat.history", { sessionKey: key });
  return messages.map((one) => [
    one.role,
    "provenance" in one && one.provenance,
    JSON.stringify(one.content),
  ]);
}

const noted = (text: string) => ["user", { kind: "hook", source: "wake" }, expect.stringContaining(text)];
const answered = (text: string) => ["assistant", false, expect.stringContaining(text)];

test("I11: a wake is a message with provenance, read at once or by the next run", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const kept = await ask("wake", { mode: "next-heartbeat", text: "the build is done" });
  expect(kept.payload).toMatchObject({ ok: true, sessionKey: MAIN, runId: expect.any(String) });
  expect(await messagesOf(house, MAIN)).toEqual([noted("the build is done")]);
  const now = { mode: "now", text: "the disk is full", idempotencyKey: "disk" };
  const woken = await ask("wake", now);
  expect((await ask("wake", now)).payload).toEqual(woken.payload);
  expect(await messagesOf(house, MAIN)).toEqual([
    noted("the build is done"),
    noted("the disk is full"),
    answered("the disk is full"),
  ]);
  // Such a client expects that a named session is woken in both modes.
  const named = await ask("wake", { mode: "next-heartbeat", text: "look", sessionKey: RESEARCH });
  expect(named.payload).toMatchObject({ ok: true, sessionKey: RESEARCH });
  expect(await messagesOf(house, RESEARCH)).toEqual([noted("look"), answered("look")]);
  const ofAgent = await (await house.client()).request("wake", {
    text: "for later",
    mode: "next-heartbeat",
    agentId: "research",
  });
  expect(ofAgent.sessionKey).toBe(RESEARCH);
  expect((await messagesOf(house, RESEARCH)).at(-1)).toEqual(noted("for later"));
  expect((await ask("wake", { mode: "now", text: " " })).error?.message).toContain("text");
  expect((await ask("wake", { mode: "soon", text: "x" })).error?.message).toContain("mode");
  const unknown = await ask("wake", { mode: "now", text: "x", sessionKey: "agent:main:none" });
  expect(unknown.error?.details).toMatchObject({ code: "session_not_found" });
  const wrong = await ask("wake", { mode: "now", text: "x", sessionKey: MAIN, agentId: "research" });
  expect(wrong.error?.message).toContain("agent");
});

test("I9: a token wakes only sessions that it covers, and needs the scope of writing", async () => {
  const [reader, narrow] = ["a-token-that-reads", "a-token-for-one-session"];
  const operator = { role: "operator" } as const;
  const house = await openHouse({
    gateway: {
      tokens: [
        { ...operator, token: reader, scopes: ["operator.read"] },
        { ...operator, token: narrow, scopes: ["operator.write"], sessions: [RESEARCH] },
      ],
    },
  });
  const reading = await clientOf(house, { ...V4, auth: { token: reader } });
  const only = await clientOf(house, { ...V4, auth: { token: narrow } });
  const text = { mode: "now", text: "hello" };
  expect((await reading("wake", text)).error?.message).toContain("operator.write");
  for (const method of ["wake", "system-event"])
    expect((await only(method, text)).error?.details).toMatchObject({ code: "not_visible" });
  expect((await only("wake", { ...text, sessionKey: RESEARCH })).ok).toBe(true);
  expect(await messagesOf(house, MAIN)).toEqual([]);
});

test("a system event is a wake that may wait; presence lines and heartbeats are refused in words", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const event = { text: "a door opened", deviceId: "phone", tags: ["door"], lastInputSeconds: 3 };
  expect((await ask("system-event", event)).payload).toMatchObject({ ok: true, sessionKey: MAIN });
  expect(await messagesOf(house, MAIN)).toEqual([noted("a door opened")]);
  await ask("system-event", { text: "it closed", sessionKey: RESEARCH });
  expect(await messagesOf(house, RESEARCH)).toEqual([noted("it closed")]);
  await ask("system-event", { text: "a bell rang", sessionKey: RESEARCH, wake: true });
  expect((await messagesOf(house, RESEARCH)).at(-1)).toEqual(answered("a bell rang"));
  const line = await ask("system-event", { text: "Node: desk (10.0.0.1) · app 1" });
  expect(line.error?.message).toContain("system-presence");
  expect((await ask("last-heartbeat", {})).payload).toBeNull();
  const { ignoredParams } = await (await house.client()).request("status");
  expect(ignoredParams).toEqual([]);
});

test.each([
  ["set-heartbeats", { enabled: false }, "cron.add"],
  ["system.info", {}, "metrics.history"],
  ["device.pair.setupCode", { bootstrapProfile: "node" }, "node.pair.approve"],
  ["device.token.rotate", { deviceId: "x", role: "operator" }, "device.token.revoke"],
  ["device.scopes.requestUpgrade", { scopes: ["operator.admin"] }, "gateway.auth.tokens"],
])("%s is refused in words that name a way", async (method, params, words) => {
  const ask = await clientOf(await openHouse());
  const { error } = await ask(method, params);
  expect(error?.details).toMatchObject({ code: "unknown_method" });
  expect(error?.message).toContain(words);
  expect(error?.message).not.toContain("did you mean");
});

test("a client that has the scope of pairing alone lists, accepts, renames and refuses devices", async () => {
  const house = await openHouse({ gateway: { tokens: NODE_TOKENS } });
  const ask = await clientOf(house, { ...V4, scopes: ["operator.pairing"] });
  const [kept, refused] = [newDevice(), newDevice()];
  for (const key of [kept, refused]) (await tryNode(house, key, { name: "shed" })).raw.socket.terminate();
  const { pending } = (await ask("device.pair.list", {})).payload;
  expect(pending).toMatchObject([
    { deviceId: kept.id, displayName: "shed", role: "node", roles: ["node"], ts: expect.any(Number) },
    { deviceId: refused.id, requestId: expect.any(String) },
  ]);
  const [first, second] = pending.map(({ requestId }: { requestId: string }) => requestId);
  expect((await ask("device.pair.approve", { requestId: first })).payload).toMatchObject({
    requestId: first,
    device: { deviceId: kept.id },
  });
  expect((await ask("device.pair.reject", { requestId: second })).payload).toMatchObject({
    requestId: second,
    deviceId: refused.id,
  });
  await joinedNode(house, kept);
  const label = { deviceId: kept.id, label: "garden shed" };
  expect((await ask("device.pair.rename", label)).payload).toEqual(label);
  expect((await ask("node.list")).payload.nodes).toMatchObject([{ displayName: "garden shed" }]);
  const unknown = await ask("device.pair.rename", { deviceId: refused.id, label: "x" });
  expect(unknown.error?.details).toMatchObject({ code: "node_not_found" });
  expect((await ask("device.pair.list", {})).payload).toMatchObject({
    pending: [],
    paired: [
      { deviceId: kept.id, operatorLabel: "garden shed", roles: ["node"], tokens: [{ role: "node" }] },
    ],
  });
  expect((await ask("device.token.revoke", { deviceId: kept.id, role: "node" })).payload).toMatchObject({
    deviceId: kept.id,
  });
  expect((await ask("device.pair.list", {})).payload.paired).toEqual([]);
  expect((await ask("chat.send", { sessionKey: MAIN, message: "x" })).error?.message).toContain(
    "operator.write",
  );
  expect((await ask("cron.list")).ok).toBe(true);
  expect((await ask("config.get")).error?.message).toContain("operator.admin");
});

test("a token without the scope of an administrator cannot request a part of it", async () => {
  const token = "a-token-that-writes";
  const writer = { token, role: "operator", scopes: ["operator.write"] } as const;
  const house = await openHouse({ gateway: { tokens: [writer, ...NODE_TOKENS] } });
  const scopes = ["operator.write", "operator.pairing", "operator.approvals"];
  const ask = await clientOf(house, { ...V4, auth: { token }, scopes });
  const { answer } = await tryNode(house, newDevice());
  for (const [method, params] of [
    ["node.pair.approve", { code: codeIn(answer) }],
    ["device.token.revoke", { deviceId: "x" }],
    ["exec.approval.resolve", { id: "x", decision: "allow-once" }],
  ] as const)
    expect((await ask(method, params)).error?.details, method).toMatchObject({
      missingScope: "operator.admin",
    });
});

test("a client that has the scope of approvals answers permission requests, and nothing more", async () => {
  const world = quietWorld();
  const house: Promise<House> = openHouse({
    world,
    play: async (handle) =>
      askIn({ engine: (await house).engine }, handle, { title: "rm", rawInput: { folder: "/x" } }),
  });
  const { engine } = await house;
  const scopes = ["operator.read", "operator.write", "operator.approvals"];
  const ask = await clientOf(await house, { ...V4, auth: { token: TOKEN }, scopes });
  const accepted = await engine.accept({ sessionKey: MAIN, input: { text: "clean up" } });
  if (!accepted.ok) throw new Error(accepted.error);
  const [open] = await until(async () => {
    const { payload } = await ask("exec.approval.list", {});
    return payload.length === 1 && payload;
  });
  expect(open.request.command).toBe("rm\nfolder: /x");
  expect((await ask("device.token.revoke", { deviceId: "x" })).error?.message).toContain("operator.admin");
  expect((await ask("permissions.forget", { id: "x" })).error?.message).toContain("operator.admin");
  expect((await ask("exec.approval.resolve", { id: open.id, decision: "allow-once" })).ok).toBe(true);
  expect((await ask("agent.wait", { runId: accepted.value.run.runId })).payload.status).toBe("ok");
});
