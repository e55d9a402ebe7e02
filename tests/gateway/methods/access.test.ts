// The method that explains whether session A may access session B, and the methods about the outbox.

import { expect, test } from "vitest";
import type { ChannelRow } from "../../../src/contract/methods/channels.ts";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import type { Explanation } from "../../../src/core/shapes/explanation.ts";
import { beginAttempt, endAttempt, insertDelivery } from "../../../src/store/queries/channels/deliveries.ts";
import { insertWait } from "../../../src/store/queries/runs/waits.ts";
import { agentSettings } from "../../tools/app.ts";
import { type House, type HouseOptions, joined, openHouse, type Raw } from "../kit.ts";

const MAIN = "agent:main:main";
const RESEARCH = "agent:research:main";
const WRITER = "agent:writer:main";
const ADMIN = ["operator.admin" as const];
const TOKENS = [
  {
    token: "scoped",
    role: "operator" as const,
    scopes: ADMIN,
    sessions: ["agent:main:*", "agent:research:*"],
  },
  { token: "reader", role: "operator" as const, scopes: ["operator.read" as const] },
];

type Explained = PayloadOf<"access.explain">;

const open = (options: HouseOptions = {}) => openHouse({ gateway: { tokens: TOKENS }, ...options });

async function explain(house: House, viewer: string, target: string, token?: string): Promise<Explained> {
  const client = await house.client(token === undefined ? {} : { token });
  return client.request("access.explain", { viewer, target });
}

const answerTo = ({ answers }: Explained, access: Explanation["access"]): Explanation => {
  const found = answers.find((answer) => answer.access === access);
  if (found === undefined) throw new Error(`no answer to ${access}`);
  return found;
};

test("every access question is answered with the rule that decides it, by the functions that also enforce the rule", async () => {
  const house = await open();
  const answer = await explain(house, "main", "agent:Research:MAIN");
  expect(answer).toMatchObject({
    viewer: { key: MAIN, exists: true, agentId: "main", sandboxed: false },
    target: { key: RESEARCH, exists: true, agentId: "research" },
    visibility: { configured: "all", effective: "all" },
    agentToAgent: { enabled: true, allow: [] },
  });
  expect(answer.answers.map(({ access }) => access)).toEqual([
    ...["list", "read", "search", "send", "spawn", "status"],
  ]);
  for (const access of ["list", "read", "search", "send", "status"] as const) {
    expect(answerTo(answer, access)).toMatchObject({
      allowed: true,
      rule: 'tools.sessions.visibility is "all", and tools.agentToAgent is enabled for all agents',
      settings: [],
    });
  }
  expect(answerTo(answer, "spawn")).toMatchObject({
    allowed: false,
    code: "spawn_denied",
    rule: 'agent "research" is not in agents.list[main].subagents.allowAgents',
  });
});

test("a refusal names the settings that would allow the access; a question about one kind of access can be asked, too", async () => {
  const house = await open({
    choices: { tools: { visibility: "self", agentToAgent: { enabled: false, allow: [] } } },
  });
  const client = await house.client();
  const { answers } = await client.request("access.explain", {
    ...{ viewer: MAIN, target: RESEARCH, access: "read" },
  });
  expect(answers).toEqual([
    expect.objectContaining({
      ...{ access: "read", allowed: false, code: "not_visible" },
      settings: ['tools.sessions.visibility: "all"', "tools.agentToAgent.enabled: true"],
    }),
  ]);
});

test("the answer covers tools, send policy and agents that may be spawned, in addition to visibility", async () => {
  const agents = [
    agentSettings("main", {
      tools: { allow: [], deny: ["sessions_history"] },
      subagents: { allowAgents: ["research"] },
    }),
    agentSettings("research"),
    agentSettings("writer"),
  ];
  const tools = { agentToAgent: { enabled: true, allow: ["main", "research"] } };
  const house = await open({ choices: { agents, tools } });
  await (await house.client()).call("sessions.patch", { key: RESEARCH, sendPolicy: "deny" });
  const answer = await explain(house, MAIN, RESEARCH);
  expect(answerTo(answer, "list").allowed).toBe(true);
  expect(answerTo(answer, "read")).toMatchObject({
    allowed: false,
    code: "tool_denied",
    rule: expect.stringContaining("agents.list[main].tools.deny"),
  });
  expect(answerTo(answer, "send")).toMatchObject({
    allowed: false,
    code: "send_denied",
    rule: expect.stringContaining("sessions.patch"),
  });
  expect(answerTo(answer, "spawn")).toMatchObject({
    allowed: true,
    rule: 'a sub-agent of agent "research": agents.list[main].subagents.allowAgents has "research"',
  });
  // The tool filters are checked before the session is looked up.
  const twice = answerTo(await explain(house, MAIN, WRITER), "read");
  expect(twice.code).toBe("tool_denied");
  expect(twice.checks.map(({ code }) => code)).toEqual(["tool_denied", "agent_to_agent"]);
});

