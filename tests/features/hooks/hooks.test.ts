// Incoming web hooks: their effects, allowed senders, and refusals.

import { expect, test } from "vitest";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import { textOf } from "../../../src/core/shapes/message.ts";
import type { Run } from "../../../src/core/shapes/run.ts";
import { updateSession } from "../../../src/store/queries/sessions/sessions.ts";
import { type House, TOKEN } from "../../gateway/kit.ts";
import { codesOf } from "../../kit/reference/codes.ts";
import { scriptedModel } from "../../kit/scripted-model.ts";
import { fakeWorld } from "../../kit/world.ts";
import { agentSettings } from "../../tools/app.ts";
import { bearer, HOOK_TOKEN, hook, openHooks, post, runs } from "./kit.ts";

const MAIN = "agent:main:main";

async function ended(house: House, runId: string): Promise<Run> {
  const run = await house.engine.waitForRun(runId, house.engine.now() + 10_000);
  if (run === undefined) throw new Error("there is no such run");
  return run;
}

async function texts(house: House, sessionKey: string): Promise<string[]> {
  const client = await house.client();
  const { messages } = await client.request("chat.history", { sessionKey });
  return messages.map((message) => `${message.role}: ${textOf(message)}`);
}

test("I2: a hook starts a run in its own session, with the hook as provenance, and is answered before the run ends", async () => {
  const gate = Promise.withResolvers<string>();
  const house = await openHooks({}, { play: () => gate.promise });
  const told = await hook(house, "/hooks/agent", {
    message: "disk is full",
    name: "Watcher",
    timeoutSeconds: 60,
  });
  expect(told.status).toBe(202);
  const { runId, sessionKey } = told.body;
  expect(sessionKey).toMatch(/^hook:[0-9a-f-]{36}$/);
  gate.resolve("on it");
  expect(await ended(house, runId)).toMatchObject({
    state: "ok",
    agentId: "main",
    timeoutMs: 60_000,
    input: { provenance: { kind: "hook" }, context: expect.stringContaining('("Watcher")') },
  });
  const client = await house.client();
  const { sessions } = await client.request("sessions.list", {});
  expect(sessions).toContainEqual(
    expect.objectContaining({ key: sessionKey, sessionKind: "hook", channel: "internal", label: "Watcher" }),
  );
});

test("the first request of a hook creates a named session, later requests continue it, and its agent does not change", async () => {
  const house = await openHooks();
  const body = { message: "one", sessionKey: "hook:ci", agentId: "research" };
  const first = await hook(house, "/hooks/agent", body);
  const second = await hook(house, "/hooks/agent", { message: "two", sessionKey: "HOOK:ci" });
  expect([first.body.sessionKey, second.body.sessionKey]).toEqual(["hook:ci", "hook:ci"]);
  expect(await ended(house, second.body.runId)).toMatchObject({ agentId: "research" });
  expect(await hook(house, "/hooks/agent", { ...body, agentId: "writer" })).toMatchObject({ status: 409 });
});

test("a key with colons (hook:gmail:42) is returned as the caller wrote it, and a pattern can match the key", async () => {
  const house = await openHooks({ allowedSessionKeys: ["hook:gmail:*"] });
  const to = (sessionKey: string) => hook(house, "/hooks/agent", { message: "a mail", sessionKey });
  const [first, second] = [await to("hook:gmail:42"), await to("HOOK:gmail:42")];
  expect([first.body.sessionKey, second.body.sessionKey]).toEqual(["hook:gmail:42", "hook:gmail:42"]);
  expect(await ended(house, second.body.runId)).toMatchObject({ state: "ok", agentId: "main" });
  const client = await house.client();
  const { sessions } = await client.request("sessions.list", {
    search: "hook:gmail:42",
  });
  expect(sessions).toMatchObject([{ key: "hook:gmail:42", sessionKind: "hook", channel: "internal" }]);
  expect((await texts(house, "hook:gmail:42")).filter((text) => text === "user: a mail")).toHaveLength(2);
  expect((await to("hook:other:42")).status).toBe(403);
  expect((await to("hook:gmail::42")).status).toBe(400);
});

const FOREIGN = [
  MAIN,
  "main",
  "agent:research:main",
  "agent:nobody:main",
  "agent:main:subagent:0",
  "cron:1",
  "node-1",
  "global",
  "unknown",
];
test.each(FOREIGN)(
  "HK1: the session key %s is refused for a hook, whether or not the session exists",
  async (sessionKey) => {
    const house = await openHooks();
    const { status, body } = await hook(house, "/hooks/agent", { message: "x", sessionKey });
    expect({ status, code: body.error.code }).toEqual({ status: 403, code: "FORBIDDEN" });
    expect(body.error.message).toContain("web hooks may not write to the session");
    expect(await runs(house)).toBe(0);
  },
);

