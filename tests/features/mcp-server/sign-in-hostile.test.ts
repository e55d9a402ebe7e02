// Clients and pages that try to get a token that no person gave them.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { findClient, mayRedirect, registered } from "../../../src/features/mcp-server/sign-in/clients.ts";
import { type House, joined, openHouse, TOKEN } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { fakeWorld } from "../../kit/world.ts";
import {
  answered,
  back,
  CALLBACK,
  opened,
  register,
  requestAt,
  signedIn,
  tokens,
  toMcp,
  VERIFIER,
} from "./sign-in-kit.ts";

const PROGRAM = { client_name: "Program", redirect_uris: [CALLBACK] };

/** Registers a client, lets a person allow it, and returns what it needs to ask for tokens. */
async function allowed(house: House) {
  const { client_id } = await register(house, PROGRAM);
  const code = back(await answered(requestAt(house, { client_id }))).get("code") ?? "";
  const given = { grant_type: "authorization_code", redirect_uri: CALLBACK, code_verifier: VERIFIER };
  return { ...given, client_id, code };
}

test.each([
  ["another path", "http://127.0.0.1:34567/other"],
  ["another host", "https://attacker.example/callback"],
  ["a host that begins alike", "http://127.0.0.1.attacker.example:34567/callback"],
  ["a user name", "http://127.0.0.1:34567@attacker.example/callback"],
  ["a fragment", `${CALLBACK}#x`],
  ["a script", "javascript:alert(1)"],
  ["a relative address", "/callback"],
])("a redirect to %s is refused", async (_, redirect_uri) => {
  const house = await openHouse();
  const { client_id } = await register(house, PROGRAM);
  const { response, form } = await opened(requestAt(house, { client_id, redirect_uri }));
  expect([response.status, response.headers.get("location")]).toEqual([400, null]);
  expect([...form]).toEqual([]);
  const forced = await answered(requestAt(house, { client_id, redirect_uri }));
  expect([forced.status, forced.headers.get("location")]).toEqual([400, null]);
});

test("the port of a loopback address may differ; nothing else of an address may", () => {
  const client = (...redirectUris: string[]) => ({ id: "x", name: "x", redirectUris });
  const local = client("http://127.0.0.1/callback", "http://[::1]:1/callback", "http://localhost:1/callback");
  for (const uri of ["http://127.0.0.1:9/callback", "http://[::1]:9/callback", "http://localhost:9/callback"])
    expect(mayRedirect(local, uri), uri).toBe(true);
  expect(mayRedirect(local, "https://127.0.0.1:9/callback")).toBe(false);
  expect(mayRedirect(local, "http://127.0.0.1:9/callback?x=1")).toBe(false);
  expect(mayRedirect(client("https://app.example/cb"), "https://app.example:8443/cb")).toBe(false);
  expect(mayRedirect(client("com.example.app:/cb"), "com.example.app:/cb")).toBe(true);
});

test.each([
  "javascript:alert(1)",
  "data:text/html,x",
  "file:///etc/passwd",
  "http://app.example/cb",
  "blob:x",
])("a client with the address %s cannot register", async (uri) => {
  const house = await openHouse();
  expect(await register(house, { redirect_uris: [uri] })).toMatchObject({
    status: 400,
    error: "invalid_redirect_uri",
  });
});

test("a used code ends its sign-in", async () => {
  const house = await openHouse();
  const given = await allowed(house);
  const first = await tokens(house, given);
  expect(first.status).toBe(200);
  expect((await toMcp(house, first.access_token)).status).toBe(200);
  expect(await tokens(house, given)).toEqual({
    status: 400,
    error: "invalid_grant",
    error_description: expect.any(String),
  });
  expect((await toMcp(house, first.access_token)).status).toBe(401);
});