test("V1: access to a missing target is explained as if the session existed, and the target is reported as missing", async () => {
  const house = await open({ choices: { tools: { visibility: "agent" } } });
  const key = "agent:main:chat:00000000-0000-4000-8000-000000000000";
  const nobody = await explain(house, MAIN, key);
  expect(nobody.target).toEqual({ key, exists: false, agentId: "main" });
  expect(answerTo(nobody, "read")).toMatchObject({
    allowed: true,
    rule: 'same agent, and tools.sessions.visibility is "agent"',
  });
  const unnamed = await explain(house, MAIN, "cron:nightly");
  expect(answerTo(unnamed, "spawn")).toMatchObject({ allowed: false, code: "agent_not_found" });
  const client = await house.client();
  const ask = (params: object) => client.call("access.explain", params);
  await expect(ask({ viewer: key, target: MAIN })).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(ask({ viewer: MAIN, target: "agent::" })).rejects.toMatchObject({
    code: "INVALID_REQUEST",
  });
});

test("a session of an agent that is not configured is refused with this reason, and with no setting", async () => {
  const none = 'there is no agent "nobody" in agents.list';
  for (const visibility of ["self", "all"] as const) {
    const house = await open({ choices: { tools: { visibility } } });
    const answer = await explain(house, MAIN, "agent:nobody:main");
    for (const access of ["list", "read", "search", "send", "status"] as const) {
      const refused = { allowed: false, code: "agent_not_found", rule: none, settings: [] };
      expect(answerTo(answer, access)).toMatchObject(refused);
    }
  }
});

test("I9: the caller's token must cover both sessions, whether they exist or not", async () => {
  const house = await open();
  expect((await explain(house, MAIN, RESEARCH, "scoped")).answers).toHaveLength(6);
  for (const [viewer, target] of [
    [MAIN, WRITER],
    [WRITER, MAIN],
    [MAIN, "agent:writer:chat:00000000-0000-4000-8000-000000000000"],
  ] as const) {
    await expect(explain(house, viewer, target, "scoped")).rejects.toMatchObject({ code: "FORBIDDEN" });
  }
});

test("the answer includes temporary refusals: an open conversation, and a wait that would close a cycle", async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const house = await open({
    async play({ run }) {
      if (run.sessionKey === RESEARCH) {
        begun.resolve();
        await goOn.promise;
      }
      return "done";
    },
  });
  const client = await house.client();
  await client.call("tools.invoke", {
    name: "sessions_send",
    args: { sessionKey: RESEARCH, message: "hello", timeoutSeconds: 0 },
    sessionKey: MAIN,
  });
  await begun.promise;
  const inside = answerTo(await explain(house, RESEARCH, MAIN), "send");
  expect(inside).toMatchObject({ allowed: false, code: "open_flow", settings: [] });
  expect(inside.checks.filter(({ now }) => now === true)).toHaveLength(1);
  await client.call("sessions.patch", { key: MAIN, sendPolicy: "deny" });
  // A send first checks for an open conversation.
  expect(answerTo(await explain(house, RESEARCH, MAIN), "send").code).toBe("open_flow");
  goOn.resolve();
  const wait = {
    kind: "run",
    targetId: "x",
    state: "open",
    deadlineAt: house.engine.now() + 60_000,
  } as const;
  await house.store.transaction(async (tx) => {
    const edge = (callId: string, waiterSessionKey: string, targetSessionKey: string) =>
      insertWait(tx, { ...wait, callId, waiterRunId: callId, waiterSessionKey, targetSessionKey });
    await edge("1", RESEARCH, WRITER);
    await edge("2", WRITER, MAIN);
  });
  const closing = answerTo(await explain(house, MAIN, RESEARCH), "send");
  expect(closing).toMatchObject({ allowed: false, code: "wait_cycle" });
  expect(closing.rule).toContain(`${MAIN} -> ${RESEARCH} -> ${WRITER} -> ${MAIN}`);
  const scoped = answerTo(await explain(house, MAIN, RESEARCH, "scoped"), "send");
  expect(scoped.rule).toContain(`${MAIN} -> ${RESEARCH} -> (not visible) -> ${MAIN}`);
  expect(JSON.stringify(scoped)).not.toContain("writer");
});

const HOOK = { name: "news", url: "http://127.0.0.1:1/secret", events: [], secret: "s", enabled: true };

/** Adds an outbox row with this outcome. */
async function row(house: House, id: string, outcome: "sent" | "failed" | "retry", to: string) {
  await house.store.transaction(async (tx) => {
    const route = { channel: "webhook", to };
    const more = { kind: "hook", route, text: "x", state: "pending", createdAt: 1 } as const;
    await insertDelivery(tx, { id, sessionKey: WRITER, ...more });
    await beginAttempt(tx, { id, partsSent: 0 }, "p");
    const ends = {
      sent: { kind: "sent" },
      failed: { kind: "failed", code: "x", error: "password=hunter2hunter2" },
      retry: { kind: "retry", error: "the receiver answered 503", nextAttemptAt: 9_000_000_000_000 },
    } as const;
    await endAttempt(tx, { id, owner: "p" }, ends[outcome], id.length);
  });
}

