// Nodes over real sockets: pairing, allowed commands, valid answers, and events.

import { expect, test } from "vitest";
import { NODE_REPLACED } from "../../../src/contract/protocol.ts";
import {
  NODES_MAX,
  PAIR_REQUEST_MS,
  PAIR_REQUESTS_MAX,
  PAIR_REQUESTS_PER_TOKEN_MAX,
} from "../../../src/features/nodes/node.ts";
import { deleteNode, putNode } from "../../../src/features/nodes/store.ts";
import {
  answer,
  asked,
  codeIn,
  joinedNode,
  NODE_TOKEN,
  NODE_TOKENS,
  newDevice,
  pairedDevice,
  said,
  tryNode,
} from "../../gateway/clients/devices.ts";
import { openHouse } from "../../gateway/kit.ts";
import { fakeWorld } from "../../kit/world.ts";

const gateway = { tokens: NODE_TOKENS };

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "done",
    (error: { code: string; reason?: string }) => `${error.code} ${error.reason ?? ""}`.trim(),
  );
}

test("NP1: an unknown device gets only a code; after that code is approved, the device can connect", async () => {
  const house = await openHouse({ gateway });
  const admin = await house.client();
  const told: unknown[] = [];
  admin.on("node.pair.requested", (payload) => told.push(payload));
  const key = newDevice();
  const first = await tryNode(house, key, { name: "anna\u202e's laptop\u0007" });
  expect(first.answer.error).toMatchObject({ code: "NOT_PAIRED", details: { code: "not_paired" } });
  const code = codeIn(first.answer);
  expect(code).toMatch(/^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
  expect(first.answer.error?.message).toContain(`npx parley-gateway node approve ${code}`);
  expect((await first.raw.closed()).code).toBe(1008);
  const second = await tryNode(house, key);
  expect(codeIn(second.answer)).toBe(code);
  const list = await admin.request("node.pair.list", {});
  expect(list).toMatchObject({ pending: [{ code, nodeId: key.id, platform: "test" }], paired: [] });
  // The name contains no character that controls a terminal or a page.
  expect(list.pending[0]?.displayName).toBe("anna\\u{202e}'s laptop\\x07");
  expect(told).toMatchObject([{ code, nodeId: key.id }]);
  const paired = await admin.request("node.pair.approve", { code: code.toLowerCase().replace("-", "") });
  expect(paired.node).toMatchObject({ nodeId: key.id, connected: false, sessionKey: `node-${key.id}` });
  const raw = await joinedNode(house, key);
  expect((await raw.res("hello")).payload).toMatchObject({
    auth: { role: "node", scopes: [] },
    features: { events: ["node.invoke.request", "node.invoke.cancel", "tick", "shutdown"] },
  });
  const { nodes } = await admin.request("node.list", {});
  expect(nodes).toMatchObject([{ nodeId: key.id, connected: true, commands: ["exec", "notify"] }]);
});

test("a node must prove its key: a missing nonce, another node's name and a used challenge are refused", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const none = await tryNode(house, key, { device: undefined });
  expect(none.answer.error).toMatchObject({
    code: "NOT_PAIRED",
    message: expect.stringContaining("needs device"),
  });
  const now = Date.now();
  const text = ["v1", key.id, "a-node", "node", "node", "", now, NODE_TOKEN].join("|");
  const old = { id: key.id, publicKey: key.publicKey, signature: key.sign(text), signedAt: now };
  expect((await tryNode(house, key, { device: old })).answer.error?.code).toBe("NOT_PAIRED");
  const other = newDevice();
  const stolen = { ...old, id: key.id, publicKey: other.publicKey, signature: other.sign("x"), nonce: "x" };
  expect((await tryNode(house, other, { device: stolen })).answer.error?.code).toBe("UNAUTHORIZED");
  const replayed = { ...old, signature: key.sign("an earlier nonce"), nonce: "an earlier nonce" };
  expect((await tryNode(house, key, { device: replayed })).answer.error?.code).toBe("UNAUTHORIZED");
  // A paired device with a new key counts as another device, and must be paired again.
  expect((await tryNode(house, newDevice())).answer.error?.code).toBe("NOT_PAIRED");
  expect((await joinedNode(house, key)).frames[1]?.ok).toBe(true);
});

