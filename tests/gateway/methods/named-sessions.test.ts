// Named sessions: a person or a client creates a session by using its name; a tool of an agent never does.

import { expect, test } from "vitest";
import type { TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { openAi, said } from "../clients/openai.ts";
import { type House, openHouse } from "../kit.ts";

const READER = "a-token-that-only-reads-and-is-long";
const SCOPED = "a-token-of-the-writers-sessions-only";

const REFUSED = { status: expect.stringMatching(/^(error|forbidden)$/) };

async function keys(house: House): Promise<string[]> {
  const client = await house.client();
  const { sessions } = await client.request("sessions.list", {});
  return sessions.map(({ key }) => key).sort();
}

const NAMES = [
  ["work", "agent:main:work"],
  ["agent:research:work", "agent:research:work"],
  [
    "agent:research:acp:0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11",
    "agent:research:acp:0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11",
  ],
  ["agent:main:acp-bridge:desk:1", "agent:main:acp-bridge:desk:1"],
  ["explicit:a:b", "agent:main:explicit:a:b"],
];

test.each(NAMES)("named sessions: chat.send and agent to %j create %s, once", async (name, key) => {
  const house = await openHouse();
  const client = await house.client();
  const before = await client.request("chat.history", { sessionKey: name });
  expect(before).toMatchObject({ sessionKey: key, messages: [] });
  expect(before.sessionId).toBeUndefined();
  expect(await keys(house)).not.toContain(key);

  const first = await client.agent({ message: "one", sessionKey: name, idempotencyKey: "first" });
  expect(await first.done).toMatchObject({ status: "ok" });
  await client.request("chat.send", { sessionKey: key, message: "two", idempotencyKey: "second" });
  await client.request("agent.wait", { runId: "second" });
  const after = await client.request("chat.history", { sessionKey: name });
  expect(after.messages.filter(({ role }) => role === "user")).toHaveLength(2);
  expect((await keys(house)).filter((one) => one === key)).toHaveLength(1);
  const row = await client.request("sessions.list", { keys: [key] });
  expect(row.sessions).toMatchObject([{ sessionKind: "other", agentId: key.split(":")[1] }]);
});

test("named sessions: simultaneous first messages create one session", async () => {
  const house = await openHouse();
  const client = await house.client();
  const send = (n: number) =>
    client.agent({ message: `m${n}`, sessionKey: "work", idempotencyKey: `run ${n}` }).done;
  expect(await Promise.all([1, 2, 3].map(send))).toMatchObject([
    { status: "ok" },
    { status: "ok" },
    { status: "ok" },
  ]);
  const { messages } = await client.request("chat.history", { sessionKey: "work" });
  expect(messages.filter(({ role }) => role === "user")).toHaveLength(3);
});

test("named sessions: sessions.create creates the session of a key or returns the existing one, with its agent", async () => {
  const house = await openHouse();
  const client = await house.client();
  const create = (more: object) =>
    client.request("sessions.create", {
      idempotencyKey: JSON.stringify(more),
      ...more,
    });
  const made = await create({ key: "agent:main:work", label: "Work" });
  expect(made).toMatchObject({ ok: true, key: "agent:main:work" });
  expect(await create({ key: "work" })).toEqual(made);
  expect(await create({ key: "Trip to Rome", agentId: "research" })).toMatchObject({
    key: "agent:research:Trip%20to%20Rome",
  });
  expect(await create({ key: "main" })).toMatchObject({ key: "agent:main:main" });
  await expect(create({ key: "agent:main:work", agentId: "research" })).rejects.toThrow(
    /belongs to agent "main"/,
  );
  await expect(create({ key: "work", client: "acp" })).rejects.toThrow(/either key or client/);
  const taken = [
    "agent:main:subagent:1",
    "agent:main:chat:1",
    "agent:main:mcp:x",
    "cron:x",
    "hook:x",
    "node-x",
  ];
  for (const key of [...taken, "agent:main:telegram:group:1", "global", "unknown", "agent:nobody:work"]) {
    await expect(create({ key }), key).rejects.toMatchObject({
      code: expect.stringMatching(/NOT_FOUND|FORBIDDEN/),
    });
  }
  await expect(create({ key: "0b6f1c0e-7d1c-4c57-9a53-6a2f1d0c9b11" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  await expect(create({ key: "x".repeat(513) })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  expect(await keys(house)).toHaveLength(5);
});

test("named sessions: an agent's id alone is not the name of a session", async () => {
  const house = await openHouse();
  const client = await house.client();
  const sent = client.request("chat.send", { sessionKey: "research", message: "x", idempotencyKey: "x" });
  await expect(sent).rejects.toMatchObject({ code: "NOT_FOUND" });
  expect(await keys(house)).not.toContain("agent:main:research");
});

test("named sessions: neither a refused first message nor reading creates a session", async () => {
  const house = await openHouse();
  const client = await house.client();
  const empty = client.request("chat.send", { sessionKey: "work", message: " ", idempotencyKey: "x" });
  await expect(empty).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  await client.request("chat.history", { sessionKey: "work" });
  await expect(client.request("sessions.reset", { key: "work" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  expect(await keys(house)).not.toContain("agent:main:work");
});

test("named sessions: a token creates only sessions that its scope and its patterns cover", async () => {
  const tokens: TokenSettings[] = [
    { token: READER, role: "operator", scopes: ["operator.read"] },
    { token: SCOPED, role: "operator", scopes: ["operator.write"], sessions: ["agent:writer:*"] },
  ];
  const house = await openHouse({ gateway: { tokens } });
  const reader = await house.client({ token: READER });
  await expect(reader.request("chat.history", { sessionKey: "work" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  const sent = { message: "x", idempotencyKey: "x" };
  await expect(reader.request("chat.send", { sessionKey: "work", ...sent })).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
  const scoped = await house.client({ token: SCOPED });
  await expect(scoped.request("chat.send", { sessionKey: "work", ...sent })).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
  await scoped.request("chat.send", { sessionKey: "agent:writer:work", ...sent });
  expect((await keys(house)).filter((key) => key.endsWith(":work"))).toEqual(["agent:writer:work"]);
});

/** Tools that take the key of a session. */
const KEYED: Record<string, object> = {
  sessions_send: { message: "hello", timeoutSeconds: 0 },
  sessions_history: {},
  sessions_search: { query: "hello" },
  session_status: {},
  subagents: { action: "cancel" },
};

test("named sessions: no tool that takes a session key creates a session, for any caller", async () => {
  const house = await openHouse();
  const client = await house.client();
  const { tools } = await client.call<{ tools: { name: string; parameters: { properties: object } }[] }>(
    "tools.catalog",
    { sessionKey: "main" },
  );
  const takesKeys = tools
    .filter((tool) => "sessionKey" in tool.parameters.properties)
    .map(({ name }) => name);
  expect(takesKeys.sort()).toEqual(Object.keys(KEYED).sort());
  for (const [name, more] of Object.entries(KEYED)) {
    for (const sessionKey of ["agent:main:work", "work", "agent:main:acp:1"]) {
      const args = { sessionKey, ...more };
      const result = await client.call<object>("tools.invoke", { name, args, sessionKey: "main" });
      expect(result, `${name} ${sessionKey}`).toMatchObject(REFUSED);
    }
  }
  expect(await keys(house)).toHaveLength(3);
});

test("named sessions: the session header of an OpenAI request creates a session of the model's agent", async () => {
  const house = await openHouse();
  const client = openAi(house);
  const at = (key: string) => ({ headers: { "x-parley-session-key": key } });
  const request = { model: "parley/writer", messages: [said("Hello")] };
  const { response } = await client.chat.completions.create(request, at("agent:writer:work")).withResponse();
  expect(response.headers.get("x-parley-session-key")).toBe("agent:writer:work");
  await expect(client.chat.completions.create(request, at("agent:research:work"))).rejects.toMatchObject({
    status: 409,
  });
  expect((await keys(house)).filter((key) => key.endsWith(":work"))).toEqual(["agent:writer:work"]);
});