test("two requests with the same code at the same time leave no valid token", async () => {
  const house = await openHouse();
  const given = await allowed(house);
  const answers = await Promise.all([tokens(house, given), tokens(house, given)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  for (const { access_token } of answers) expect((await toMcp(house, access_token)).status).toBe(401);
});

test("a code needs its verifier, client and address", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const given = await allowed(house);
  const other = await register(house, { ...PROGRAM, client_name: "Another program" });
  for (const wrong of [
    { code_verifier: `${VERIFIER}x` },
    { code_verifier: "" },
    { client_id: other.client_id },
    { redirect_uri: "http://127.0.0.1:1/callback" },
    { code: given.code.replace(/.$/, (last) => (last === "A" ? "B" : "A")) },
    { code: given.code.replace("pmc1", "pmr1"), grant_type: "refresh_token" },
  ])
    expect((await tokens(house, { ...given, ...wrong })).error, JSON.stringify(wrong)).toBe("invalid_grant");
  await world.advance(60_000);
  expect((await tokens(house, given)).error).toBe("invalid_grant");
});

test("a refresh token that is used again after a minute ends its sign-in", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const given = await allowed(house);
  const first = await tokens(house, given);
  const again = { grant_type: "refresh_token", client_id: given.client_id };
  const next = await tokens(house, { ...again, refresh_token: first.refresh_token ?? "" });
  expect(next.status).toBe(200);
  await world.advance(60_000);
  for (const { refresh_token = "" } of [first, next])
    expect((await tokens(house, { ...again, refresh_token })).error).toBe("invalid_grant");
  expect((await toMcp(house, next.access_token)).status).toBe(401);
});

test("a refresh token from before the last one ends its sign-in at once", async () => {
  const house = await openHouse();
  const given = await allowed(house);
  const again = { grant_type: "refresh_token", client_id: given.client_id };
  const first = await tokens(house, given);
  const second = await tokens(house, { ...again, refresh_token: first.refresh_token ?? "" });
  const third = await tokens(house, { ...again, refresh_token: second.refresh_token ?? "" });
  expect(third.status).toBe(200);
  expect((await tokens(house, { ...again, refresh_token: first.refresh_token ?? "" })).status).toBe(400);
  expect((await toMcp(house, third.access_token)).status).toBe(401);
});