test("NP1: a token that fills its part of the pairing list keeps no device of another token out", async () => {
  const tokens = ["first", "second"].map((name) => ({
    token: `the-token-of-the-${name}`,
    role: "operator" as const,
    scopes: ["operator.read" as const],
  }));
  const [one, two] = tokens.map(({ token }) => ({ token }));
  const house = await openHouse({ gateway: { tokens } });
  for (let index = 0; index < PAIR_REQUESTS_PER_TOKEN_MAX; index++)
    codeIn((await tryNode(house, newDevice(), one)).answer);
  const { error } = (await tryNode(house, newDevice(), one)).answer;
  expect(error).toMatchObject({ code: "NOT_PAIRED", message: expect.stringContaining("with this token") });
  codeIn((await tryNode(house, newDevice(), two)).answer);
  const { pending } = await (await house.client()).request("node.pair.list", {});
  expect(pending).toHaveLength(PAIR_REQUESTS_PER_TOKEN_MAX + 1);
});

test("open pairing requests are limited, and expire after an hour", async () => {
  const world = fakeWorld();
  const fleets = Array.from({ length: PAIR_REQUESTS_MAX / PAIR_REQUESTS_PER_TOKEN_MAX }, (_, at) => ({
    ...NODE_TOKENS[0],
    token: `the-token-of-the-fleet-${at}`,
  }));
  const house = await openHouse({ gateway: { tokens: [...NODE_TOKENS, ...fleets] }, world });
  const admin = await house.client();
  for (const { token } of fleets)
    for (let index = 0; index < PAIR_REQUESTS_PER_TOKEN_MAX; index++)
      codeIn((await tryNode(house, newDevice(), { token })).answer);
  const late = newDevice();
  const full = await tryNode(house, late);
  expect(full.answer.error).toMatchObject({
    code: "NOT_PAIRED",
    message: expect.stringContaining("too many"),
  });
  expect((await admin.request("node.pair.list", {})).pending).toHaveLength(PAIR_REQUESTS_MAX);
  admin.close();
  await world.advance(PAIR_REQUEST_MS);
  const code = codeIn((await tryNode(house, late)).answer);
  const again = await house.client();
  expect((await again.request("node.pair.list", {})).pending).toMatchObject([{ code }]);
});

test("NP2: a pairing request is decided once; afterwards its code is unknown, and a rejected device may request again", async () => {
  const house = await openHouse({ gateway });
  const admin = await house.client();
  const key = newDevice();
  const code = codeIn((await tryNode(house, key)).answer);
  const both = await Promise.all([
    refusal(admin.request("node.pair.approve", { code })),
    refusal(admin.request("node.pair.reject", { code })),
  ]);
  expect(both.toSorted()).toEqual(["NOT_FOUND pairing_not_found", "done"]);
  for (const wrong of [{}, { code, requestId: "x" }]) {
    expect(await refusal(admin.request("node.pair.approve", wrong))).toBe("INVALID_REQUEST invalid_argument");
  }
  const other = newDevice();
  const first = codeIn((await tryNode(house, other)).answer);
  await admin.request("node.pair.reject", { code: first });
  expect(await refusal(admin.request("node.pair.approve", { code: first }))).toBe(
    "NOT_FOUND pairing_not_found",
  );
  expect(codeIn((await tryNode(house, other)).answer)).not.toBe(first);
});

test("the name and agent of a device are set at its approval, and the device can't change them", async () => {
  const house = await openHouse({ gateway });
  const admin = await house.client();
  const key = newDevice();
  const code = codeIn((await tryNode(house, key)).answer);
  const wrong = admin.request("node.pair.approve", { code, agentId: "nobody" });
  expect(await refusal(wrong)).toBe("NOT_FOUND agent_not_found");
  await admin.request("node.pair.approve", { code, name: "the attic", agentId: "research" });
  const raw = await joinedNode(house, key, { name: "kitchen" });
  const describe = () => admin.request("node.describe", { nodeId: key.id });
  expect(await describe()).toMatchObject({ displayName: "the attic", agentId: "research" });
  await admin.request("node.rename", { nodeId: key.id, displayName: "the cellar" });
  expect(await describe()).toMatchObject({ displayName: "the cellar", connected: true });
  const { payload } = await said(raw, "agent.request", { message: "hello" });
  expect(payload).toMatchObject({ handled: true, sessionKey: `node-${key.id}` });
  const row = await admin.request("sessions.list", { kinds: ["node"] });
  expect(row.sessions).toMatchObject([{ key: `node-${key.id}`, sessionKind: "node", label: "the cellar" }]);
  const history = await admin.request("chat.history", { sessionKey: `node-${key.id}` });
  expect(history.messages[0]).toMatchObject({ provenance: { kind: "node", source: key.id } });
});

