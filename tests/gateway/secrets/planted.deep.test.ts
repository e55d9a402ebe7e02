// I14: every secret field of a configuration contains a secret that no pattern matches, and fake servers echo
// their requests. No caller of any route gets a secret, even after failures.

import { once } from "node:events";
import { expect, test } from "vitest";
import { METHODS } from "../../../src/contract/methods.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { serveHttp } from "../../kit/loopback.ts";
import { startCollector } from "../../kit/otlp-collector.ts";
import { launch, writeHome } from "../../kit/process/fleet.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { openRaw, type Raw } from "../kit.ts";

/** Returns a secret that no pattern matches and that no other text contains. */
const secret = (what: string): string => `umbrella.${what}.ninepence`;
const FOUND = /umbrella[^a-z]{0,9}[a-z]+[^a-z]{0,9}ninepence/i;
const GATEWAY = secret("gateway");

/** Starts a server that refuses every request and quotes its address, headers and body. */
async function startParrot(): Promise<string> {
  const { origin, close } = await serveHttp((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += String(chunk);
    });
    request.on("end", () => {
      const said = `${request.method} ${decodeURIComponent(request.url ?? "")} ${JSON.stringify(request.headers)}`;
      // The body is not quoted, because it contains the session's text.
      const message = `won't: ${said} ${body.length}`;
      response.writeHead(400, { "content-type": "application/json", "x-said": encodeURIComponent(said) });
      response.end(
        JSON.stringify({ ok: false, error_code: 400, description: message, error: { message, code: 1 } }),
      );
    });
  });
  cleanup(close);
  return origin;
}

/** A program that prints its arguments and its environment to both outputs, and exits. */
const BLABBER =
  "console.log(process.argv.join(' ')); console.error(process.env, process.argv); process.exit(3)";
const blabber = (what: string) => ({
  command: process.execPath,
  args: ["-e", BLABBER, "--", "--api-key", secret(`${what}argument`)],
  env: { SOME_TOKEN: secret(`${what}variable`) },
});

function configOf(parrot: string, collector: string): Record<string, unknown> {
  const program = blabber("acp");
  const acp = { type: "acp", command: [program.command, ...program.args], env: program.env };
  const models = [{ id: "m", contextWindow: 10_000 }];
  const provider = { api: "openai-completions", baseUrl: `${parrot}/v1`, models };
  return {
    gateway: {
      port: 0,
      auth: {
        token: GATEWAY,
        tokens: [{ token: secret("scoped"), scopes: ["operator.read"], sessions: ["x:*"] }],
      },
    },
    logging: { level: "debug", format: "json" },
    models: {
      providers: {
        keyed: { ...provider, apiKey: secret("provider") },
        headed: {
          ...provider,
          headers: { "x-key": secret("header"), authorization: `Basic ${secret("basic")}` },
        },
      },
    },
    agents: {
      defaults: { model: "keyed/m" },
      list: [{ id: "main" }, { id: "other", model: "headed/m" }, { id: "outside", runtime: acp }],
    },
    tools: {
      mcp: {
        waitSeconds: 1,
        servers: {
          program: blabber("mcp"),
          address: {
            url: `${parrot}/mcp?key=${secret("query")}`,
            headers: { "x-api-key": secret("mcpheader") },
          },
        },
      },
    },
    channels: {
      telegram: { botToken: `12345:${secret("telegram")}`, apiRoot: parrot },
      whatsapp: {
        ...{ phoneNumberId: "12345", graphUrl: parrot, accessToken: secret("access") },
        ...{ appSecret: secret("app"), verifyToken: secret("verify") },
      },
    },
    hooks: {
      ...{ enabled: true, token: secret("hooks") },
      mappings: [{ id: "ci", preset: "hmac", secret: secret("incoming"), message: "{{body.a}}" }],
      outgoing: [
        { url: `${parrot}/?key=${secret("outgoing")}`, events: ["run.ended"], secret: secret("signing") },
      ],
    },
    telemetry: {
      traces: {
        enabled: true,
        content: true,
        endpoint: collector,
        headers: { "x-key": secret("collector") },
      },
    },
  };
}