test("AU7: the token is valid at /mcp only", async () => {
  const house = await openHouse();
  const { tokens: given } = await signedIn(house);
  const token = given?.access_token ?? "";
  for (const path of ["/v1/models", "/metrics", "/page/first", "/tools/invoke", "/mcp/x"]) {
    const method = path === "/tools/invoke" ? "POST" : "GET";
    const answer = await fetch(`${house.http}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
    });
    expect([path, answer.status]).toEqual([path, path === "/mcp/x" ? 404 : 401]);
  }
  await expect(joined(house, { auth: { token } })).rejects.toThrow();
  expect((await toMcp(house, given?.refresh_token)).status).toBe(401);
  // The token cannot give rights to another program either.
  const { client_id } = await register(house, PROGRAM);
  expect((await answered(requestAt(house, { client_id }), { token })).status).toBe(401);
  const elsewhere = requestAt(house, { client_id, resource: "https://mcp.example.com/mcp" });
  expect((await opened(elsewhere)).html).toContain("another server");
  const params = { ...(await allowed(house)), resource: "https://mcp.example.com/mcp" };
  expect((await tokens(house, params)).error).toBe("invalid_target");
});

test("a sign-in without PKCE, with the method plain, or with the scope of an administrator is refused", async () => {
  const house = await openHouse();
  const { client_id } = await register(house, PROGRAM);
  for (const wrong of [
    { code_challenge: "" },
    { code_challenge_method: "plain" },
    { scope: "operator.admin" },
    { response_type: "token" },
    { state: "x".repeat(2_001) },
  ])
    expect((await opened(requestAt(house, { client_id, ...wrong }))).response.status).toBe(400);
  const twice = requestAt(house, { client_id });
  twice.searchParams.append("redirect_uri", "https://attacker.example");
  expect((await opened(twice)).response.status).toBe(400);
  const more = await answered(requestAt(house, { client_id, scope: "operator.read" }), {
    granted: "operator.write",
  });
  expect(more.status).toBe(401);
  expect((await answered(requestAt(house, { client_id }), { granted: "operator.admin" })).status).toBe(401);
});

test("I9: a client gets the person's rights at most", async () => {
  const partial = {
    token: "a-token-for-research-only",
    role: "operator",
    scopes: ["operator.read"],
    sessions: ["agent:research:*"],
  } as const;
  const house = await openHouse({ gateway: { tokens: [partial] } });
  const { client_id } = await register(house, PROGRAM);
  const consent = (answer: object) =>
    answered(requestAt(house, { client_id }), { token: partial.token, ...answer });
  expect((await consent({ granted: "operator.write" })).status).toBe(401);
  expect((await consent({ granted: "operator.read", sessions: "agent:main:*" })).status).toBe(401);
  expect((await consent({ granted: "operator.read" })).status).toBe(303);
  const owner = await house.client();
  expect((await owner.request("tokens.list")).tokens).toMatchObject([{ sessions: ["agent:research:*"] }]);
  const made = await owner.request("tokens.create", { name: "a program", scopes: ["operator.admin"] });
  expect((await consent({ token: made.token, granted: "operator.read" })).status).toBe(401);
});

test("a client's name adds no markup", async () => {
  const house = await openHouse();
  const name = "<script>alert(1)</script>\"'&\u202Elive";
  const { client_id, client_name } = await register(house, { ...PROGRAM, client_name: name });
  expect(client_name).not.toMatch(/\u202E/);
  const { html, response } = await opened(requestAt(house, { client_id, state: '"><img src=x>' }));
  expect(response.status).toBe(200);
  expect(html).not.toMatch(/<script|<img/);
  expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
  const policy = response.headers.get("content-security-policy");
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("form-action 'self' http://127.0.0.1:34567");
  expect(response.headers.get("x-frame-options")).toBe("DENY");
});

test("another page cannot answer", async () => {
  const house = await openHouse();
  const { client_id } = await register(house, PROGRAM);
  const body = new URLSearchParams(requestAt(house, { client_id }).searchParams);
  for (const [name, value] of Object.entries({ token: TOKEN, answer: "allow", granted: "operator.write" }))
    body.append(name, value);
  const post = (headers: Record<string, string>) =>
    fetch(`${house.http}/oauth/authorize`, { method: "POST", body, headers, redirect: "manual" });
  expect((await post({ origin: "https://attacker.example" })).status).toBe(403);
  expect((await post({ origin: house.http })).status).toBe(303);
});

test("a document on a private address is never read", async () => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const house = await openHouse();
  for (const address of [
    `https://127.0.0.1:${port}/client.json`,
    `https://localhost:${port}/client.json`,
    `https://[::1]:${port}/client.json`,
    "https://10.0.0.1/client.json",
    "https://169.254.169.254/latest",
  ]) {
    const { response, html } = await opened(requestAt(house, { client_id: address }));
    expect([address, response.status]).toEqual([address, 400]);
    expect(html).toContain("private network");
  }
  const plain = await opened(requestAt(house, { client_id: `http://127.0.0.1:${port}/client.json` }));
  expect(plain.html).toContain("not issued here");
  expect(asked).toBe(0);
});

test("a client's metadata document must name its own address, and its addresses are checked like others", async () => {
  const id = "https://app.example/client.json";
  const read = (document: unknown) => findClient(id, CALLBACK, async () => ({ kind: "read", document }));
  const document = { client_id: id, client_name: "App", redirect_uris: ["http://localhost/callback"] };
  const found = await read(document);
  expect(found).toMatchObject({ ok: true, value: { id, name: "App" } });
  if (found.ok) expect(mayRedirect(found.value, "http://localhost:5/callback")).toBe(true);
  for (const wrong of [
    { ...document, client_id: "https://other.example/client.json" },
    { ...document, redirect_uris: ["javascript:x"] },
    { ...document, redirect_uris: [] },
    undefined,
  ])
    expect((await read(wrong)).ok).toBe(false);
  for (const address of [
    "https://app.example/",
    "https://u@app.example/x",
    "https://app.example/x#y",
    "pcl1.x",
  ])
    expect((await findClient(address, CALLBACK, async () => ({ kind: "read", document }))).ok).toBe(false);
});