test("ND1: only commands that the node offers and the settings allow are sent", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key, {
    commands: ["exec", "device.info", "camera.snap", "bad name", "exec"],
  });
  const admin = await house.client();
  expect(await admin.request("node.describe", { nodeId: key.id })).toMatchObject({
    commands: ["exec", "device.info", "camera.snap"],
    allowedCommands: ["exec", "device.info"],
  });
  const invoke = (command: string) => admin.request("node.invoke", { nodeId: key.id, command });
  for (const command of ["notify", "camera.snap", "exec.more", "*"]) {
    expect(await refusal(invoke(command)), command).toBe("FORBIDDEN node_command_denied");
  }
  const done = invoke("device.info");
  const request = await asked(raw);
  expect(request).toMatchObject({ nodeId: key.id, command: "device.info", timeoutMs: 30_000 });
  expect(request).not.toHaveProperty("paramsJSON");
  answer(raw, request, { ok: true, payload: { battery: 0.5 } });
  expect(await done).toMatchObject({ ok: true, payload: { battery: 0.5 }, payloadJSON: '{"battery":0.5}' });
  expect(raw.frames.filter(({ event }) => event === "node.invoke.request")).toHaveLength(1);
});

test("NC1: an answer is ignored and logged if its command id is unknown, missing, or of another node's command", async () => {
  const world = fakeWorld({ clock: "real" });
  const house = await openHouse({ gateway, world });
  const [mine, other] = [await pairedDevice(house), await pairedDevice(house)];
  const [raw, foe] = [await joinedNode(house, mine), await joinedNode(house, other, { name: "foe" })];
  const admin = await house.client();
  const done = admin.request("node.invoke", {
    nodeId: mine.id,
    command: "exec",
    params: { command: ["ls"] },
  });
  const request = await asked(raw);
  expect(JSON.parse(request.paramsJSON)).toEqual({ command: ["ls"] });
  for (const lie of [request, { ...request, nodeId: other.id }]) {
    answer(foe, lie, { ok: true, payload: "a lie" });
    expect((await foe.res(`answer-${request.id}`)).payload).toEqual({ ok: true, ignored: true });
  }
  answer(raw, { ...request, id: "nothing" }, { ok: true });
  expect((await raw.res("answer-nothing")).payload).toEqual({ ok: true, ignored: true });
  raw.send({
    type: "req",
    id: "liar",
    method: "node.invoke.result",
    params: { ...request, nodeId: other.id },
  });
  expect((await raw.res("liar")).ok).toBe(false);
  answer(raw, request, { ok: true, payloadJSON: '"true"' });
  expect((await done).payload).toBe("true");
  answer(raw, { ...request, id: request.id }, { ok: true, payload: "late" });
  expect(world.logged.filter(({ text }) => text.includes("not pending")).length).toBeGreaterThan(2);
});

