// The sign-in of the official MCP client: discovery, registration, consent, tokens, refresh, revocation.

import { expect, test } from "vitest";
import { originOf } from "../../../src/gateway/http/host.ts";
import { openHouse, TOKEN } from "../../gateway/kit.ts";
import { TOKEN as FLEET_TOKEN } from "../../kit/process/fleet.ts";
import { homeWith, startProcess } from "../../kit/process/gateway-process.ts";
import { fakeWorld } from "../../kit/world.ts";
import { emptyUrl } from "../../store/transfer/moves.ts";
import { settingsWith } from "../../tools/app.ts";
import {
  answered,
  back,
  CALLBACK,
  connected,
  keeper,
  opened,
  register,
  requestAt,
  signedIn,
  tokens,
  toMcp,
  VERIFIER,
} from "./sign-in-kit.ts";

const HOUR_MS = 3_600_000;

test("the official client finds the sign-in by itself, a person allows it, and its tools work", async () => {
  const house = await openHouse();
  const kept = keeper("Test program");
  await expect(connected(house, kept)).rejects.toThrow(/nauthorized/);
  const address = kept.address ?? new URL(house.http);
  const { html, response } = await opened(address);
  expect(html).toContain("Test program");
  expect(html).toContain("a program on this computer");
  expect(response.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  const signed = await signedIn(house);
  const client = await connected(house, signed);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("sessions_send");
  const owner = await house.client();
  const [token] = (await owner.request("tokens.list")).tokens;
  expect(token).toMatchObject({ name: "Test program", scopes: ["operator.write", "operator.read"] });
  expect(token?.lastUsedAtMs).toBeGreaterThan(0);
});

test("a person denies, or gives a wrong token, and the client gets no code", async () => {
  const house = await openHouse();
  const kept = keeper();
  await expect(connected(house, kept)).rejects.toThrow(/nauthorized/);
  const address = kept.address ?? new URL(house.http);
  const denied = await answered(address, { answer: "deny", token: "" });
  expect(denied.status).toBe(303);
  expect(Object.fromEntries(back(denied))).toEqual({
    error: "access_denied",
    state: "a-state",
    iss: house.http,
  });
  const wrong = await answered(address, { token: "a-token-that-is-wrong" });
  expect(wrong.status).toBe(401);
  expect(wrong.headers.get("location")).toBeNull();
  expect(await wrong.text()).toContain("the token is not valid");
  const owner = await house.client();
  expect((await owner.request("tokens.list")).tokens).toEqual([]);
});

test("the pasted link of the page is accepted, and the rights are limited to the chosen ones", async () => {
  const house = await openHouse();
  const link = `${house.http}/#token=${TOKEN}`;
  const kept = await signedIn(house, {
    token: link,
    granted: "operator.read",
    sessions: "agent:main:*, cron:*",
  });
  const client = await connected(house, kept);
  expect(kept.tokens?.scope).toBe("operator.read");
  const answer = await client.callTool({
    name: "sessions_send",
    arguments: { sessionKey: "agent:main:main", message: "hello" },
  });
  expect(JSON.stringify(answer.content)).toContain("missing");
  const owner = await house.client();
  expect((await owner.request("tokens.list")).tokens).toMatchObject([
    { scopes: ["operator.read"], sessions: ["agent:main:*", "cron:*"] },
  ]);
});

test("an access token expires after an hour, and the client refreshes it without the person", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const kept = await signedIn(house);
  const first = kept.tokens?.access_token;
  expect((await toMcp(house, first)).status).toBe(200);
  await world.advance(HOUR_MS);
  const expired = await toMcp(house, first);
  expect(expired.status).toBe(401);
  expect(expired.headers.get("www-authenticate")).toContain('error="invalid_token"');
  const client = await connected(house, kept);
  await client.ping();
  expect(kept.tokens?.access_token).not.toBe(first);
});