test("OC4: a program on this computer signs in although its metadata document is out of reach", async () => {
  const house = await openHouse();
  const client_id = "https://client.invalid/program.json";
  const { response, html } = await opened(requestAt(house, { client_id }));
  expect(response.status).toBe(200);
  expect(html).toContain(`<code>${client_id}</code>, but this gateway cannot reach that address`);
  const code = back(await answered(requestAt(house, { client_id }))).get("code") ?? "";
  const given = { grant_type: "authorization_code", redirect_uri: CALLBACK, code_verifier: VERIFIER };
  const { access_token } = await tokens(house, { ...given, client_id, code });
  expect((await toMcp(house, access_token)).status).toBe(200);
  for (const redirect_uri of ["https://client.invalid/callback", "com.example.app:/callback"]) {
    const elsewhere = await opened(requestAt(house, { client_id, redirect_uri }));
    expect([elsewhere.response.status, [...elsewhere.form]]).toEqual([400, []]);
    expect(elsewhere.html).toContain("cannot be reached from this gateway");
  }
});

test("registration stores nothing and is limited", async () => {
  const house = await openHouse({ world: fakeWorld() });
  const states = new Set<number>();
  for (let count = 0; count < 61; count += 1) states.add((await register(house, PROGRAM)).status);
  expect([...states]).toEqual([201, 429]);
  expect(await house.store.db.selectFrom("access_tokens").selectAll().execute()).toEqual([]);
  const many = registered({
    redirect_uris: Array.from({ length: 9 }, (_, at) => `https://app.example/${at}`),
  });
  expect(many.ok).toBe(false);
});

test("failures at one path leave the others to people behind the same address", async () => {
  const house = await openHouse({ world: fakeWorld() });
  const { client_id } = await register(house, PROGRAM);
  const guess = { grant_type: "refresh_token", client_id, refresh_token: "wrong" };
  const states = new Set<number>();
  for (let count = 0; count < 61; count += 1) states.add((await tokens(house, guess)).status);
  expect([...states]).toEqual([400, 429]);
  expect((await opened(requestAt(house, { client_id }))).response.status).toBe(200);
});

test("programs that refresh their sign-ins leave the allowance of wrong guesses as it was", async () => {
  const house = await openHouse({ world: fakeWorld() });
  const given = await allowed(house);
  const again = { grant_type: "refresh_token", client_id: given.client_id };
  let { refresh_token = "" } = await tokens(house, given);
  for (let count = 0; count < 70; count += 1) {
    const next = await tokens(house, { ...again, refresh_token });
    expect([count, next.status]).toEqual([count, 200]);
    refresh_token = next.refresh_token ?? "";
  }
  const guess = async () => (await tokens(house, { ...again, refresh_token: "wrong" })).status;
  for (let count = 0; count < 60; count += 1) expect(await guess()).toBe(400);
  expect(await guess()).toBe(429);
});

test("with 100 sign-ins a token gets no more, but other tokens do", async () => {
  const other = "another-token-of-an-operator";
  const operator = { token: other, role: "operator", scopes: ["operator.write"] } as const;
  const house = await openHouse({ gateway: { tokens: [operator] } });
  const { client_id } = await register(house, PROGRAM);
  const given = await answered(requestAt(house, { client_id }));
  expect(given.status).toBe(303);
  const [one] = await house.store.db.selectFrom("access_tokens").selectAll().execute();
  if (one === undefined) throw new Error("there is no sign-in");
  const more = Array.from({ length: 99 }, (_, at) => ({ ...one, id: `${one.id}-${at}` }));
  await house.store.transaction((tx) => tx.insertInto("access_tokens").values(more).execute());
  const refused = await answered(requestAt(house, { client_id }));
  expect(await refused.text()).toContain("100 programs are signed in with this token");
  expect((await answered(requestAt(house, { client_id }), { token: other })).status).toBe(303);
});
