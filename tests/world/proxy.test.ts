// Proxies and private certificates of the environment: a real gateway process whose every server is reached by a
// proxy only.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectionCause, outgoingFetch, outgoingRequest } from "../../src/world/outgoing.ts";
import { listProxies, proxyFor, useProxies } from "../../src/world/proxy.ts";
import { cleanup, temporaryFolder } from "../kit/engine/engine.ts";
import { startReceiver } from "../kit/hook-receiver.ts";
import { freePort, serveHttp } from "../kit/loopback.ts";
import { startModelServer } from "../kit/model-server/server.ts";
import { call } from "../kit/model-server/steps.ts";
import { TOKEN as DISCORD_TOKEN, startDiscord } from "../kit/platforms/discord-server.ts";
import { startTelegram } from "../kit/platforms/telegram/server.ts";
import { startProcess } from "../kit/process/gateway-process.ts";
import { PATIENCE_MS } from "../kit/until.ts";
import { PRIVATE_CA, startForwardProxy } from "./forward-proxy.ts";

/** Starts an MCP server with the tool `greet`. */
async function startMcp(): Promise<string> {
  const { origin, close } = await serveHttp((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      const { id, method, params } = JSON.parse(text || "{}");
      const results: Record<string, unknown> = {
        initialize: {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "m", version: "1" },
        },
        "tools/list": { tools: [{ name: "greet", inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: "hello from afar" }] },
      };
      if (request.method !== "POST") return response.writeHead(405).end();
      if (id === undefined) return response.writeHead(202).end();
      const result = results[method];
      const error = { code: -32601, message: "no such method" };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) }),
      );
    });
  });
  cleanup(close);
  return origin;
}

async function startEverything() {
  const model = await startModelServer(({ toolResults }) =>
    toolResults.length > 0 ? "It greets." : [call("mcp__afar__greet", {})],
  );
  cleanup(() => model.close());
  const telegram = await startTelegram();
  cleanup(() => telegram.close());
  const token = `123456:${"a".repeat(35)}`;
  telegram.addBot(token, "parley_bot");
  const discord = await startDiscord();
  const discordGateway = discord.gateway.url.replace("ws", "http");
  Object.assign(discord.gateway, { url: "wss://gateway.example.test" });
  const receiver = await startReceiver();
  const proxy = await startForwardProxy({
    "model.example.test": model.url,
    "plain.example.test": model.url,
    "mcp.example.test": await startMcp(),
    "telegram.example.test": telegram.url,
    "discord.example.test": discord.restUrl,
    "gateway.example.test": discordGateway,
    "hook.example.test": receiver.url,
  });
  const at = (url: string, origin: string) => origin + new URL(url).pathname;
  const { id: _, ...openai } = model.provider("openai-completions");
  const { id: __, ...google } = model.provider("google-generative-ai");
  const config = {
    models: {
      providers: {
        one: { ...openai, baseUrl: at(openai.baseUrl, "https://model.example.test") },
        two: { ...google, baseUrl: at(google.baseUrl, "https://model.example.test") },
        three: { ...openai, baseUrl: at(openai.baseUrl, "http://plain.example.test") },
        four: openai,
      },
    },
    agents: {
      list: ["one", "two", "three", "four"].map((id) => ({
        id,
        model: `${id}/test-model`,
        default: id === "one",
      })),
    },
    tools: { mcp: { servers: { afar: { url: "http://mcp.example.test/mcp" } } } },
    channels: {
      telegram: { botToken: token, apiRoot: "https://telegram.example.test" },
      discord: { token: DISCORD_TOKEN, restUrl: at(discord.restUrl, "https://discord.example.test") },
    },
    hooks: {
      outgoing: [
        {
          url: at(receiver.url, "https://hook.example.test"),
          events: ["run.ended"],
          secret: "a-secret-of-the-tests",
        },
      ],
    },
  };
  const folder = temporaryFolder();
  writeFileSync(join(folder, "ca.pem"), PRIVATE_CA);
  return { proxy, config, receiver, discord, telegram, ca: join(folder, "ca.pem") };
}

