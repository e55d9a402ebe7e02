// Roles and scopes of every method, the sessions that a token covers, hosts and origins.

import { request } from "node:http";
import { expect, test } from "vitest";
import { METHODS, type MethodName } from "../../../src/contract/methods.ts";
import type { ToolResultOf } from "../../../src/contract/tools.ts";
import type { TokenScope, TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { forFile } from "../../kit/cleanup.ts";
import { type Device, joinedNode, pairedDevice } from "../clients/devices.ts";
import { type House, joined, openHouse, openRaw, TOKEN } from "../kit.ts";

const ORDER: TokenScope[] = ["operator.read", "operator.write", "operator.admin"];
const TOKENS: TokenSettings[] = [
  ...ORDER.map((scope) => ({ token: scope, role: "operator" as const, scopes: [scope] })),
  { token: "nobody", role: "operator", scopes: [] },
  { token: "node", role: "node", scopes: [] },
  { token: "research-only", role: "operator", scopes: ["operator.admin"], sessions: ["agent:research:*"] },
];

let everyones: Promise<{ house: House; key: Device }> | undefined;

/** One gateway with a paired device for all methods, because it executes none of the requests. */
function sharedHouse(): Promise<{ house: House; key: Device }> {
  everyones ??= forFile(async () => {
    const house = await openHouse({ gateway: { tokens: TOKENS } });
    return { house, key: await pairedDevice(house, "node") };
  });
  return everyones;
}

test.each(Object.keys(METHODS) as MethodName[])(
  "%s accepts its scope and scopes that imply it, and no other",
  async (method) => {
    const { house, key } = await sharedHouse();
    for (const token of [...ORDER, "nobody", "node"]) {
      const raw =
        token === "node" ? await joinedNode(house, key, { token }) : await joined(house, { auth: { token } });
      // No method has this param. A caller without the right must get an error about the right, not about the
      // param.
      raw.send({ type: "req", id: "x", method, params: { zzzzzzzz: 1 } });
      const { error } = await raw.res("x");
      const { scope } = METHODS[method];
      const ofNodes = scope === "node";
      const enough = ofNodes ? token === "node" : ORDER.indexOf(token as TokenScope) >= ORDER.indexOf(scope);
      expect(error?.code, token).toBe(enough ? "INVALID_REQUEST" : "FORBIDDEN");
      if (!enough && !ofNodes && token !== "node") expect(error?.details?.missingScope).toBe(scope);
      if (!enough && (ofNodes || token === "node")) expect(error?.message).toContain('role "node"');
    }
  },
);

/** Methods that tell or change something of all sessions, of people, or of the machine. */
const OF_EVERY_SESSION = [
  ...["agents.prompt", "agents.memory.get", "agents.memory.set", "models.discover", "models.test"],
  ...["chains.record", "chains.replay", "chains.diff"],
  ...["channels.pair.list", "channels.pair.approve", "channels.pair.reject", "channels.pair.remove"],
  ...["demo.start", "demo.stop", "metrics.history", "logs.tail", "store.backups", "store.backup", "doctor"],
  ...["config.check", "config.get", "config.set", "config.patch", "config.schema"],
  ...["servers.list", "servers.test", "servers.login", "servers.login.finish", "servers.logout"],
  ...["device.token.list", "device.token.revoke", "labels.release"],
  ...["peers.list", "peers.add", "peers.update", "peers.remove"],
] as MethodName[];

test("I9: a token for some sessions is refused by each method that concerns every session", async () => {
  const marked = Object.entries(METHODS).filter(([, row]) => "everySession" in row);
  expect(marked.map(([method]) => method).sort()).toEqual(OF_EVERY_SESSION.toSorted());
  const { house } = await sharedHouse();
  const raw = await joined(house, { auth: { token: "research-only" } });
  for (const method of OF_EVERY_SESSION) {
    raw.send({ type: "req", id: method, method, params: { zzzzzzzz: 1 } });
    const { error } = await raw.res(method);
    expect(error?.details?.code, method).toBe("missing_scope");
    expect(error?.message, method).toContain("every session");
  }
});

test("a client may request fewer rights than its token has, but never more", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  const scopesOf = async (token: string, scopes: string[]): Promise<string[]> => {
    const raw = await joined(house, { auth: { token }, scopes });
    return (await raw.res("hello")).payload.auth.scopes;
  };
  expect(await scopesOf(TOKEN, ["operator.read"])).toEqual(["operator.read"]);
  expect(await scopesOf(TOKEN, [])).toHaveLength(3);
  expect(await scopesOf("operator.read", ["operator.admin"])).toEqual(["operator.read"]);
  const parts = ["operator.pairing", "operator.approvals"];
  expect(await scopesOf(TOKEN, parts.slice(1))).toEqual(parts.slice(1));
  expect(await scopesOf(TOKEN, parts)).toEqual(["operator.read", ...parts]);
  expect(await scopesOf("operator.read", parts)).toEqual(["operator.read"]);
});

test("a node token connects only as a node, and an operator token may also connect as one", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  const asNode = await joinedNode(house, await pairedDevice(house, TOKEN), { token: TOKEN });
  expect((await asNode.res("hello")).payload).toMatchObject({
    auth: { role: "node", scopes: [] },
    features: { methods: ["node.invoke.result", "node.event"] },
  });
  const raw = await openRaw(house.url);
  const params = {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "x", version: "1", platform: "p", mode: "m" },
  };
  raw.send({
    type: "req",
    id: "c",
    method: "connect",
    params: { ...params, role: "operator", auth: { token: "node" } },
  });
  expect((await raw.res("c")).error?.code).toBe("FORBIDDEN");
});