async function channels(house: House, token?: string): Promise<readonly ChannelRow[]> {
  const client = await house.client(token === undefined ? {} : { token });
  return (await client.request("channels.status")).channels;
}

test("every outgoing destination is listed with its status, but only callers who see every session get figures and errors", async () => {
  const acp = agentSettings("coder", {
    runtime: {
      ...{ type: "acp", command: ["true"], env: {}, permissions: "deny", askSeconds: 1 },
      ...{ sessionTools: false, idleMinutes: 1 },
    },
  });
  const choices = { agents: [agentSettings("main"), acp], features: { hooks: { outgoing: [HOOK] } } };
  const house = await open({ choices });
  const names = async () => (await channels(house)).map(({ id, state }) => `${id} ${state}`);
  expect(await names()).toEqual(["webchat ready", "webhook:news idle", "acp:coder idle"]);
  await row(house, "one", "sent", "news");
  expect(await names()).toContain("webhook:news ready");
  await row(house, "three", "failed", "news");
  expect((await channels(house))[1]).toMatchObject({
    ...{ id: "webhook:news", ok: false, state: "failing", pending: 0, failed: 1 },
    ...{ lastSentAt: 3, lastErrorAt: 5, lastError: expect.not.stringContaining("hunter2") },
  });
  await row(house, "four", "retry", "news");
  await row(house, "five", "failed", "nobody");
  const all = await channels(house);
  expect(all[1]).toMatchObject({
    ...{ state: "retrying", pending: 1, backoffUntil: 9_000_000_000_000 },
    lastError: "the receiver answered 503",
  });
  expect(all[2]).toMatchObject({ id: "other", configured: false, ok: false, failed: 1 });
  expect(JSON.stringify(all)).not.toContain(HOOK.url);
  expect(await channels(house, "reader")).toMatchObject([{ id: "webchat" }, { failed: 1 }, {}, {}]);
  expect(await channels(house, "scoped")).toEqual([
    { id: "webchat", kind: "webchat", configured: true, ok: true, state: "ready" },
    { id: "webhook:news", kind: "webhook", configured: true, ok: true, state: "configured" },
    { id: "acp:coder", kind: "acp", configured: true, ok: true, state: "configured" },
  ]);
});

const told = (raw: Raw) =>
  raw.frames.filter(({ event }) => event === "deliveries").map(({ payload }) => payload);

test("changes of the outbox are sent only to callers who may read the changed row", async () => {
  const house = await open();
  const [admin, scoped, reader] = [
    await joined(house),
    await joined(house, { auth: { token: "scoped" } }),
    await joined(house, { auth: { token: "reader" } }),
  ];
  const client = await house.client();
  await client.call("send", { to: WRITER, message: "hidden", idempotencyKey: "1" });
  await client.call("send", { to: MAIN, message: "hello", idempotencyKey: "2" });
  const settled = (raw: Raw, key: string) =>
    raw.next(({ event, payload }) => {
      return event === "deliveries" && payload.sessionKey === key && payload.state === "sent";
    });
  await settled(admin, WRITER);
  await settled(admin, MAIN);
  await settled(scoped, MAIN);
  expect(new Set(told(scoped).map(({ sessionKey }) => sessionKey))).toEqual(new Set([MAIN]));
  expect(told(admin).filter(({ sessionKey }) => sessionKey === WRITER)).toEqual([
    { id: expect.any(String), sessionKey: WRITER, state: "pending" },
    { id: expect.any(String), sessionKey: WRITER, state: "sent" },
  ]);
  await row(house, "lost", "failed", "nobody");
  await client.call("deliveries.dismiss", { id: "lost" });
  await admin.next(({ event, payload }) => event === "deliveries" && payload.state === "dismissed");
  reader.send({ type: "req", id: "last", method: "health" });
  await reader.res("last");
  expect(told(reader)).toEqual([]);
});

test("the text of a delivery is redacted before it is cut to the requested length", async () => {
  const house = await open();
  await house.store.transaction(async (tx) => {
    const text = `password=${"hunter2".repeat(4)} and then more`;
    const route = { channel: "webchat", to: MAIN };
    const more = { kind: "send", route, text, state: "failed", createdAt: 1 } as const;
    await insertDelivery(tx, { id: "d", sessionKey: MAIN, ...more });
  });
  const client = await house.client();
  const list = async (params: object) => (await client.request("deliveries.list", params)).deliveries[0];
  const cut = await list({ maxChars: 14 });
  expect(cut?.text).toHaveLength(14);
  expect(cut).toMatchObject({ textTruncated: true, text: expect.not.stringContaining("hunter") });
  expect(await list({})).not.toHaveProperty("textTruncated");
});
