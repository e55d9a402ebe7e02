// The sign-in at MCP servers that are hostile, slow or used by two processes: a fake server is its own
// authorization server. And the sign-in without a person, of a real gateway.

import { createHash, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { McpServerSettings } from "../../src/core/shapes/settings/settings.ts";
import { SignIn } from "../../src/tools/mcp/sign-in/sign-in.ts";
import type { World } from "../../src/world.ts";
import { openHouse } from "../gateway/kit.ts";
import { GROUND } from "../kit/cleanup.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { listenHere } from "../kit/loopback.ts";
import { fakeWorld } from "../kit/world.ts";
import { httpServer, mcpWith } from "./mcp-kit.ts";

const CALLBACK = "http://127.0.0.1:34567/callback";
const SECRET = "the-secret-of-the-client";

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;
type Answers = Readonly<Record<string, Answer>>;

const json = (response: ServerResponse, body: object, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** Opens an MCP server that is its own authorization server. `answers`: by path, instead of the usual ones. */
async function openFar(answers: Answers = {}) {
  const heard: string[] = [];
  const usual: Answers = {
    "/.well-known/oauth-protected-resource/mcp": (_, response) =>
      json(response, { resource: `${base}/mcp`, authorization_servers: [base] }),
    "/.well-known/oauth-authorization-server": (_, response) =>
      json(response, {
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["client_secret_post"],
      }),
    "/register": (_, response) => json(response, { client_id: "known", redirect_uris: [CALLBACK] }, 201),
    "/token": (_, response) => json(response, { access_token: "a-new-access-token", token_type: "Bearer" }),
    "/mcp": (_, response) => json(response, {}, 401),
  };
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces).toString();
    heard.push(`${request.url} ${body}`);
    const answer = answers[request.url ?? ""] ?? usual[request.url ?? ""];
    if (answer === undefined) response.writeHead(404).end();
    else answer(request, response, body);
  });
  const base = `http://127.0.0.1:${await listenHere(server)}`;
  cleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return { base, url: `${base}/mcp`, heard };
}

