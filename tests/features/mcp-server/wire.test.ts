// Malformed and unauthorized requests to `/mcp`.

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { toolSpec } from "../../../src/contract/tools.ts";
import { getSession } from "../../../src/store/queries/sessions/sessions.ts";
import { ask, askNew, heldModel, messageOf, raw, rawNew } from "../../gateway/clients/mcp.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";

const PING = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });

function rawHeaders(port: number, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, path: "/mcp", method: "POST", headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end(PING);
  });
}

test("a wrong host, a foreign page, and a missing or wrong token are refused before reading the body", async () => {
  const house = await openHouse();
  const host = `127.0.0.1:${house.port}`;
  const good = {
    host,
    authorization: `Bearer ${TOKEN}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  };
  expect(await rawHeaders(house.port, good)).toBe(200);
  expect(await rawHeaders(house.port, { ...good, host: "evil.example" })).toBe(403);
  expect(await rawHeaders(house.port, { ...good, origin: "https://evil.example" })).toBe(403);
  expect(await rawHeaders(house.port, { ...good, origin: `http://${host}` })).toBe(200);
  const { authorization: _, ...nobody } = good;
  expect(await rawHeaders(house.port, nobody)).toBe(401);
  const wrong = await raw(house, { body: PING, headers: { authorization: "Bearer guess" } });
  expect(wrong.status).toBe(401);
  expect(wrong.headers.get("www-authenticate")).toMatch(/^Bearer/);
  expect(await getSession(house.store.db, "agent:main:mcp:client")).toMatchObject({ external: true });
});

const INITIALIZE = {
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "wget", version: "1" } },
};
const CALL = { method: "tools/call", params: { name: "agents_list" } };

test.each([
  ["*/*", "text/event-stream"],
  ["text/html, */*;q=0.8", "text/event-stream"],
  ["APPLICATION/JSON, Text/Event-Stream", "text/event-stream"],
  ["", "text/event-stream"],
  [undefined, "text/event-stream"],
  ["application/*", "application/json"],
  ["application/json", "application/json"],
])("a request that accepts %s is answered", async (accept, type) => {
  const house = await openHouse();
  for (const message of [INITIALIZE, CALL]) {
    const sent = request({
      ...{ port: house.port, path: "/mcp", method: "POST" },
      headers: {
        authorization: `Bearer ${TOKEN}`,
        "content-type": "application/json",
        ...(accept === undefined ? {} : { accept }),
      },
    });
    sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }));
    const [incoming] = (await once(sent, "response")) as [IncomingMessage];
    const headers = { "content-type": String(incoming.headers["content-type"]) };
    const body = Readable.toWeb(incoming) as unknown as ReadableStream;
    const answer = new Response(body, { status: incoming.statusCode ?? 0, headers });
    expect([answer.status, headers["content-type"]]).toEqual([200, type]);
    expect(await messageOf(answer)).toMatchObject({ id: 1, result: {} });
  }
});

test("a call without arguments, or with null, gets the defaults", async () => {
  const house = await openHouse();
  for (const more of [{}, { arguments: null }]) {
    const answer = await ask(house, "tools/call", { name: "agents_list", ...more });
    expect(answer).toMatchObject({ result: { structuredContent: { agents: expect.any(Array) } } });
  }
});

const MALFORMED: [string, RequestInit, number, RegExp][] = [
  ["what is no JSON", { body: "{" }, 400, /not valid JSON/],
  ["a number", { body: "7" }, 400, /one JSON object/],
  ["an empty list", { body: "[]" }, 400, /1 to 32 messages/],
  ["too many messages", { body: `[${Array(33).fill(PING).join()}]` }, 400, /got 33/],
  ["a body that is too large", { body: " ".repeat(8 * 1024 * 1024 + 1) }, 413, /larger than/],
  ["another type", { body: PING, headers: { "content-type": "text/plain" } }, 415, /application\/json/],
  ["another method", { method: "PUT", body: PING }, 405, /POST, GET, DELETE/],
  [
    "a handle that is none",
    { body: PING, headers: { "x-parley-handle": "a:b" } },
    400,
    /handle "a:b" is invalid/,
  ],
  [
    "an agent that is none",
    { body: PING, headers: { "x-parley-agent": "nobody" } },
    404,
    /no agent "nobody"; configured/,
  ],
  [
    "a session and a handle",
    { body: PING, headers: { "x-parley-handle": "a", "x-parley-session": "main" } },
    400,
    /give either a session/,
  ],
  [
    "a session that is none",
    { body: PING, headers: { "x-parley-session": "agent:main:chat:none" } },
    404,
    /no session/,
  ],
];
test.each(MALFORMED)("%s gets a clear error", async (_, init, status, words) => {
  const house = await openHouse();
  const answer = await raw(house, init);
  expect(answer.status).toBe(status);
  const message = await messageOf(answer);
  expect(message).toMatchObject({
    jsonrpc: "2.0",
    error: { code: expect.any(Number), message: expect.stringMatching(words) },
  });
  expect(JSON.stringify(message)).not.toMatch(/node:|\.ts:/);
});