test.each<[string, object, string, RegExp]>([
  ["no JSON", { ok: true, payloadJSON: "{" }, "UNAVAILABLE node_failed", /not JSON/],
  [
    "depth",
    { ok: true, payloadJSON: `${"[".repeat(9_000)}${"]".repeat(9_000)}` },
    "UNAVAILABLE node_failed",
    /deep/,
  ],
  [
    "size",
    { ok: true, payloadJSON: JSON.stringify("x".repeat(1_100_000)) },
    "INVALID_REQUEST too_large",
    /1048576/,
  ],
  [
    "a refusal in words that a terminal would obey",
    { ok: false, error: { code: "NOT_ALLOWED", message: "no\u001b[2J such program" } },
    "UNAVAILABLE node_failed",
    /failed: no\\x1b\[2J such program/,
  ],
  ["no words", { ok: false, error: { message: 7 } }, "UNAVAILABLE node_failed", /no reason given/],
])("NC3: an answer with the wrong %s is a failure with a safe message", async (_, words, code, text) => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  const admin = await house.client();
  const done = admin.request("node.invoke", { nodeId: key.id, command: "exec" });
  answer(raw, await asked(raw), words);
  const error = await done.then(
    () => undefined,
    (thrown: { code: string; reason: string; message: string }) => thrown,
  );
  expect(`${error?.code} ${error?.reason}`).toBe(code);
  expect(error?.message).toMatch(text);
});

test("NC2: if a node stays silent, disconnects or is replaced, the outcome is unknown; without a node nothing is sent", async () => {
  const world = fakeWorld();
  const house = await openHouse({ gateway, world });
  const key = await pairedDevice(house);
  const admin = await house.client();
  const invoke = (more: object = {}) =>
    admin.request("node.invoke", { nodeId: key.id, command: "exec", ...more });
  expect(await refusal(invoke())).toBe("UNAVAILABLE node_unavailable");
  const raw = await joinedNode(house, key);
  const silent = refusal(invoke({ timeoutMs: 5_000 }));
  const request = await asked(raw);
  await world.advance(5_000);
  expect(await silent).toBe("AGENT_TIMEOUT node_timeout");
  const cancelled = await raw.next(({ event }) => event === "node.invoke.cancel");
  expect(cancelled.payload).toEqual({ id: request.id, nodeId: key.id });
  const lost = refusal(invoke());
  await asked(raw, 1);
  raw.socket.terminate();
  expect(await lost).toBe("CONFLICT outcome_unknown");
  const second = await joinedNode(house, key);
  const taken = refusal(invoke());
  await asked(second);
  const third = await joinedNode(house, key);
  expect(await taken).toBe("CONFLICT outcome_unknown");
  expect(await second.closed()).toEqual({ code: 1008, reason: NODE_REPLACED });
  const done = invoke();
  answer(third, await asked(third), { ok: true });
  expect((await done).payload).toBeNull();
});

test("if an idempotency key is repeated, the command is sent once with one answer; the node learns the key's owner", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  const admin = await house.client();
  const params = { nodeId: key.id, command: "exec", params: { n: 1 }, idempotencyKey: "once" };
  const both = [admin.request("node.invoke", params), admin.request("node.invoke", params)];
  const request = await asked(raw);
  expect(request.idempotencyKey).toMatch(/:once$/);
  answer(raw, request, { ok: true, payload: 1 });
  const [one, two] = await Promise.all(both);
  expect(two).toEqual(one);
  raw.socket.terminate();
  expect(await admin.request("node.invoke", params)).toEqual(one);
  const other = admin.request("node.invoke", { ...params, params: { n: 2 } });
  expect(await refusal(other)).toBe("CONFLICT idempotency_conflict");
});

test("params and timeout are limited before the command is sent to a node", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  const admin = await house.client();
  const invoke = (more: object) => admin.request("node.invoke", { nodeId: key.id, command: "exec", ...more });
  expect(await refusal(invoke({ params: { text: "x".repeat(300_000) } }))).toBe("INVALID_REQUEST too_large");
  const long = refusal(invoke({ timeoutMs: 10_000_000 }));
  expect((await asked(raw)).timeoutMs).toBe(600_000);
  raw.socket.terminate();
  expect(await long).toBe("CONFLICT outcome_unknown");
  const again = await joinedNode(house, key);
  const many = Array.from({ length: 65 }, () => refusal(invoke({})));
  await asked(again, 63);
  again.socket.terminate();
  const ends = await Promise.all(many);
  expect(ends.filter((end) => end === "RATE_LIMITED rate_limited")).toHaveLength(1);
});