test.each(["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])(
  "models, MCP servers, channels and hooks are reached by the proxy of the environment, with a private authority in %s",
  async (variable) => {
    const { proxy, config, receiver, discord, ca } = await startEverything();
    const env = { HTTP_PROXY: proxy.url, https_proxy: proxy.url, [variable]: ca };
    const gateway = await startProcess({ config, env });
    const client = await gateway.connect();
    for (const agent of ["one", "two", "three", "four"]) {
      const runId = crypto.randomUUID();
      const params = { sessionKey: `agent:${agent}:main`, message: "greet", idempotencyKey: runId };
      await client.call("chat.send", params);
      const ended = await client.call("agent.wait", { runId, timeoutMs: PATIENCE_MS });
      expect([agent, ended]).toEqual([agent, expect.objectContaining({ runStatus: "ok" })]);
    }
    await receiver.next(({ type }) => type === "run.ended");
    await expect.poll(() => discord.commands.length).toBeGreaterThan(5);
    const asked = new Set(proxy.asked.map((one) => one.split("?")[0]));
    for (const host of ["model", "telegram", "discord", "gateway", "hook"])
      expect(asked).toContain(`CONNECT ${host}.example.test:443`);
    expect(asked).toContain("POST http://mcp.example.test/mcp");
    expect(asked).toContain("POST http://plain.example.test/openai/v1/chat/completions");
    expect([...asked].filter((one) => one?.includes("127.0.0.1"))).toEqual([]);
    const { channels } = await client.request("channels.status");
    for (const id of ["telegram:default", "discord:default"])
      expect(channels.find((one) => one.id === id)).toMatchObject({ ok: true });
  },
);

function withVariables(variables: Record<string, string>): void {
  cleanup(() => useProxies({}));
  useProxies(variables);
}

const PROXY = { HTTPS_PROXY: "http://user:pass@proxy.test:3128", http_proxy: "plain.test:8080" };

test.each([
  ["https://api.example.com/v1", "", PROXY.HTTPS_PROXY],
  ["wss://gateway.example.com", "", PROXY.HTTPS_PROXY],
  ["http://api.example.com/v1", "", "http://plain.test:8080"],
  ["http://localhost:11434", "", undefined],
  ["http://127.3.2.1:11434", "", undefined],
  ["http://[::1]:11434", "", undefined],
  ["ws://a.localhost:1", "", undefined],
  ["http://192.168.1.7:11434", "", "http://plain.test:8080"],
  ["https://api.example.com", "*", undefined],
  ["https://api.example.com", "other.test, example.com", undefined],
  ["https://api.example.com", ".example.com", undefined],
  ["https://api.example.com", "*.EXAMPLE.com", undefined],
  ["https://notexample.com", "example.com", PROXY.HTTPS_PROXY],
  ["https://api.example.com", "api.example.com:443", undefined],
  ["https://api.example.com", "api.example.com:8443", PROXY.HTTPS_PROXY],
  ["http://10.1.2.3", "10.0.0.0/8", undefined],
  ["http://11.1.2.3", "10.0.0.0/8 fe80::/10", "http://plain.test:8080"],
  ["http://[fd00::5]:80", "fd00::/8", undefined],
  ["http://[fd00::5]:80", "fd00::5", undefined],
  ["http://10.1.2.3", "10.0.0.0/99", "http://plain.test:8080"],
])("PX1: %s with NO_PROXY=%j goes through %s", (url, noProxy, wanted) => {
  withVariables({ ...PROXY, NO_PROXY: noProxy });
  expect(proxyFor(url)).toBe(wanted);
});

test("ALL_PROXY applies to both protocols, and a proxy of another kind is not used and reported", () => {
  withVariables({ ALL_PROXY: "http://all.test:1", https_proxy: "socks5://u:p@socks.test:1080" });
  expect([proxyFor("http://a.test"), proxyFor("https://a.test")]).toEqual(["http://all.test:1", undefined]);
  expect(listProxies()).toEqual([
    { variable: "https_proxy", address: "socks5://socks.test:1080", usable: false },
    { variable: "all_proxy", address: "http://all.test:1", usable: true },
  ]);
});

test("OC1: an address from outside that is known as private here is not asked for through a proxy", async () => {
  const proxy = await startForwardProxy({ "plain.example.test": (await serveOk()).origin });
  withVariables({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url });
  const page = (url: string) => outgoingRequest({ purpose: "page", url, configured: undefined }, {});
  expect(() => page("http://10.1.2.3/x")).toThrow(/private network/);
  const refused = Promise.withResolvers<Error>();
  page("http://localhost/x").on("error", refused.resolve).end();
  expect((await refused.promise).message).toMatch(/private network/);
  expect(proxy.asked).toEqual([]);
  // A name that only the proxy knows is left to the proxy.
  const answered = Promise.withResolvers<number | undefined>();
  const sent = page("http://plain.example.test/x?y=1");
  sent.on("response", (answer) => answered.resolve(answer.resume().statusCode)).on("error", answered.reject);
  sent.end();
  expect(await answered.promise).toBe(200);
  expect(proxy.asked).toEqual(["GET http://plain.example.test/x?y=1"]);
});

async function serveOk() {
  const server = await serveHttp((_, response) => response.end("ok"));
  cleanup(() => server.close());
  return server;
}

test("a failed connection names its innermost cause, also behind fetch", async () => {
  const proxy = await startForwardProxy({ "model.example.test": (await serveOk()).origin });
  const causeAt = (url: string) => outgoingFetch("mcp", url)(url).then(String, connectionCause);
  expect(await causeAt("https://model.invalid")).toMatch(/^(?:ENOTFOUND|EAI_AGAIN) model\.invalid$/);
  const port = await freePort();
  expect(await causeAt(`http://127.0.0.1:${port}`)).toBe(`ECONNREFUSED 127.0.0.1:${port}`);
  withVariables({ HTTPS_PROXY: proxy.url });
  expect(await causeAt("https://model.example.test")).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
  expect(connectionCause(new Error("of another kind"))).toBeUndefined();
});