test("a hostile client name becomes a harmless handle", async () => {
  const house = await openHouse();
  const names = [
    "../../agent:main:main",
    "Ünïcode ☃ name",
    "\u0000\u202eevil\n",
    "x".repeat(5_000),
    "%2e%2e",
  ];
  for (const name of names) {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } };
    expect(await ask(house, "initialize", params)).toMatchObject({
      result: { serverInfo: { name: "parley" } },
    });
  }
  const rows = await house.store.db
    .selectFrom("sessions")
    .select(["key", "label"])
    .where("external", "=", 1)
    .execute();
  for (const { key, label } of rows) {
    expect(key).toMatch(/^agent:main:mcp:[A-Za-z0-9._-]{1,64}$/);
    expect(label).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect((label ?? "").length).toBeLessThanOrEqual(200);
  }
  expect(rows.length).toBe(names.length);
});

test("a connection id only names the client: it gives no rights, and once ended it stays ended after a restart", async () => {
  const house = await openHouse();
  const clientInfo = { name: "Anna", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const hello = await raw(house, { body });
  const id = hello.headers.get("mcp-session-id") ?? "";
  expect(id).toMatch(/^main:anna:/);
  expect(await messageOf(hello)).toMatchObject({ result: { protocolVersion: "2025-06-18" } });
  const mine = await ask(house, "tools/call", { name: "sessions_inbox" }, { "mcp-session-id": id });
  expect(JSON.stringify(mine)).toContain("agent:main:mcp:anna");
  expect(
    (await raw(house, { body: PING, headers: { authorization: "Bearer guess", "mcp-session-id": id } }))
      .status,
  ).toBe(401);
  const made = await ask(house, "tools/call", { name: "sessions_inbox" }, { "mcp-session-id": "nonsense" });
  expect(JSON.stringify(made)).toContain("agent:main:mcp:client");
  const headers = { "mcp-session-id": id };
  const stream = await raw(house, { method: "GET", headers: { ...headers, accept: "text/event-stream" } });
  expect(stream.status).toBe(200);
  expect((await raw(house, { method: "DELETE", headers })).status).toBe(204);
  await stream.text();
  expect((await raw(house, { method: "DELETE", headers })).status).toBe(404);
  const other = { "mcp-session-id": "nonsense" };
  expect((await raw(house, { method: "DELETE", headers: other })).status).toBe(404);
  await house.stop();
  const late = await raw(await openHouse({ dir: house.dir }), { body: PING, headers });
  expect(late.status).toBe(404);
  const error = { message: expect.stringMatching(/has ended/) };
  expect(await messageOf(late)).toMatchObject({ id: 1, error });
});

test("an unknown method of the newest revision is not found, of older ones a protocol error", async () => {
  const house = await openHouse();
  const answer = await rawNew(house, { method: "tools/eat" });
  expect(answer.status).toBe(404);
  expect(await messageOf(answer)).toMatchObject({ id: 7, error: { code: -32601 } });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/eat" });
  const older = await raw(house, { body });
  expect(older.status).toBe(200);
  expect(await messageOf(older)).toMatchObject({ id: 1, error: { code: -32601 } });
});

test("params that are null count as absent", async () => {
  const house = await openHouse();
  for (const method of ["ping", "tools/list"]) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: null });
    expect(await messageOf(await raw(house, { body }))).toMatchObject({ id: 1, result: {} });
  }
});

const HISTORY = { method: "tools/call", name: "sessions_history" };
const marked = (sessionKey: string) => ({
  ...HISTORY,
  params: { name: HISTORY.name, arguments: { sessionKey } },
});

