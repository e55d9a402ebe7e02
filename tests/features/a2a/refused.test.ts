// Requests that the A2A door refuses, and its public paths: raw requests, and cards checked with the official
// library.

import { AgentCard, verifyAgentCardSignature } from "@a2a-js/sdk";
import { expect, test } from "vitest";
import { EXPOSED, openExposed } from "../../gateway/clients/a2a.ts";
import { type House, openHouse, TOKEN } from "../../gateway/kit.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";

const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };

async function post(house: House, path: string, body: unknown, headers: Record<string, string> = {}) {
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const url = `${house.http}/a2a/research${path}`;
  const response = await fetch(url, { method: "POST", headers: { ...HEADERS, ...headers }, body: sent });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  const read: any = await response.json();
  return { status: response.status, body: read };
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: 7, method, params });
const part = { text: "Hello" };
const message = { messageId: "m1", role: "ROLE_USER", parts: [part] };

async function countRuns(house: House): Promise<number> {
  return (await house.store.db.selectFrom("runs").select("run_id").execute()).length;
}

const WRONG: [string, unknown, number, RegExp][] = [
  ["no message", {}, -32602, /message is missing/],
  ["no id", { message: { ...message, messageId: "" } }, -32602, /messageId/],
  ["an id with a line break", { message: { ...message, messageId: "a\nb" } }, -32602, /messageId/],
  ["the role of the agent", { message: { ...message, role: "ROLE_AGENT" } }, -32602, /ROLE_USER/],
  ["no parts", { message: { ...message, parts: [] } }, -32602, /parts/],
  ["a part without content", { message: { ...message, parts: [{}] } }, -32602, /parts\[0\]/],
  ["parts that are no list", { message: { ...message, parts: "x" } }, -32602, /parts/],
  ["an empty text", { message: { ...message, parts: [{ text: " " }] } }, -32602, /no text/],
  [
    "a program",
    { message: { ...message, parts: [{ raw: "AAAA", mediaType: "application/x-sh" }] } },
    -32005,
    /x-sh/,
  ],
  [
    "a text that is not UTF-8",
    { message: { ...message, parts: [{ raw: "/////w==", mediaType: "text/plain" }] } },
    -32602,
    /UTF-8/,
  ],
  ["a context with a path", { message: { ...message, contextId: "../main" } }, -32602, /contextId/],
  ["a context with a colon", { message: { ...message, contextId: "a:b" } }, -32602, /contextId/],
  ["a long context", { message: { ...message, contextId: "x".repeat(129) } }, -32602, /contextId/],
  ["an unknown task", { message: { ...message, taskId: "nobody" } }, -32001, /no task/],
  [
    "an address for notifications",
    { message, configuration: { taskPushNotificationConfig: { url: "http://127.0.0.1/" } } },
    -32003,
    /push/i,
  ],
];

test.each(WRONG)(
  "a message with %s is refused by name, and nothing is accepted",
  async (_, params, code, text) => {
    const house = await openExposed();
    const { status, body } = await post(house, "", rpc("SendMessage", params));
    expect(status).toBe(200);
    expect(body).toMatchObject({
      jsonrpc: "2.0",
      id: 7,
      error: { code, message: expect.stringMatching(text) },
    });
    expect(JSON.stringify(body)).not.toMatch(/\\n +at |node_modules/);
    expect(await countRuns(house)).toBe(0);
  },
);

test("requests that are not JSON-RPC, unknown methods and unknown routes get one clear error", async () => {
  const house = await openExposed();
  for (const given of ["[]", "null", JSON.stringify({ id: 7, method: "SendMessage" })]) {
    const { body } = await post(house, "", given);
    expect(body.error).toMatchObject({ code: -32600, message: expect.stringContaining("JSON-RPC 2.0") });
  }
  for (const given of ["{", "", "{} {}"]) {
    const { body } = await post(house, "", given);
    expect(body).toMatchObject({ id: null, error: { code: -32700, message: "the body is not valid JSON" } });
  }
  const { body: list } = await post(house, "", rpc("SendMessage", [1]));
  expect(list.error).toMatchObject({ code: -32602, message: expect.stringContaining("params") });
  const { body: unknown } = await post(house, "", rpc("tasks/send", {}));
  expect(unknown.error).toMatchObject({ code: -32601, message: 'unknown A2A method "tasks/send"' });
  const route = await post(house, "/nowhere", {});
  expect(route.status).toBe(404);
  const { body: extended } = await post(house, "", rpc("GetExtendedAgentCard", {}));
  expect(extended.error.code).toBe(-32004);
  const { body: push } = await post(house, "", rpc("CreateTaskPushNotificationConfig", {}));
  expect(push.error.code).toBe(-32003);
});