test("HK1, HK3: a wildcard allows all keys except reserved ones, but creates no session", async () => {
  const house = await openHooks({ allowedSessionKeys: ["*"] });
  const to = async (sessionKey: string) =>
    (await hook(house, "/hooks/agent", { message: "x", sessionKey })).status;
  expect(await to("agent:research:main")).toBe(202);
  expect(await to("agent:research:chat:none")).toBe(404);
  expect(await to("cron:1")).toBe(404);
  expect(await to("global")).toBe(403);
  expect(await to("unknown")).toBe(403);
  expect(await to("no key")).toBe(400);
});

test("the send policy applies to hooks, and a refused request leaves nothing behind", async () => {
  const rules = [{ match: { channel: "internal" }, action: "deny" as const }];
  const session = { sendPolicy: { rules, default: "allow" as const } };
  const house = await openHooks({}, { choices: { session } });
  expect(await hook(house, "/hooks/agent", { message: "x" })).toMatchObject({
    status: 403,
    body: { error: { code: "SEND_DENIED" } },
  });
  expect(await runs(house)).toBe(0);
  const client = await house.client();
  const { sessions } = await client.request("sessions.list", {});
  expect(sessions.filter(({ key }) => key.startsWith("hook:"))).toEqual([]);
});

test("the method `wake` refuses a text that is too long, with a code that the reference lists", async () => {
  const client = await (await openHooks({})).client();
  await expect(client.request("wake", { text: "x".repeat(100_001) })).rejects.toMatchObject({
    ...{ code: "INVALID_REQUEST", details: { code: "too_large" } },
  });
  expect(codesOf("wake")).toContain("too_large");
});

test("a hook wakes the main session of the default agent, immediately or with its next run", async () => {
  const house = await openHooks({ allowedSessionKeys: [] });
  const later = await hook(house, "/hooks/wake", { text: "for later", mode: "next-heartbeat" });
  const now = await hook(house, "/hooks/wake", { text: "mail has come" });
  expect([later.status, now.status, now.body.sessionKey]).toEqual([202, 202, MAIN]);
  expect(await ended(house, now.body.runId)).toMatchObject({
    input: { provenance: { kind: "hook", source: "wake" } },
  });
  expect(await texts(house, MAIN)).toEqual([
    "user: for later",
    "user: mail has come",
    "assistant: echo mail has come",
  ]);
});

test("ME3: a run that a web hook wakes in the main session does not know the agent's memory", async () => {
  const model = scriptedModel(() => "done");
  const house = await openHooks({}, { model });
  const client = await house.client();
  await client.request("agents.memory.set", { agentId: "main", revision: 0, text: "- The tea is green." });
  await ended(house, (await hook(house, "/hooks/wake", { text: "mail has come" })).body.runId);
  expect(model.requests.map(({ system }) => system.includes("green"))).toEqual([false]);
  await ended(house, (await client.request("wake", { text: "look" })).runId);
  expect(model.requests.at(-1)?.system).toContain("green");
});

test("RP1: with `deliver` the answer is sent to its destination through the outbox, once; an empty answer is not sent", async () => {
  const house = await openHooks(
    {},
    { play: ({ run }) => (run.input.text === "hush" ? "REPLY_SKIP" : "All well.") },
  );
  const loud = await hook(house, "/hooks/agent", { message: "how is it?", deliver: true, channel: "last" });
  await ended(house, loud.body.runId);
  const hush = await hook(house, "/hooks/agent", { message: "hush", deliver: true, to: "main" });
  await ended(house, hush.body.runId);
  await expect.poll(() => texts(house, MAIN)).toEqual(["assistant: All well."]);
  const rows = await house.store.db
    .selectFrom("deliveries")
    .select(["session_key", "kind", "text"])
    .execute();
  expect(rows).toEqual([{ session_key: loud.body.sessionKey, kind: "send", text: "All well." }]);
});

test("RP2: an answer is skipped if the send policy denies its destination", async () => {
  const house = await openHooks();
  await house.store.transaction((tx) => updateSession(tx, MAIN, { sendPolicy: "deny" }));
  const { body } = await hook(house, "/hooks/agent", { message: "x", deliver: true });
  await ended(house, body.runId);
  const rows = await house.store.db.selectFrom("deliveries").select(["state", "code"]).execute();
  expect(rows).toEqual([{ state: "skipped", code: "send_denied" }]);
});