/** The environment of the process, with secrets in variables that libraries read. */
const ENV = {
  PARLEY_LOG: "",
  PGPASSWORD: secret("pgpassword"),
  OTEL_EXPORTER_OTLP_HEADERS: `x-more=${secret("otelheader")}`,
};

async function askSocket(raw: Raw): Promise<void> {
  const connect = {
    minProtocol: 3,
    maxProtocol: 3,
    client: { id: "x", version: "1", platform: "p", mode: "m" },
  };
  raw.send({ type: "req", id: "hello", method: "connect", params: { ...connect, auth: { token: GATEWAY } } });
  expect((await raw.res("hello")).ok).toBe(true);
  for (const [sessionKey, idempotencyKey] of [
    ["agent:main:main", "r1"],
    ["agent:other:main", "r2"],
    ["agent:outside:main", "r3"],
  ]) {
    const params = { sessionKey, message: "hello", idempotencyKey };
    raw.send({ type: "req", id: idempotencyKey, method: "agent", params });
    const end = await raw.next(({ id, payload }) => id === idempotencyKey && payload?.status !== "accepted");
    expect(end.payload?.status, JSON.stringify(end)).toBe("error");
  }
  const more: Record<string, object> = {
    send: { to: "12345", channel: "telegram", message: "x", idempotencyKey: "s" },
    "channels.test": { channel: "telegram" },
    "chat.history": { sessionKey: "main", includeRuns: true },
    "tools.catalog": { sessionKey: "main" },
    "access.explain": { viewer: "main", target: "agent:other:main" },
  };
  // Sends a wrong request to every method; each must get a clear answer.
  for (const method of Object.keys(METHODS)) {
    if (method.startsWith("demo.")) continue;
    raw.send({ type: "req", id: method, method, params: more[method] ?? {} });
    await raw.res(method);
  }
  raw.send({ type: "req", id: "again", method: "channels.test", params: { channel: "whatsapp" } });
  await raw.res("again");
}

const JSON_TYPE = { "content-type": "application/json" };

async function askHttp(url: string): Promise<string> {
  const bearer = { authorization: `Bearer ${GATEWAY}` };
  const post = (body: object, headers: object = bearer): RequestInit => ({
    ...{ method: "POST", body: JSON.stringify(body) },
    headers: { ...JSON_TYPE, ...headers } as Record<string, string>,
  });
  const initialize = {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "x", version: "1" },
  };
  const asked: [string, RequestInit?][] = [
    ["/"],
    ["/healthz"],
    ["/readyz"],
    ["/metrics", { headers: bearer }],
    ["/metrics", { headers: { authorization: "Bearer wrong" } }],
    ["/v1/models", { headers: bearer }],
    ["/v1/chat/completions", post({ model: "parley/main", messages: [{ role: "user", content: "x" }] })],
    [
      "/v1/chat/completions",
      post({ model: "parley/main", stream: true, messages: [{ role: "user", content: "x" }] }),
    ],
    ["/v1/responses", post({ model: "parley/other", input: "x" })],
    ["/tools/invoke", post({ tool: "agents_list", args: {} })],
    ["/tools/invoke", post({ tool: "nothing" })],
    ["/mcp", post({ jsonrpc: "2.0", id: 1, method: "initialize", params: initialize })],
    ["/hooks/agent", post({ message: "x" }, { authorization: "Bearer wrong" })],
    ["/hooks/ci", post({ a: 1 }, { "x-signature-256": "00" })],
    ["/channels/whatsapp/default?hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=1"],
    ["/channels/whatsapp/default", post({}, { "x-hub-signature-256": "sha256=00" })],
    ["/nowhere"],
  ];
  let told = "";
  for (const [path, init] of asked) {
    const response = await fetch(`${url}${path}`, init);
    told += `${path} ${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}\n`;
  }
  return told;
}