/** Answers as an MCP server with the tools `echo` and `fail`, which show the header `authorization`. */
const echoing: Answer = ({ headers }, response, body) => {
  const { id, method, params = {} } = body === "" ? {} : JSON.parse(body);
  const { authorization = "none" } = headers;
  const tool = (name: string) => ({ name, inputSchema: { type: "object" } });
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "far", version: "1" },
    },
    "tools/list": { tools: [tool("echo"), tool("fail")] },
    "tools/call": { content: [{ type: "text", text: `you sent ${authorization}` }] },
  };
  if (id === undefined) return void response.writeHead(202).end();
  const result = params.name === "fail" ? undefined : results[method];
  const error = { code: -32601, message: `no ${method} for ${authorization}` };
  json(response, { jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
};

type Oauth = Extract<McpServerSettings["reach"], { kind: "http" }>["oauth"];

/** Opens a gateway with this server. `record`: its sign-in there. */
async function openNear(url: string, { record, oauth }: { record?: object; oauth?: Oauth }) {
  const settings = httpServer("far", url);
  const own = { ...settings, reach: { ...settings.reach, ...(oauth && { oauth }) } };
  const near = await openHouse({ choices: { tools: { mcp: mcpWith([own]) } } });
  const folder = join(near.dir, "mcp-sign-ins");
  if (record === undefined) return near;
  mkdirSync(folder);
  writeFileSync(join(folder, "far.json"), JSON.stringify({ url, ...record }));
  return near;
}

function signInAt(url: string, oauth: Oauth = {}, world: World = fakeWorld()) {
  const dir = mkdtempSync(join(GROUND, "sign-in-"));
  const settings = httpServer("far", url);
  const own = { ...settings, reach: { ...settings.reach, oauth } };
  const open = (): SignIn => {
    const signIn = SignIn.of(own, dir, world);
    if (signIn === undefined) throw new Error("no sign-in");
    return signIn;
  };
  const path = join(dir, "mcp-sign-ins", "far.json");
  const read = () => JSON.parse(readFileSync(path, "utf8"));
  const write = (record: object): void => {
    mkdirSync(join(dir, "mcp-sign-ins"), { recursive: true });
    writeFileSync(path, JSON.stringify({ url, ...record }));
  };
  return { dir, world, open, read, write };
}

/** A record of a person who has signed in. */
const signedIn = (issuer: string) => ({
  client: { client_id: "known", issuer },
  tokens: { access_token: "access-1", refresh_token: "refresh-1", token_type: "Bearer", issuer },
});

/** Tells a sign-in that the server refused its access token. */
const refuse = async (one: SignIn, url: string, scheme = "Bearer"): Promise<void> => {
  const headers = { "www-authenticate": `${scheme} error="invalid_token"` };
  const response = new Response(null, { status: 401, headers });
  await one.transport().onUnauthorized?.({ response, serverUrl: new URL(url), fetchFn: fetch });
};

const stateOf = (address: string): string => new URL(address).searchParams.get("state") ?? "";

/** Signs in as a person who allows it. */
async function signIn(one: SignIn) {
  const begun = await one.begin(CALLBACK);
  if (!begun.ok) return begun;
  return one.finish(new URLSearchParams({ state: stateOf(begun.value), code: "a-code" }));
}

test("the secret of a configured client goes to its own authorization server only", async () => {
  const far = await openFar();
  const oauth = { clientId: "known", clientSecret: SECRET };
  const good = signInAt(far.url, { ...oauth, authorizationServer: far.base });
  expect(await signIn(good.open())).toMatchObject({ ok: true });
  expect(far.heard.filter((text) => text.includes(SECRET))).toEqual([expect.stringMatching(/^\/token /)]);
  for (const other of ["https://good.example", `${far.base}/tenant`]) {
    far.heard.length = 0;
    const moved = signInAt(far.url, { ...oauth, authorizationServer: other });
    expect(await signIn(moved.open())).toMatchObject({
      ok: false,
      error: expect.stringMatching(/names the authorization server http\S+, not/),
    });
    expect(far.heard.join()).not.toContain(SECRET);
    expect(far.heard.join()).not.toContain("/register");
  }
});

test("a token of a sign-in that a server shows in a result or an error is redacted", async () => {
  const far = await openFar({ "/mcp": echoing });
  const tokens = { access_token: "opaque0access", refresh_token: "opaque0refresh", token_type: "Bearer" };
  const near = await openNear(far.url, { record: { tokens } });
  const client = await near.client();
  const call = async (tool: string) =>
    JSON.stringify(await client.request("tools.invoke", { name: `mcp__far__${tool}`, arguments: {} }));
  const echo = await call("echo");
  expect(echo).toContain("you sent Bearer [redacted]");
  expect(echo).not.toContain(tokens.access_token);
  const refused = await call("fail");
  expect(refused).toContain("no tools/call for");
  expect(refused).not.toContain(tokens.access_token);
});

test("an answer that does not end delays a refresh for a short time only", async () => {
  const metadata = "/.well-known/oauth-protected-resource/mcp";
  const far = await openFar({ [metadata]: (_, response) => void response.writeHead(200).write("{") });
  const world = fakeWorld();
  const { open, read, write } = signInAt(far.url, {}, world);
  write(signedIn(far.base));
  const refreshed = refuse(open(), far.url);
  await expect.poll(() => far.heard.join()).toContain(metadata);
  await world.advance(31_000);
  await refreshed;
  expect(read().tokens).toMatchObject({ access_token: "a-new-access-token" });
});

test("an answer of an authorization server that is too long is refused", async () => {
  const long = " ".repeat(2 * 1024 * 1024);
  const far = await openFar({
    "/.well-known/oauth-authorization-server": (_, response) => json(response, { issuer: long }),
  });
  const begun = await signInAt(far.url).open().begin(CALLBACK);
  expect(begun).toMatchObject({ ok: false, error: expect.stringContaining("more than 1048576 bytes") });
});

test("tokens that another process has refreshed are used, and a refused refresh does not delete them", async () => {
  const newer = { access_token: "access-2", refresh_token: "refresh-2", token_type: "Bearer" };
  const far = await openFar({
    // The other process was faster.
    "/token": (_, response, body) => {
      if (body.includes("refresh-2"))
        return json(response, { access_token: "access-3", token_type: "Bearer" });
      write({ ...signedIn(far.base), tokens: { ...newer, issuer: far.base } });
      json(response, { error: "invalid_grant" }, 400);
    },
  });
  const { open, read, write } = signInAt(far.url);
  write(signedIn(far.base));
  await refuse(open(), far.url);
  expect(read().tokens).toMatchObject({ access_token: "access-3", refresh_token: "refresh-2" });
  const one = open();
  const transport = one.transport();
  write(signedIn(far.base));
  await transport.token();
  write({ ...signedIn(far.base), tokens: { ...newer, issuer: far.base } });
  far.heard.length = 0;
  const response = new Response(null, { status: 401 });
  await transport.onUnauthorized?.({ response, serverUrl: new URL(far.url), fetchFn: fetch });
  expect(far.heard).toEqual([]);
});

test("a person who signs out during a refresh stays signed out", async () => {
  const far = await openFar({
    "/token": async (_, response) => {
      await one.forget();
      json(response, { access_token: "access-2", token_type: "Bearer" });
    },
  });
  const { open, dir, write } = signInAt(far.url);
  const one = open();
  write(signedIn(far.base));
  await refuse(one, far.url).catch(() => {});
  expect(readdirSync(join(dir, "mcp-sign-ins"))).toEqual([]);
});

test("a sign-in that was begun ten minutes ago has to begin again", async () => {
  const far = await openFar();
  const world = fakeWorld();
  const one = signInAt(far.url, {}, world).open();
  const begun = await one.begin(CALLBACK);
  if (!begun.ok) throw new Error(begun.error);
  await world.advance(600_001);
  const late = await one.finish(new URLSearchParams({ state: stateOf(begun.value), code: "a-code" }));
  expect(late).toMatchObject({ ok: false, error: expect.stringMatching(/too long ago/) });
  expect(far.heard.filter((text) => text.startsWith("/token"))).toEqual([]);
});

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

const jwtOf = (jwt: string) =>
  jwt
    .split(".", 2)
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>);