test("a client whose answer was lost, or whose processes refresh at once, stays signed in", async () => {
  const house = await openHouse();
  const { client_id } = await register(house, { client_name: "Program", redirect_uris: [CALLBACK] });
  const code = back(await answered(requestAt(house, { client_id }))).get("code") ?? "";
  const given = { grant_type: "authorization_code", redirect_uri: CALLBACK, code_verifier: VERIFIER };
  const first = await tokens(house, { ...given, client_id, code });
  const refresh = (refresh_token = "") =>
    tokens(house, { grant_type: "refresh_token", client_id, refresh_token });
  const both = await Promise.all([refresh(first.refresh_token), refresh(first.refresh_token)]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect(both[0]?.refresh_token).toBe(both[1]?.refresh_token);
  for (const { access_token } of both) expect((await toMcp(house, access_token)).status).toBe(200);
  const later = await refresh(both[0]?.refresh_token);
  expect((await toMcp(house, later.access_token)).status).toBe(200);
});

test("an open stream ends with its access token's hour", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const { tokens: signed } = await signedIn(house);
  const headers = { accept: "text/event-stream", authorization: `Bearer ${signed?.access_token}` };
  const stream = await fetch(`${house.http}/mcp`, { headers });
  expect(stream.status).toBe(200);
  const ended = stream.text().then(
    () => "ended",
    () => "cut",
  );
  await world.advance(HOUR_MS - 60_000);
  expect((await toMcp(house, signed?.access_token)).status).toBe(200);
  await world.advance(2 * 60_000);
  expect(await ended).toBe("cut");
});

test("a revoked sign-in ends at once: its access token and its refresh token are refused", async () => {
  const house = await openHouse();
  const kept = await signedIn(house);
  const owner = await house.client();
  const [{ id } = { id: "" }] = (await owner.request("tokens.list")).tokens;
  await owner.request("tokens.revoke", { id });
  expect((await toMcp(house, kept.tokens?.access_token)).status).toBe(401);
  await expect(connected(house, kept)).rejects.toThrow(/not valid; sign in again/);
});

test("a code that one gateway gave is exchanged at another, whose answer to a revocation is the same", async () => {
  const url = await emptyUrl();
  const config = { store: { postgresUrl: url } };
  const [one, two] = await Promise.all([
    startProcess({ home: homeWith(config) }),
    startProcess({ home: homeWith(config) }),
  ]);
  const [first, second] = [{ http: one.httpUrl }, { http: two.httpUrl }];
  const { client_id } = await register(first, { redirect_uris: [CALLBACK] });
  const code =
    back(await answered(requestAt(first, { client_id }), { token: FLEET_TOKEN })).get("code") ?? "";
  const given = { grant_type: "authorization_code", redirect_uri: CALLBACK, code_verifier: VERIFIER };
  const { access_token, refresh_token = "" } = await tokens(second, { ...given, client_id, code });
  expect((await toMcp(first, access_token)).status).toBe(200);
  const body = new URLSearchParams({ token: refresh_token });
  expect((await fetch(`${first.http}/oauth/revoke`, { method: "POST", body })).status).toBe(200);
  expect((await toMcp(second, access_token)).status).toBe(401);
});

test("a client ends its sign-in with its access token, too", async () => {
  const house = await openHouse();
  const kept = await signedIn(house);
  const body = new URLSearchParams({ token: kept.tokens?.access_token ?? "" });
  expect((await fetch(`${house.http}/oauth/revoke`, { method: "POST", body })).status).toBe(200);
  const owner = await house.client();
  expect((await owner.request("tokens.list")).tokens).toEqual([]);
});

test("a sign-in survives a restart: no gateway keeps anything of it in memory", async () => {
  const house = await openHouse();
  const kept = await signedIn(house);
  await house.stop();
  const again = await openHouse({ dir: house.dir });
  expect((await toMcp(again, kept.tokens?.access_token)).status).toBe(200);
  const { client_id = "" } = (await kept.provider.clientInformation()) ?? {};
  const given = { grant_type: "refresh_token", client_id, refresh_token: kept.tokens?.refresh_token ?? "" };
  expect(await tokens(again, given)).toMatchObject({ status: 200, token_type: "Bearer" });
});

test.each([
  ["GW.example.com:443", "https://gw.example.com"],
  ["gw.example.com", "https://gw.example.com"],
  ["127.0.0.1:7275", "http://127.0.0.1:7275"],
  ["Other.example.com:80", "http://other.example.com"],
])("at the host %s the gateway calls itself %s", (host, expected) => {
  const gateway = { ...settingsWith().gateway, allowedOrigins: ["https://GW.example.com/"] };
  expect(originOf(gateway, host)).toBe(expected);
});
