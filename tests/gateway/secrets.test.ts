// I14: secrets that were planted everywhere come out nowhere: no payload, no event, no log line.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { cleanup } from "../kit/engine.ts";
import { startProcess } from "../kit/gateway-process.ts";
import { openHouse, openRaw, type Raw } from "./kit.ts";

const KEY = "sk-proj-abcdefghij0123456789ABCDEF";
const PASSWORD = "correct-horse-7-battery";

/** A model server that is down at first and then refuses, and quotes the key each time. */
async function refusingModel(): Promise<string> {
  let asked = 0;
  const server = createServer((_, response) => {
    response.writeHead(asked++ === 0 ? 503 : 400, { "content-type": "application/json", "retry-after": "0" });
    response.end(JSON.stringify({ error: { message: `the key ${KEY} is not good`, type: "x" } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

async function say(raw: Raw, id: string, method: string, params: object = {}): Promise<void> {
  raw.send({ type: "req", id, method, params });
  const answer = await raw.res(id);
  expect(answer.ok, `${id} ${answer.error?.message}`).toBe(true);
}

/** Everything that a client can ask about one session. */
async function askEverything(raw: Raw, key: string): Promise<void> {
  for (const method of ["health", "status", "agents.list", "models.list", "tools.catalog"]) {
    await say(raw, method, method);
  }
  await say(raw, "list", "sessions.list", { includeDerivedTitles: true, includeLastMessage: true });
  await say(raw, "preview", "sessions.preview", { keys: [key] });
  await say(raw, "history", "chat.history", { sessionKey: key });
  await say(raw, "outbox", "deliveries.list");
  const tools = [
    ["sessions_list", { messageLimit: 5 }],
    ["sessions_history", { sessionKey: key, includeTools: true }],
    ["session_status", {}],
    ["sessions_search", { query: "password" }],
  ] as const;
  for (const [name, args] of tools) await say(raw, name, "tools.invoke", { name, arguments: args });
}

test("I14: a key that a provider quotes and what a person told are in no payload or log line", async () => {
  const baseUrl = await refusingModel();
  const model = {
    id: "refuser",
    contextWindow: 10_000,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  const gateway = await startProcess({
    config: {
      models: { providers: { local: { api: "openai-completions", baseUrl, apiKey: KEY, models: [model] } } },
      agents: { defaults: { model: "local/refuser" } },
    },
  });
  const raw = await openRaw(gateway.url);
  await say(raw, "hello", "connect", {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "x", version: "1", platform: "p", mode: "m", displayName: `me ${KEY}` },
    auth: { token: gateway.token },
  });
  const message = `my password: "${PASSWORD}" and my key ${KEY}`;
  raw.send({ type: "req", id: "a", method: "agent", params: { message, idempotencyKey: "run" } });
  const end = await raw.next(({ id, payload }) => id === "a" && payload?.status !== "accepted");
  expect(end.payload).toMatchObject({ status: "error", summary: expect.stringContaining("is not good") });
  await say(raw, "wait", "agent.wait", { runId: "run" });
  await say(raw, "inject", "chat.inject", { sessionKey: "main", message: `note: ${KEY}` });
  await say(raw, "send", "send", { to: "main", message: `for you: ${KEY}`, idempotencyKey: "s" });
  await raw.next((frame) => frame.event === "chat" && frame.payload.stopReason === "injected");
  await askEverything(raw, "agent:main:main");
  await gateway.end("SIGTERM");
  expect(gateway.stderr()).toContain("model retry");
  for (const secret of [KEY, PASSWORD, gateway.token]) {
    expect(JSON.stringify(raw.frames)).not.toContain(secret);
    expect(gateway.stderr()).not.toContain(secret);
  }
});

test("I14: a secret at the place where a tool's result is cut is masked, not cut in two", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  await say(raw, "hello", "connect", {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "x", version: "1", platform: "p", mode: "m" },
    auth: { token: "main-token-of-the-tests" },
  });
  const run = { runId: "r", sessionKey: "agent:main:main" };
  const tool = { callId: "c", name: "read", isError: false, atMs: 1 };
  const result = `${"x ".repeat(7_992)}${KEY}`;
  house.engine.bus.publish({ kind: "tool", phase: "end", ...run, ...tool, result });
  const told = await raw.next((frame) => frame.event === "agent" && frame.payload.stream === "tool");
  expect(told.payload.data.result).toMatch(/ \[redacted\]$/);
});