/** Opens a server that gives one token after the other, and takes only the newest. */
async function openStrict() {
  let given = 0;
  let isClosed = false;
  const requests: { readonly params: URLSearchParams; readonly authorization: string | undefined }[] = [];
  const token: Answer = ({ headers }, response, body) => {
    requests.push({ params: new URLSearchParams(body), authorization: headers.authorization });
    given += 1;
    if (isClosed) return json(response, { error: "access_denied" }, 400);
    json(response, { access_token: `opaque0token${given}`, token_type: "Bearer" });
  };
  const strict: Answer = (request, response, body) => {
    if (request.headers.authorization === `Bearer opaque0token${given}`)
      return echoing(request, response, body);
    json(response, {}, 401);
  };
  const far = await openFar({ "/token": token, "/mcp": strict });
  const expire = (): void => {
    given += 1;
  };
  const refuse = (): void => {
    isClosed = true;
  };
  return { ...far, requests, expire, refuse };
}

/** Opens a gateway that signs in there by itself, and calls a tool. */
async function openMachine(far: { readonly url: string; readonly base: string }, oauth: object) {
  const settled = { clientId: "machine", authorizationServer: far.base, ...oauth } as Oauth;
  const client = await (await openNear(far.url, { oauth: settled })).client();
  const call = async () =>
    JSON.stringify(await client.request("tools.invoke", { name: "mcp__far__echo", arguments: {} }));
  return { client, call };
}

