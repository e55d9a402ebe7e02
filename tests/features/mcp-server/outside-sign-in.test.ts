// The sign-in at MCP servers: a second gateway is the server, and its own authorization server.

import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type House, openHouse } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { listenHere } from "../../kit/loopback.ts";
import { fakeWorld } from "../../kit/world.ts";
import { httpServer, mcpWith } from "../../tools/mcp-kit.ts";
import { answered } from "./sign-in-kit.ts";

const CALLBACK = "http://127.0.0.1:34567/callback";
const HOUR_MS = 3_600_000;

async function openNear(url: string, headers = {}): Promise<House> {
  return openHouse({ choices: { tools: { mcp: mcpWith([httpServer("far", url, { headers })]) } } });
}

/** Opens the address of a sign-in as a person who allows it. Returns the query that comes back. */
async function allow(url: string): Promise<string> {
  const response = await answered(new URL(url));
  return new URL(response.headers.get("location") ?? "http://nothing.invalid").search;
}

test("a person signs in at a server; its tokens are refreshed, readable by the owner only, and forgotten", async () => {
  const world = fakeWorld();
  const far = await openHouse({ world });
  const near = await openNear(`${far.http}/mcp`);
  const client = await near.client();
  const tried = client.request("servers.test", { name: "far" });
  await expect(tried).rejects.toThrow(/it wants a sign-in: npx parley-gateway mcp login far/);
  expect((await client.request("servers.list", {})).servers[0]).toMatchObject({ needsSignIn: true });
  const { url } = await client.request("servers.login", { name: "far", redirectUrl: CALLBACK });
  expect(new URL(url).searchParams.get("code_challenge_method")).toBe("S256");
  const query = await allow(url);
  const row = await client.request("servers.login.finish", { query });
  expect(row).toMatchObject({ name: "far", state: "ready" });
  expect(row.tools).toContain("sessions_list");
  expect(row).not.toHaveProperty("needsSignIn");
  const folder = join(near.dir, "mcp-sign-ins");
  expect(readdirSync(folder)).toEqual(["far.json"]);
  expect(statSync(join(folder, "far.json")).mode & 0o777).toBe(0o600);
  const { tokens } = JSON.parse(readFileSync(join(folder, "far.json"), "utf8"));
  expect(JSON.stringify(await client.request("servers.list", {}))).not.toContain(tokens.access_token);
  await expect(client.request("servers.login.finish", { query })).rejects.toThrow(/was not begun here/);
  await world.advance(2 * HOUR_MS);
  expect(await client.request("servers.test", { name: "far" })).toMatchObject({ state: "ready" });
  const call = await client.request("tools.invoke", { name: "mcp__far__sessions_list", arguments: {} });
  expect(call).toMatchObject({ status: "ok" });
  const { tokens: next } = JSON.parse(readFileSync(join(folder, "far.json"), "utf8"));
  expect(next.access_token).not.toBe(tokens.access_token);
  expect(await client.request("servers.logout", { name: "far" })).toMatchObject({ forgotten: true });
  expect(readdirSync(folder)).toEqual([]);
  expect(await client.request("servers.logout", { name: "far" })).toMatchObject({ forgotten: false });
});

test("a server whose tokens end while it is connected wants a sign-in, and works after it", async () => {
  const far = await openHouse();
  const near = await openNear(`${far.http}/mcp`);
  const client = await near.client();
  const signIn = async () => {
    const { url } = await client.request("servers.login", { name: "far", redirectUrl: CALLBACK });
    return client.request("servers.login.finish", { query: await allow(url) });
  };
  const list = () => client.request("tools.invoke", { name: "mcp__far__sessions_list", arguments: {} });
  await client.request("servers.test", { name: "far" }).catch(() => {});
  await signIn();
  const file = join(near.dir, "mcp-sign-ins", "far.json");
  const record = JSON.parse(readFileSync(file, "utf8"));
  const { refresh_token: _, ...tokens } = record.tokens;
  writeFileSync(file, JSON.stringify({ ...record, tokens: { ...tokens, access_token: "ended" } }));
  await list();
  expect((await client.request("servers.list", {})).servers[0]).toMatchObject({
    state: "ready",
    needsSignIn: true,
    lastError: "it wants a sign-in: npx parley-gateway mcp login far",
  });
  const row = await signIn();
  expect(row).not.toHaveProperty("needsSignIn");
  expect(row).not.toHaveProperty("lastError");
  expect(await list()).toMatchObject({ status: "ok" });
  // A crash may leave a file that was not renamed yet.
  writeFileSync(`${file}.b2f6`, "{}");
  await client.request("servers.logout", { name: "far" });
  expect(readdirSync(join(near.dir, "mcp-sign-ins"))).toEqual([]);
});

test("only the sign-in that was begun last ends, with its own state; a refusal is told", async () => {
  const far = await openHouse();
  const near = await openNear(`${far.http}/mcp`);
  const client = await near.client();
  const begin = async () =>
    (await client.request("servers.login", { name: "far", redirectUrl: CALLBACK })).url;
  const first = await begin();
  const second = await begin();
  const query = await allow(first);
  await expect(client.request("servers.login.finish", { query })).rejects.toThrow(/another one was begun/);
  await expect(client.request("servers.login.finish", { query: "?code=x" })).rejects.toThrow(
    /not the answer/,
  );
  const denied = await answered(new URL(second), { answer: "deny" });
  const { search } = new URL(denied.headers.get("location") ?? "");
  await expect(client.request("servers.login.finish", { query: search })).rejects.toThrow(/was refused/);
});

test("a server with a token of its own, and one that asks for nothing, have no sign-in", async () => {
  const far = await openHouse();
  const near = await openNear(`${far.http}/mcp`, { Authorization: "Bearer wrong" });
  const client = await near.client();
  const begun = client.request("servers.login", { name: "far", redirectUrl: CALLBACK });
  await expect(begun).rejects.toThrow(/has a token in its headers/);
  const away = client.request("servers.login", { name: "none", redirectUrl: CALLBACK });
  await expect(away).rejects.toThrow(/there is no MCP server "none"/);
});

test.each([
  ["http://127.0.0.2:9", /does not use TLS. Nothing was sent/],
  ["https://127.0.0.2:9", /private network. Nothing was sent/],
])("a server can't send the gateway to the authorization server %s", async (address, words) => {
  const server = createServer((request, response) => {
    const isMetadata = request.url?.startsWith("/.well-known/oauth-protected-resource") === true;
    const body = { resource: `${base}/mcp`, authorization_servers: [address] };
    response.writeHead(isMetadata ? 200 : 401, { "content-type": "application/json" });
    response.end(isMetadata ? JSON.stringify(body) : "{}");
  });
  const base = `http://127.0.0.1:${await listenHere(server)}`;
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = await (await openNear(`${base}/mcp`)).client();
  const begun = client.request("servers.login", { name: "far", redirectUrl: CALLBACK });
  await expect(begun).rejects.toThrow(words);
});