test("over HTTP+JSON, errors have the status and the form of the protocol", async () => {
  const house = await openExposed();
  const malformed = await post(house, "/message:send", { message: { ...message, parts: [] } });
  expect(malformed).toMatchObject({
    status: 400,
    body: { error: { code: 400, status: "INVALID_ARGUMENT", details: [{ domain: "a2a-protocol.org" }] } },
  });
  const missing = await fetch(`${house.http}/a2a/research/tasks/nobody`, { headers: HEADERS });
  expect([missing.status, await missing.json()]).toMatchObject([404, { error: { status: "NOT_FOUND" } }]);
  const size = await fetch(`${house.http}/a2a/research/tasks?pageSize=1000`, { headers: HEADERS });
  expect([size.status, await size.json()]).toMatchObject([
    400,
    { error: { message: "pageSize must be 1 to 100" } },
  ]);
  const tokenless = await fetch(`${house.http}/a2a/research/tasks`);
  expect([tokenless.status, tokenless.headers.get("www-authenticate")]).toEqual([
    401,
    expect.stringContaining("Bearer"),
  ]);
});

test("a request without a version counts as 1.0; other versions are refused", async () => {
  const house = await openExposed();
  const ask = (version?: string) =>
    post(house, "", rpc("ListTasks", {}), version === undefined ? {} : { "a2a-version": version });
  for (const version of [undefined, "1.0", "1"]) expect((await ask(version)).body.result.tasks).toEqual([]);
  for (const version of ["0.3", "2.0", "x"]) expect((await ask(version)).body.error.code).toBe(-32009);
});

test("AC1: a card is signed; the key stays after a restart, and a changed card does not verify", async () => {
  const dir = temporaryFolder();
  const first = await openExposed({ dir });
  // biome-ignore lint/suspicious/noExplicitAny: the library checks the shape.
  const read = async (house: House, path: string): Promise<any> =>
    (await fetch(`${house.http}${path}`)).json();
  const card = AgentCard.fromJSON(await read(first, "/a2a/research/.well-known/agent-card.json"));
  const { signatures: _, ...facts } = await read(first, "/.well-known/agent-card.json");
  expect(AgentCard.toJSON(card)).toMatchObject(facts);
  expect(card).toMatchObject({ name: "research", description: "Reads papers.", version: "0.0.0-test" });
  expect(card.supportedInterfaces.map(({ url, protocolBinding }) => [url, protocolBinding])).toEqual([
    [`${first.http}/a2a/research`, "JSONRPC"],
    [`${first.http}/a2a/research`, "HTTP+JSON"],
  ]);
  await first.stop();
  const second = await openExposed({ dir });
  const { keys } = await read(second, "/a2a/jwks.json");
  expect(keys).toHaveLength(1);
  expect(Object.keys(keys[0])).not.toContain("d");
  const verify = verifyAgentCardSignature(async (kid) =>
    keys.find((key: { kid: string }) => key.kid === kid),
  );
  await verify(card);
  await expect(verify({ ...card, description: "Something else" })).rejects.toThrow();
});

test("a card has a tag of its content: an unchanged card is not sent again", async () => {
  const dir = temporaryFolder();
  const first = await openExposed({ dir });
  const ask = (house: House, tag = "") =>
    fetch(`${house.http}/a2a/research/.well-known/agent-card.json`, {
      headers: { host: "cards.test", "if-none-match": tag },
    });
  const shown = await ask(first);
  const tag = shown.headers.get("etag") ?? "";
  expect([shown.status, tag, shown.headers.get("cache-control")]).toEqual([
    200,
    expect.stringMatching(/^"[\w-]{43}"$/),
    "max-age=300",
  ]);
  const again = await ask(first, `"other", W/${tag}`);
  expect([again.status, again.headers.get("etag"), await again.text()]).toEqual([304, tag, ""]);
  const settings = { ...EXPOSED, descriptions: { research: "Reads books." } };
  const changed = await openExposed({ choices: { features: { a2a: settings } } });
  expect((await ask(changed, tag)).status).toBe(200);
});

test("without exposed agents there is no card, no key and no agent", async () => {
  const house = await openHouse();
  for (const path of [
    "/.well-known/agent-card.json",
    "/a2a/research/.well-known/agent-card.json",
    "/a2a/jwks.json",
  ])
    expect((await fetch(`${house.http}${path}`, { headers: HEADERS })).status).toBe(404);
  expect((await post(house, "", rpc("ListTasks", {}))).status).toBe(404);
  const hidden = await openHouse({ choices: { features: { a2a: EXPOSED } } });
  const card = await fetch(`${hidden.http}/a2a/main/.well-known/agent-card.json`);
  expect(card.status).toBe(404);
  expect((await fetch(`${hidden.http}/a2a/jwks.json`, { method: "POST" })).status).toBe(405);
});

test("a path without an agent needs a token, and paths beside those of A2A show no card", async () => {
  const { http } = await openHouse({ choices: { features: { a2a: EXPOSED } } });
  expect((await fetch(`${http}/a2a`)).status).toBe(401);
  for (const path of ["/peer/.well-known/agent-card.json", "/peer/pair", "/peer"])
    expect((await fetch(`${http}${path}`)).status).toBe(404);
});