test("NH1: an unpaired device loses its connection at once, and is then unknown", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  const admin = await house.client();
  const pending = refusal(admin.request("node.invoke", { nodeId: key.id, command: "exec" }));
  await asked(raw);
  expect(await admin.request("node.pair.remove", { nodeId: key.id })).toMatchObject({ removed: true });
  expect((await raw.closed()).reason).toContain("no longer paired");
  expect(await pending).toBe("CONFLICT outcome_unknown");
  expect((await admin.request("node.list", {})).nodes).toEqual([]);
  for (const [method, more] of [
    ["node.describe", {}],
    ["node.invoke", { command: "exec", idempotencyKey: "k" }],
    ["node.pair.remove", {}],
    ["node.rename", { displayName: "x" }],
  ] as const) {
    expect(await refusal(admin.call(method, { nodeId: key.id, ...more })), method).toBe(
      "NOT_FOUND node_not_found",
    );
  }
  expect((await tryNode(house, key)).answer.error?.code).toBe("NOT_PAIRED");
});

test("NH1: if the hint that a device was unpaired is lost, its next event is refused, and a check closes its connection", async () => {
  const world = fakeWorld();
  const house = await openHouse({ gateway, world });
  const key = await pairedDevice(house);
  const raw = await joinedNode(house, key);
  await house.store.transaction((tx) => deleteNode(tx, key.id));
  const event = await said(raw, "agent.request", { message: "hello" });
  expect(event.error).toMatchObject({ code: "NOT_PAIRED" });
  await world.advance(30_000);
  expect((await raw.closed()).reason).toContain("no longer paired");
});

test("after a restart the paired nodes are known and disconnected, and each can connect again", async () => {
  const house = await openHouse({ gateway });
  const key = await pairedDevice(house);
  await joinedNode(house, key);
  await house.stop();
  const after = await openHouse({ gateway, dir: house.dir });
  const admin = await after.client();
  const [row] = (await admin.request("node.list", {})).nodes;
  expect(row).toMatchObject({ nodeId: key.id, connected: false, lastSeenAtMs: expect.any(Number) });
  expect(row).not.toHaveProperty("connectedAtMs");
  await joinedNode(after, key);
  expect((await admin.request("node.list", {})).nodes).toMatchObject([{ connected: true }]);
});

test("a node may send only small messages, and operators' methods are refused", async () => {
  const house = await openHouse({ gateway });
  const raw = await joinedNode(house, await pairedDevice(house));
  const admin = await house.client();
  await admin.agent({ message: "hello" }).done;
  for (const method of ["health", "sessions.list", "node.list", "node.invoke", "tools.invoke"]) {
    raw.send({ type: "req", id: method, method, params: {} });
    expect((await raw.res(method)).error?.code).toBe("FORBIDDEN");
  }
  expect(raw.frames.filter(({ type, event }) => type === "event" && event !== "connect.challenge")).toEqual(
    [],
  );
  raw.text(
    JSON.stringify({ type: "req", id: "x", method: "node.event", params: { event: "x".repeat(5_000_000) } }),
  );
  expect((await raw.closed()).code).toBe(1009);
});

test("with nodes.enabled false, pairing requests are refused, and so are operators' calls about nodes", async () => {
  const house = await openHouse({ gateway, choices: { features: { nodes: { enabled: false } } } });
  const { answer: refused } = await tryNode(house, newDevice());
  expect(refused.error).toMatchObject({
    code: "FORBIDDEN",
    message: expect.stringContaining("nodes.enabled"),
  });
  const admin = await house.client();
  expect(await refusal(admin.request("node.list", {}))).toBe("UNAVAILABLE node_unavailable");
});

test("pairing more nodes than the maximum is refused", async () => {
  const house = await openHouse({ gateway });
  const one = { platform: "x", version: "1", publicKey: "k", caps: [], commands: [], pairedAt: 1 };
  await house.store.transaction(async (tx) => {
    for (let index = 0; index < NODES_MAX; index++)
      await putNode(tx, { ...one, id: `n${index}`, name: `${index}` });
  });
  const admin = await house.client();
  const code = codeIn((await tryNode(house, newDevice())).answer);
  expect(await refusal(admin.request("node.pair.approve", { code }))).toBe("RATE_LIMITED rate_limited");
  await admin.request("node.pair.remove", { nodeId: "n7" });
  expect(await refusal(admin.request("node.pair.approve", { code }))).toBe("done");
});