const BAD: [string, unknown, number, RegExp][] = [
  ["no message", {}, 400, /message is required/],
  ["an empty message", { message: " \n" }, 400, /must not be empty/],
  ["a number", { message: 7 }, 400, /message must be a string/],
  ["half a character", '{"message":"\\ud800"}', 400, /half a character/],
  ["a message that is too long", { message: "x".repeat(100_001) }, 413, /the maximum is 100000/],
  ["an unknown field", { message: "x", sesionKey: "hook:a" }, 400, /unknown field "sesionKey"/],
  ["a prototype", '{"message":"x","__proto__":{"sessionKey":"main"}}', 400, /unknown field "__proto__"/],
  ["another agent", { message: "x", agentId: "nobody" }, 404, /there is no agent/],
  ["another model", { message: "x", model: "a/b" }, 400, /unknown model/],
  ["another thinking", { message: "x", thinking: "hard" }, 400, /valid: off/],
  ["a long timeout", { message: "x", timeoutSeconds: 1e9 }, 400, /at most/],
  ["a timeout below 0", { message: "x", timeoutSeconds: -1 }, 400, /less than 0/],
  ["a place without deliver", { message: "x", to: "main" }, 400, /deliver: true/],
  [
    "another channel",
    { message: "x", deliver: true, channel: "telegram", to: "1" },
    400,
    /no channel "telegram"/,
  ],
  [
    "a place that is not a hook's",
    { message: "x", deliver: true, to: "agent:writer:main" },
    403,
    /may not write/,
  ],
  ["a place that is none", { message: "x", deliver: true, to: "hook:none" }, 404, /no session/],
  ["a name of two lines", { message: "x", name: "a\nb" }, 400, /one line/],
  ["an id of a delivery that is none", { message: "x", idempotencyKey: "a\u0001" }, 400, /printable/],
  ["a list", [], 400, /one JSON object/],
  ["no JSON", "{", 400, /not valid JSON/],
  ["2 MiB", "x".repeat(2 * 1024 * 1024), 413, /larger than/],
];
test.each(BAD)(
  "a body with %s is refused with a clear error, and nothing is stored",
  async (_, body, status, words) => {
    const house = await openHooks();
    const told = await hook(house, "/hooks/agent", body);
    expect(told).toMatchObject({
      status,
      body: { ok: false, error: { message: expect.stringMatching(words) } },
    });
    expect(await runs(house)).toBe(0);
  },
);

test("a hook can set the model only for its own sessions, and not for an ACP agent", async () => {
  const acp = agentSettings("coder", {
    runtime: {
      type: "acp",
      command: ["x"],
      env: {},
      permissions: "deny",
      askSeconds: 1,
      sessionTools: false,
      idleMinutes: 1,
    },
  });
  const agents = [agentSettings("main"), acp];
  const house = await openHooks({ allowedSessionKeys: ["*"] }, { choices: { agents } });
  const model = "offline/rehearsal";
  const ask = async (more: object) =>
    (await hook(house, "/hooks/agent", { message: "x", model, ...more })).status;
  expect(await ask({})).toBe(202);
  expect(await ask({ sessionKey: "main" })).toBe(400);
  expect(await ask({ agentId: "coder" })).toBe(400);
});

test("the token is accepted in either header, and never in the URL", async () => {
  const house = await openHooks();
  const body = { message: "x" };
  expect((await post(house, "/hooks/agent", body, { "x-parley-token": HOOK_TOKEN })).status).toBe(202);
  for (const query of [`token=${HOOK_TOKEN}`, `access_token=${HOOK_TOKEN}`]) {
    const told = await hook(house, `/hooks/agent?${query}`, body);
    expect(told).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining("URL") } },
    });
    expect(JSON.stringify(told.body)).not.toContain(HOOK_TOKEN);
  }
  expect((await post(house, "/hooks/agent", body)).status).toBe(401);
});

test("HP2: the hooks' token and the gateway's token are not interchangeable", async () => {
  const house = await openHooks();
  expect((await post(house, "/hooks/agent", { message: "x" }, bearer(TOKEN))).status).toBe(401);
  expect((await post(house, "/hooks/wake", { text: "x" }, bearer(TOKEN))).status).toBe(401);
  const call = { tool: "sessions_list" };
  expect((await post(house, "/tools/invoke", call, bearer(HOOK_TOKEN))).status).toBe(401);
  expect((await fetch(`${house.http}/metrics`, { headers: bearer(HOOK_TOKEN) })).status).toBe(401);
  await expect(house.client({ token: HOOK_TOKEN })).rejects.toThrow();
  expect(await runs(house)).toBe(0);
});