test("a gateway with a client's secret signs in by itself, also after the server refuses its token", async () => {
  const far = await openStrict();
  const oauth = { grant: "client_credentials", clientSecret: SECRET, scope: "a b" };
  const { client, call } = await openMachine(far, oauth);
  expect(await call()).toContain("you sent Bearer [redacted]");
  expect(await call()).toContain("you sent Bearer [redacted]");
  far.expire();
  expect(await call()).toContain("you sent Bearer [redacted]");
  expect(far.requests).toHaveLength(2);
  expect(Object.fromEntries(far.requests[1]?.params ?? [])).toEqual({
    grant_type: "client_credentials",
    scope: "a b",
    resource: far.url,
    client_id: "machine",
    client_secret: SECRET,
  });
  const { servers } = await client.request("servers.list", {});
  expect(servers).toMatchObject([{ name: "far", state: "ready" }]);
  far.expire();
  far.refuse();
  expect(await call()).toContain("is not available: the gateway could not sign in");
  expect(servers[0]).not.toHaveProperty("needsSignIn");
  await expect(client.request("servers.login", { name: "far", redirectUrl: CALLBACK })).rejects.toThrow(
    /the gateway signs in by itself/,
  );
});

test.each([
  ["rsa", generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey, "RS256"],
  ["ec", generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey, "ES256"],
  ["ed25519", generateKeyPairSync("ed25519").privateKey, "EdDSA"],
] as const)(
  "a client's %s key signs who the client is, for its authorization server",
  async (_, key, alg) => {
    const far = await openStrict();
    const privateKey = key.export({ type: "pkcs8", format: "pem" });
    const { call } = await openMachine(far, { grant: "client_credentials", privateKey });
    expect(await call()).toContain("you sent Bearer");
    const { client_assertion: assertion = "", ...others } = Object.fromEntries(far.requests[0]?.params ?? []);
    expect(others).toEqual({
      grant_type: "client_credentials",
      resource: far.url,
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    });
    const [head = "", body = "", signature = ""] = assertion.split(".");
    expect(jwtOf(assertion)).toMatchObject([{ alg }, { iss: "machine", sub: "machine", aud: far.base }]);
    const proof = { key: createPublicKey(key), dsaEncoding: "ieee-p1363" } as const;
    const hash = alg === "EdDSA" ? null : "sha256";
    const isValid = verify(hash, Buffer.from(`${head}.${body}`), proof, Buffer.from(signature, "base64url"));
    expect(isValid).toBe(true);
  },
);

test("the token of a file is presented as it is now; an identity provider exchanges it first", async () => {
  const far = await openStrict();
  const tokenFile = join(mkdtempSync(join(GROUND, "token-")), "token");
  writeFileSync(tokenFile, "first.workload.token\n");
  const { call } = await openMachine(far, { grant: "jwt_bearer", tokenFile });
  await call();
  writeFileSync(tokenFile, "second.workload.token\n");
  far.expire();
  await call();
  const { grant_type, assertion } = Object.fromEntries(far.requests[1]?.params ?? []);
  expect([grant_type, assertion]).toEqual([JWT_BEARER, "second.workload.token"]);
  const type = "urn:ietf:params:oauth:token-type:id-jag";
  const idp = await openFar({
    "/exchange": (_, response) =>
      json(response, { access_token: "an-exchanged-grant", issued_token_type: type, token_type: "N_A" }),
  });
  const identityProvider = { tokenUrl: `${idp.base}/exchange`, clientId: "at-the-idp" };
  const other = await openStrict();
  await (await openMachine(other, { grant: "jwt_bearer", tokenFile, identityProvider })).call();
  expect(other.requests[0]?.params.get("assertion")).toBe("an-exchanged-grant");
  const [, exchanged = ""] = idp.heard[0]?.split(" ") ?? [];
  expect(Object.fromEntries(new URLSearchParams(exchanged))).toMatchObject({
    subject_token: "second.workload.token",
    audience: other.base,
    resource: other.url,
    client_id: "at-the-idp",
    requested_token_type: type,
  });
});