test("I9: a token with patterns can use the sessions that it covers and sees no others", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  const client = await house.client({ token: "research-only" });
  const list = await client.request("sessions.list", {});
  expect(list.sessions.map((row) => row.key)).toEqual(["agent:research:main"]);
  const refused: [string, object][] = [
    ["chat.history", { sessionKey: "agent:main:main" }],
    ["chat.send", { sessionKey: "agent:main:main", message: "x", idempotencyKey: "a" }],
    ["chat.abort", { sessionKey: "agent:main:main" }],
    ["chat.inject", { sessionKey: "agent:main:main", message: "x" }],
    ["agent", { message: "x", sessionKey: "agent:main:main", idempotencyKey: "b" }],
    ["agent", { message: "x", idempotencyKey: "c" }],
    ["send", { to: "agent:main:main", message: "x", idempotencyKey: "d" }],
    ["sessions.resolve", { key: "agent:main:main" }],
    ["sessions.patch", { key: "agent:main:main", label: "x" }],
    ["sessions.reset", { key: "agent:main:main" }],
    ["sessions.delete", { key: "agent:main:main" }],
    ["sessions.create", { agentId: "main", idempotencyKey: "e" }],
    ["tools.catalog", { sessionKey: "agent:main:main" }],
    ["tools.invoke", { name: "sessions_list", sessionKey: "agent:main:main" }],
  ];
  for (const [method, params] of refused) {
    await expect(client.call(method, params), method).rejects.toMatchObject({ code: "FORBIDDEN" });
  }
  const preview = await client.request("sessions.preview", {
    keys: ["agent:main:main"],
  });
  expect(preview.previews[0]?.status).toBe("missing");
  const main = await house.client();
  await main.call("chat.send", { sessionKey: "agent:main:main", message: "x", idempotencyKey: "hidden" });
  await expect(client.call("agent.wait", { runId: "hidden" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  await expect(client.call("agent.wait", { runId: "unknown" })).rejects.toMatchObject({ code: "NOT_FOUND" });
  const health = await client.request("health");
  expect(health).not.toHaveProperty("lanes");
  expect(await main.call("health")).toHaveProperty("lanes");
});

test("a tool call for a session sees what the session sees, limited by the rights of the token", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  const client = await house.client({ token: "research-only" });
  const list = await client.call<ToolResultOf<"sessions_list">>("tools.invoke", {
    name: "sessions_list",
    sessionKey: "agent:research:main",
  });
  expect(list.sessions.map((row) => row.key)).toEqual(["main"]);
});

test("setting a label needs operator.write; setting a send policy needs operator.admin", async () => {
  const house = await openHouse({ gateway: { tokens: TOKENS } });
  const writer = await house.client({ token: "operator.write" });
  const patched = await writer.call("sessions.patch", { key: "main", label: "desk" });
  expect(patched).toMatchObject({ ok: true, key: "agent:main:main", entry: { label: "desk" } });
  await expect(writer.call("sessions.patch", { key: "main", sendPolicy: "deny" })).rejects.toMatchObject({
    code: "FORBIDDEN",
  });
});

interface Got {
  readonly status: number;
  readonly body: string;
}

function get(port: number, path: string, headers: Record<string, string>): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const sent = request({ host: "127.0.0.1", port, path, headers }, (response) => {
    let body = "";
    response.on("data", (piece) => {
      body += piece;
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
  });
  sent.on("error", reject);
  sent.end();
  return promise;
}

const HEADERS: [Record<string, string>, boolean][] = [
  [{ host: "127.0.0.1" }, true],
  [{ host: "127.0.0.1:7275" }, true],
  [{ host: "localhost:1" }, true],
  [{ host: "LOCALHOST" }, true],
  [{ host: "[::1]:7275" }, true],
  [{ host: "gateway.example" }, true],
  [{ host: "gateway.example:8443" }, true],
  [{ host: "evil.example" }, false],
  [{ host: "127.0.0.1.evil.example" }, false],
  [{ host: "localhost.evil.example" }, false],
  [{ host: "user@127.0.0.1" }, false],
  [{ host: "127.0.0.1:7275", origin: "http://127.0.0.1:7275" }, true],
  [{ host: "127.0.0.1:7275", origin: "https://app.example" }, true],
  [{ host: "127.0.0.1:7275", origin: "http://127.0.0.1:8080" }, false],
  [{ host: "127.0.0.1:7275", origin: "http://localhost:7275" }, false],
  [{ host: "127.0.0.1:7275", origin: "https://evil.example" }, false],
  [{ host: "127.0.0.1:7275", origin: "null" }, false],
  [{ host: "127.0.0.1:7275", origin: "file://127.0.0.1:7275" }, false],
];
test.each(HEADERS)("a request with %o is accepted: %s", async (headers, allowed) => {
  const gateway = { allowedHosts: ["gateway.example"], allowedOrigins: ["https://app.example"] };
  const house = await openHouse({ gateway });
  const { status } = await get(house.port, "/nothing", headers);
  // A Host header that is not a host name, like user@127.0.0.1, gives 400 instead of 403.
  expect(allowed ? [404] : [400, 403]).toContain(status);
  const upgraded = openRaw(house.url, { headers });
  if (allowed) await upgraded;
  else await expect(upgraded).rejects.toThrow("403");
});