test("an argument that the schema of a tool marks must equal its header", async () => {
  const { properties } = toolSpec("sessions_history").parameters as { properties: { sessionKey: object } };
  const before = properties.sessionKey;
  properties.sessionKey = { ...before, "x-mcp-header": "Session" };
  cleanup(() => {
    properties.sessionKey = before;
  });
  const house = await openHouse();
  for (const value of ["main", "=?base64?bWFpbg==?="]) {
    const answer = await askNew(house, marked("main"), { "mcp-param-session": value });
    expect(answer).toMatchObject({ result: { structuredContent: { sessionKey: "main" } } });
  }
  for (const headers of [{}, { "mcp-param-session": "other" }, { "mcp-param-session": "=?base64?bWFp!?=" }]) {
    const answer = await rawNew(house, marked("main"), headers as Record<string, string>);
    expect(answer.status).toBe(400);
    expect(await messageOf(answer)).toMatchObject({ id: 7, error: { code: -32020 } });
  }
});

test("a call of the newest revision that can take long is answered with a stream, and others as JSON", async () => {
  const house = await openHouse();
  const typeOf = async (name: string, args: object, headers = {}) => {
    const request = { method: "tools/call", name, params: { name, arguments: args } };
    const answer = await rawNew(house, request, headers);
    expect(await messageOf(answer)).toMatchObject({ id: 7, result: { resultType: "complete" } });
    return answer.headers.get("content-type");
  };
  const message = { sessionKey: "main", message: "hi" };
  expect(await typeOf("sessions_list", {})).toBe("application/json");
  expect(await typeOf("sessions_send", { ...message, timeoutSeconds: 0 })).toBe("application/json");
  expect(await typeOf("sessions_send", message)).toBe("text/event-stream");
});

test("older revisions are negotiated; a client with an unknown newer revision gets the list of supported ones", async () => {
  const house = await openHouse();
  for (const version of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
    const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "old", version: "1" } };
    expect(await ask(house, "initialize", params)).toMatchObject({ result: { protocolVersion: version } });
  }
  expect(await askNew(house, { method: "server/discover" })).toMatchObject({
    result: { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
  });
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2031-01-01",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const answer = await ask(
    house,
    "tools/list",
    { _meta },
    { "mcp-protocol-version": "2031-01-01", "mcp-method": "tools/list" },
  );
  expect(answer).toMatchObject({ error: { data: { supported: ["2026-07-28"] } } });
});

test("an invalid call is a protocol error, and a refusal by a tool is a result", async () => {
  const house = await openHouse();
  expect(await ask(house, "tools/call", { arguments: {} })).toMatchObject({ error: { code: -32602 } });
  expect(await ask(house, "tools/call", { name: "sessions_list", arguments: [] })).toMatchObject({
    error: { code: -32602 },
  });
  expect(await ask(house, "tools/eat", {})).toMatchObject({ error: { code: -32601 } });
  expect(await ask(house, "resources/read", { uri: "file:///etc/passwd" })).toMatchObject({
    error: { code: -32602 },
  });
  const wrong = await ask(house, "tools/call", { name: "sessions_list", arguments: { limt: 3 } });
  expect(wrong).toMatchObject({ result: { isError: true } });
  expect(JSON.stringify(wrong)).toMatch(/did you mean \W*limit/);
  const inbox = await ask(house, "tools/call", { name: "sessions_inbox", arguments: { afer: "x" } });
  expect(JSON.stringify(inbox)).toMatch(/unknown_argument/);
});

test("a gateway that stops ends open streams and waiting calls, and loses nothing that it has accepted", async () => {
  const model = heldModel();
  const house = await openHouse({ play: model.play });
  const stream = await raw(house, { method: "GET", headers: { accept: "text/event-stream" } });
  expect(stream.status).toBe(200);
  const args = { sessionKey: "main", message: "work", timeoutSeconds: 600 };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "sessions_send", arguments: args },
  });
  const call = await raw(house, { body });
  await model.started;
  const ended = Promise.all([stream.text().catch(() => ""), call.text().catch(() => "")]);
  await house.stop();
  await ended;
  const again = await openHouse({ dir: house.dir });
  const told = await again.engine.waitForRun(await runIn(again), again.engine.now() + 10_000);
  expect(told?.state).toBe("ok");
});

async function runIn({ store }: Awaited<ReturnType<typeof openHouse>>): Promise<string> {
  const row = await store.db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "=", "agent:main:main")
    .executeTakeFirstOrThrow();
  return row.run_id;
}