test("a gateway whose token has too few scopes says so, and asks nobody to sign in", async () => {
  const far = await openFar({
    "/mcp": (request, response, body) => {
      const { authorization } = request.headers;
      if (authorization !== undefined && !body.includes("tools/call"))
        return echoing(request, response, body);
      response.setHeader("www-authenticate", 'Bearer error="insufficient_scope", scope="a b"');
      json(response, {}, authorization === undefined ? 401 : 403);
    },
  });
  const { call, client } = await openMachine(far, { grant: "client_credentials", clientSecret: SECRET });
  expect(await call()).toContain("is not available: it wants more scopes: see oauth.scope");
  expect((await client.request("servers.list", {})).servers[0]).not.toHaveProperty("needsSignIn");
});

test.each([
  [{ grant: "client_credentials", clientSecret: SECRET }, /invalid_client: the client is unknown/],
  [{ grant: "client_credentials", privateKey: "no key" }, /oauth.privateKey is not a private key/],
  [{ grant: "jwt_bearer", tokenFile: "/no/such/file" }, /ENOENT/],
])("a gateway that gets no token says why, and asks nobody to sign in: %j", async (oauth, why) => {
  const far = await openFar({
    "/token": (_, response) =>
      json(response, { error: "invalid_client", error_description: `the client is unknown: ${SECRET}` }, 401),
  });
  const { client } = await openMachine(far, oauth);
  const told = await client.request("servers.test", { name: "far" }).then(String, String);
  expect(told).toMatch(/the gateway could not sign in/);
  expect(told).toMatch(why);
  expect(told).not.toContain(SECRET);
  expect(far.heard.filter((text) => text.startsWith("/token")).length).toBeLessThan(2);
  expect((await client.request("servers.list", {})).servers[0]).not.toHaveProperty("needsSignIn");
});

test("a token is bound to a key if the server asks for it: each request proves the key, in every process", async () => {
  const token = "opaque0bound0token";
  const heard: IncomingMessage["headers"][] = [];
  const far = await openFar({
    "/token": ({ headers }, response) => {
      heard.push(headers);
      if (heard.length > 1)
        return json(response, { access_token: token, token_type: headers.dpop ? "DPoP" : "Bearer" });
      response.setHeader("dpop-nonce", "the-nonce");
      json(response, { error: "use_dpop_nonce" }, 400);
    },
    "/mcp?a=b": ({ headers }, response) => {
      heard.push(headers);
      json(response, {});
    },
  });
  const oauth = { clientId: "machine", clientSecret: SECRET, authorizationServer: far.base };
  const { open, read } = signInAt(far.url, { ...oauth, grant: "client_credentials" });
  await refuse(open(), far.url, "DPoP");
  const send = () => open().withProofs(fetch)(`${far.url}?a=b`, { method: "POST" });
  await send();
  await send();
  const proofs = heard.map(({ dpop }) => jwtOf(String(dpop)));
  expect(new Set(proofs.map(([head]) => JSON.stringify(head?.jwk))).size).toBe(1);
  expect(JSON.stringify(proofs)).not.toContain(read().key.jwk.d);
  expect(new Set(proofs.map(([, claims]) => claims?.jti)).size).toBe(4);
  const [, second, third] = proofs.map(([, claims]) => claims);
  expect(second).toMatchObject({ htm: "POST", htu: `${far.base}/token`, nonce: "the-nonce" });
  const ath = createHash("sha256").update(token).digest("base64url");
  expect(third).toMatchObject({ htm: "POST", htu: far.url, ath });
  expect(heard.slice(2).map(({ authorization }) => authorization)).toEqual([
    `DPoP ${token}`,
    `DPoP ${token}`,
  ]);
  // The server has changed.
  await refuse(open(), far.url);
  await send();
  expect(heard.slice(-2).map(({ dpop }) => dpop)).toEqual([undefined, undefined]);
});