test("HP2: hooks without a token, or with the gateway's token, are an invalid configuration", async () => {
  const same = await openHooks({ token: TOKEN });
  expect((await post(same, "/hooks/agent", { message: "x" }, bearer(TOKEN))).status).toBe(401);
  const without = await openHooks({ token: "" });
  expect((await post(without, "/hooks/agent", { message: "x" }, bearer("undefined"))).status).toBe(401);
});

test("HP3: after too many wrong tokens from an address, the right hook token and the gateway's own token are still accepted", async () => {
  const world = fakeWorld();
  const house = await openHooks({}, { world });
  const guess = (token: string) => post(house, "/hooks/agent", { message: "x" }, bearer(token));
  for (let count = 0; count < 10; count += 1) expect((await guess(`wrong-${count}`)).status).toBe(401);
  const late = await guess("wrong-again");
  expect(late.status).toBe(429);
  expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await post(house, "/tools/invoke", { tool: "sessions_list" }, bearer(TOKEN))).status).toBe(200);
  expect((await guess(HOOK_TOKEN)).status).toBe(202);
  await world.advance(6_001);
  expect((await guess("wrong-again")).status).toBe(401);
});

test("the error says whether hooks are disabled or the hook does not exist", async () => {
  const off = await openHooks({ enabled: false });
  expect(await hook(off, "/hooks/agent", { message: "x" })).toMatchObject({
    status: 404,
    body: { error: { message: expect.stringContaining("hooks.enabled") } },
  });
  const house = await openHooks();
  for (const path of ["/hooks/none", "/hooks/", "/hooks/agent/", "/hooks/%2e%2e", "/hooks/ci"]) {
    expect((await hook(house, path, { message: "x" })).status).toBe(404);
  }
  const get = await fetch(`${house.http}/hooks/agent`, { headers: bearer(HOOK_TOKEN) });
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
  const form = await hook(house, "/hooks/agent", "payload=x", {
    "content-type": "application/x-www-form-urlencoded",
  });
  expect(form).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining("application/json") } },
  });
});

test("HO4: no content of a hook is logged, and secrets in it are redacted in answers", async () => {
  const world = fakeWorld();
  const house = await openHooks({}, { world });
  const secret = "sk-abcdefghijklmnop1234567890";
  const { body } = await hook(house, "/hooks/agent", { message: `the key is ${secret}` });
  await hook(house, "/hooks/agent", { message: secret, nonsense: secret });
  await ended(house, body.runId);
  expect((await texts(house, body.sessionKey)).join()).not.toContain(secret);
  const log = JSON.stringify(world.logged);
  for (const word of [secret, HOOK_TOKEN]) expect(log).not.toContain(word);
});

const RIGHTS = "token-with-some-rights-0123456789";

test("I13: only the configuration creates a web hook: no method accepts one, and no call of a scoped token adds a path", async () => {
  const sessions = ["hook:*", "agent:*"];
  const scoped = { token: RIGHTS, role: "operator" as const, scopes: ["operator.admin" as const], sessions };
  const house = await openHooks({}, { gateway: { tokens: [scoped] } });
  const before = JSON.stringify(house.settings.hooks);
  const client = await house.client({ token: RIGHTS });
  const mapping = { id: "mine", message: "{{body.text}}" };
  const mine = { hooks: { enabled: true, token: RIGHTS, mappings: [mapping] }, mappings: [mapping] };
  const asked = ["hooks.add", "hooks.update", "config.set", "config.patch", ...Object.keys(METHODS)];
  for (const method of asked) {
    const { properties = {} } = (METHODS[method as MethodName]?.params ?? {}) as { properties?: object };
    expect(
      Object.keys(properties).filter((name) => /hook|mapping|config/i.test(name)),
      method,
    ).toEqual([]);
    await expect(client.call(method, mine), method).rejects.toMatchObject({
      code: expect.stringMatching(/INVALID_REQUEST|FORBIDDEN|NOT_FOUND/),
    });
  }
  expect(JSON.stringify(house.settings.hooks)).toBe(before);
  expect((await hook(house, "/hooks/plain", { text: "x" })).status).toBe(202);
  expect((await hook(house, "/hooks/mine", { text: "x" })).status).toBe(404);
  // The store has no table for web hooks either.
  const tables = await house.store.db.introspection.getTables();
  expect(tables.map(({ name }) => name).filter((name) => /hook/.test(name))).toEqual([]);
});