/** Returns the secrets that a text contains. */
function foundIn(told: string): string[] {
  const all = new RegExp(FOUND, "gi");
  return [...told.matchAll(all)].map(({ index }) => told.slice(Math.max(0, index - 150), index + 60));
}

/** Returns the output of a command. `enough`: text after which a command that waits is stopped. */
async function command(home: string, args: string[], flags: string[] = [], enough?: string): Promise<string> {
  const child = launch(home, args, flags, { ...ENV, PARLEY_LOG: "debug" });
  let told = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      told += chunk.toString();
      if (enough !== undefined && told.includes(enough)) child.kill("SIGTERM");
    });
  }
  child.stdin?.end();
  await once(child, "close");
  return told;
}

test("I14: no answer, no failure and no line of the log reveals a secret of the configuration", async () => {
  const [parrot, collector] = await Promise.all([startParrot(), startCollector()]);
  const config = configOf(parrot, collector.url);
  expect(FOUND.test(JSON.stringify(config))).toBe(true);
  const home = homeWith(config);
  const gateway = await startProcess({ home, env: ENV });
  const raw = await openRaw(gateway.url);
  await askSocket(raw);
  const answers = await askHttp(gateway.httpUrl);
  const checks = await Promise.all([command(home, ["doctor"]), command(home, ["--json", "config", "check"])]);
  await expect.poll(gateway.stderr).toContain("listening failed");
  await gateway.end("SIGTERM");
  expect.soft(foundIn(JSON.stringify(raw.frames)), "frames").toEqual([]);
  expect.soft(foundIn(answers), "answers").toEqual([]);
  expect.soft(foundIn(gateway.stderr()), "log").toEqual([]);
  expect.soft(foundIn(gateway.stdout()), "output").toEqual([]);
  expect.soft(foundIn(JSON.stringify(collector.bodies)), "spans").toEqual([]);
  for (const said of checks) expect.soft(foundIn(said), "commands").toEqual([]);
  expect(checks[0]).toContain("Telegram");
  for (const words of ["a run failed", "MCP server", '"part":"channels"'])
    expect(gateway.stderr()).toContain(words);
  expect(collector.spans.length).toBeGreaterThan(2);
  // Redaction leaves the refusal and its reason readable for the caller.
  for (const told of [JSON.stringify(raw.frames), answers, gateway.stderr()])
    expect(told).toContain("won't: POST");
});

test("I14: a failed start, an invalid file and a fatal error reveal no secret", async () => {
  const away = { store: { postgresUrl: `postgres://me:${secret("database")}@127.0.0.1:9/x` } };
  const wrong = {
    gateway: { auth: { token: [secret("wrong")] } },
    models: { providers: { p: { apiKey: { a: secret("key") } } } },
  };
  // Simulates a bug whose error text contains a configured secret.
  const throwing = `setTimeout(() => { throw new Error("no: ${GATEWAY}") }, 1500)`;
  const fault = [`--import=data:text/javascript,${encodeURIComponent(throwing)}`];
  const homes = [
    homeWith(away),
    homeWith(wrong),
    homeWith({ gateway: { port: 0, auth: { token: GATEWAY } } }),
  ];
  const [down = "", refused = "", crashed = ""] = await Promise.all([
    // This command waits for its database.
    command(homes[0] ?? "", ["gateway"], [], "127.0.0.1:9"),
    command(homes[1] ?? "", ["gateway"]),
    command(homes[2] ?? "", ["gateway"], fault),
  ]);
  expect(down).toContain("127.0.0.1:9");
  expect(refused).toContain("gateway.auth.token");
  expect(crashed).toContain("the process exits because of a bug");
  for (const told of [down, refused, crashed]) expect.soft(foundIn(told)).toEqual([]);
  writeHome(homes[1] ?? "", {});
});
