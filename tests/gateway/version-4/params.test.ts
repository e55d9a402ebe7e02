// Clients of protocol version 4: unknown params, and the methods that only they call.

import { expect, test } from "vitest";
import { type House, openHouse } from "../kit.ts";
import { clientOf, V4 } from "./client.ts";

const MAIN = "agent:main:main";

async function ignoredBy(house: House) {
  return (await (await house.client()).request("status")).ignoredParams;
}

test("unknown params of version 4 are ignored and listed; in version 3 they are refused", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  for (let round = 0; round < 2; round++)
    expect(await ask("sessions.list", { limit: 1, ownerFirst: true })).toMatchObject({ ok: true });
  const sent = { sessionKey: MAIN, message: "hello", idempotencyKey: "one", suppressEcho: { deep: true } };
  expect(await ask("chat.send", sent)).toMatchObject({ ok: true, payload: { runId: "one" } });
  expect(await ask("agent.wait", { runId: "one" })).toMatchObject({ payload: { status: "ok" } });
  expect(await ignoredBy(house)).toEqual([
    { method: "sessions.list", param: "ownerFirst", count: 2 },
    { method: "chat.send", param: "suppressEcho", count: 1 },
  ]);
  const strict = await clientOf(house, {});
  const refused = await strict("sessions.list", { limit: 1, ownerFirst: true });
  expect(refused.error).toMatchObject({ code: "INVALID_REQUEST", details: { code: "unknown_argument" } });
});

test("params that Parley knows are checked in version 4, too, and unknown methods are refused in words", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  expect((await ask("sessions.list", { limit: "all", ownerFirst: true })).error?.message).toContain("limit");
  expect((await ask("sessions.list", ["limit"])).error?.code).toBe("INVALID_REQUEST");
  expect((await ask("sessions.describe", {})).error?.message).toContain("key is required");
  expect((await ask("question.list", {})).error?.message).toContain('unknown method "question.list"');
  expect(await ignoredBy(house)).toEqual([]);
});

test("the list of ignored params is bounded, and long or secret names are shortened and redacted", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`name-${at}`, 1]));
  expect(await ask("health", { [secret]: 1, [`${"long".repeat(100)}`]: 1, ...many })).toMatchObject({
    ok: true,
  });
  const rows = (await ignoredBy(house)) ?? [];
  expect(rows).toHaveLength(100);
  expect(JSON.stringify(rows)).not.toContain(secret.slice(0, 40));
  expect(Math.max(...rows.map(({ param }) => param.length))).toBeLessThanOrEqual(64);
});

test("an ignored agentId never leads to a session of another agent", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const send = (sessionKey: string, agentId: string) =>
    ask("chat.send", { sessionKey, agentId, message: "hello", idempotencyKey: `${sessionKey} ${agentId}` });
  for (const [key, agentId] of [
    ["main", "research"],
    [MAIN, "research"],
    ["agent:research:main", "main"],
  ] as const) {
    const refused = await send(key, agentId);
    expect(refused.error?.message, key).toContain(`"${key}" is not a session of agent "${agentId}"`);
  }
  for (const [key, agentId] of [
    ["main", "main"],
    ["agent:research:main", "Research"],
  ] as const)
    expect(await send(key, agentId), key).toMatchObject({ ok: true });
});

test("a session can be created without an idempotency key, each time a new one", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  const wanted = { agentId: "main", succeedsParent: true, emitCommandHooks: false, parentSessionKey: MAIN };
  const first = await ask("sessions.create", wanted);
  const second = await ask("sessions.create", wanted);
  expect([first.ok, second.ok]).toEqual([true, true]);
  expect(first.payload.key).not.toBe(second.payload.key);
  const strict = await clientOf(house, {});
  expect((await strict("sessions.create", { agentId: "main" })).error?.message).toContain("idempotencyKey");
});

test("sessions.subscribe, sessions.describe and chat.startup answer like the methods that they replace", async () => {
  const house = await openHouse();
  const ask = await clientOf(house);
  await ask("chat.send", { sessionKey: MAIN, message: "hello", idempotencyKey: "one" });
  await ask("agent.wait", { runId: "one" });
  expect((await ask("sessions.subscribe", {})).payload).toEqual({ subscribed: true });
  const { payload: subscribed } = await ask("sessions.subscribe", { limit: 1 });
  const [row] = (await ask("sessions.list", { limit: 1 })).payload.sessions;
  expect(subscribed).toMatchObject({ subscribed: true, list: { count: 1, sessions: [row] } });
  expect((await ask("sessions.describe", { key: "main" })).payload).toEqual({ session: row });
  expect((await ask("sessions.describe", { key: "agent:main:none" })).payload).toEqual({ session: null });
  const { payload: history } = await ask("chat.history", { sessionKey: MAIN });
  expect((await ask("chat.startup", { sessionKey: MAIN })).payload).toEqual(history);
});

test("system-presence lists all clients for the owner, and only its own connection for a narrow token", async () => {
  const token = "a-token-for-one-session";
  const narrow = { token, role: "operator", scopes: ["operator.read"], sessions: [MAIN] } as const;
  const house = await openHouse({ gateway: { tokens: [narrow] } });
  const client = { id: "desk", version: "1", platform: "test", mode: "test" };
  const owner = await clientOf(house, { ...V4, client });
  const other = await clientOf(house, { ...V4, client: { ...client, id: "narrow" }, auth: { token } });
  const idsSeenBy = async (ask: typeof owner) =>
    ((await ask("system-presence")).payload as { clientId: string }[]).map(({ clientId }) => clientId);
  expect(await idsSeenBy(owner)).toEqual(["narrow", "desk"]);
  expect(await idsSeenBy(other)).toEqual(["narrow"]);
});

test("in both versions, params of OpenClaw that have no meaning here are accepted and not listed", async () => {
  const house = await openHouse();
  for (const version of [{}, V4]) {
    const ask = await clientOf(house, version);
    const succeeding = { parentSessionKey: MAIN, succeedsParent: false, emitCommandHooks: true };
    const requests: [string, object][] = [
      ["channels.status", { probe: true, timeoutMs: 1_000, channel: "telegram" }],
      ["models.list", { view: "all", includeDetails: true, preparedOnly: true, refresh: false }],
      ["sessions.create", { ...succeeding, idempotencyKey: `child of ${JSON.stringify(version)}` }],
    ];
    for (const [method, params] of requests)
      expect(await ask(method, params), method).toMatchObject({ ok: true });
  }
  expect(await ignoredBy(house)).toEqual([]);
});

test("chat.abort of version 4 cancels all work of a session or one run, and never that of another agent", async () => {
  const started = new Set<string>();
  const house = await openHouse({
    play: ({ run, signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        started.add(run.runId);
      }),
  });
  const ask = await clientOf(house);
  const begin = async (runId: string) => {
    await ask("chat.send", { sessionKey: MAIN, message: "wait", idempotencyKey: runId });
    await expect.poll(() => started.has(runId)).toBe(true);
  };
  await begin("one");
  const elsewhere = await ask("chat.abort", { sessionKey: MAIN, agentId: "research", runId: "one" });
  expect(elsewhere.error?.message).toContain("is not a session of agent");
  expect(
    (await ask("chat.abort", { sessionKey: MAIN, agentId: "main", runId: "one" })).payload,
  ).toMatchObject({
    aborted: true,
    runIds: ["one"],
  });
  await begin("two");
  expect((await ask("chat.abort", { sessionKey: MAIN, preserveSideRuns: true })).payload).toMatchObject({
    aborted: true,
    runIds: ["two"],
  });
});
