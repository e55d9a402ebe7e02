// The doors and methods of peers, with hostile peers.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { signingKey } from "../../../src/features/a2a/key.ts";
import { peerProof } from "../../../src/features/a2a/peers/proof.ts";
import { codeKeyOf, seal } from "../../../src/features/a2a/peers/seal.ts";
import { type House, openHouse } from "../../gateway/kit.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { freePort } from "../../kit/loopback.ts";

/** Starts a web server that answers each request with this. */
async function server(status: number, headers: Record<string, string>, body: string): Promise<string> {
  const made = createServer((_, response) => response.writeHead(status, headers).end(body));
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", () => resolve()));
  cleanup(() => new Promise<void>((resolve) => made.close(() => resolve())));
  return `http://127.0.0.1:${(made.address() as AddressInfo).port}`;
}

const add = async (house: House, url: string, code = "ABCD-EFGH-JKMN-PQRS") =>
  (await house.client()).request("peers.add", { name: "lab", url, code }).catch(String);

test("PD1: a host that redirects, or answers without the code, pairs with nobody", async () => {
  const near = await openHouse();
  const other = await openHouse();
  const redirecting = await server(307, { location: `${other.http}/peer/pair` }, "");
  expect(await add(near, redirecting)).toContain("HTTP 307");
  const lying = await server(
    200,
    { "content-type": "application/json" },
    JSON.stringify({ answer: "x".repeat(99) }),
  );
  expect(await add(near, lying)).toContain("was not made with this pairing code");
  const huge = await server(200, {}, "x".repeat(200_000));
  expect(await add(near, huge)).toContain("too long an answer");
  expect(await add(near, await server(200, {}, "<html>"))).toContain("was not made with this pairing code");
  const nowhere = await freePort();
  expect(await add(near, `http://127.0.0.1:${nowhere}`)).toContain(`(ECONNREFUSED 127.0.0.1:${nowhere})`);
  expect(await add(near, "http://peer.invalid")).toMatch(
    /cannot be reached \((?:ENOTFOUND|EAI_AGAIN) peer.invalid\)/,
  );
  expect(await add(near, "ftp://x")).toContain("is not the address of a gateway");
  expect(await (await near.client()).request("peers.list", {})).toMatchObject({ peers: [] });
});

test("PE1: a gateway is not its own peer, and has one name at most", async () => {
  const near = await openHouse();
  const client = await near.client();
  const { code = "" } = await client.request("peers.add", { name: "me" });
  expect(await add(near, near.http, code)).toContain("a gateway cannot be its own peer");
  const far = await openHouse();
  const invited = async (name: string) =>
    (await (await far.client()).request("peers.add", { name })).code ?? "";
  expect(await add(near, far.http, await invited("one"))).toMatchObject({ ok: true });
  const again = client.request("peers.add", { name: "twin", url: far.http, code: await invited("two") });
  await expect(again).rejects.toThrow("already the peer one");
});

test("I4: a repeated request gets the first answer, without the code; a code pairs once", async () => {
  const [near, far] = [await openHouse(), await openHouse()];
  const [client, there] = [await near.client(), await far.client()];
  const keyed = (params: object) => ({ ...params, idempotencyKey: "once" });
  const invite = () => there.request("peers.add", { ...keyed({}), name: "desk" });
  const { code = "", ...invited } = await invite();
  expect(code).toMatch(/^([A-Z0-9]{4}-){3}[A-Z0-9]{4}$/);
  expect(await invite()).toEqual(invited);
  const pairing = () => client.request("peers.add", { ...keyed({}), name: "lab", url: far.http, code });
  const paired = await pairing();
  expect(paired.peer.state).toBe("paired");
  expect(await pairing()).toEqual(paired);
  const remove = () => client.request("peers.remove", { name: "lab", idempotencyKey: "gone" });
  expect([await remove(), await remove()]).toEqual(Array(2).fill({ ok: true, name: "lab" }));
});

test("PE2: a gateway that knows the code, but sends no usable key or too many agents, is refused", async () => {
  const far = await openHouse();
  const there = await far.client();
  const { code = "" } = await there.request("peers.add", { name: "desk", agents: ["research"] });
  const ec = (namedCurve: string) =>
    generateKeyPairSync("ec", { namedCurve }).publicKey.export({ format: "jwk" });
  const pairWith = async (introduction: unknown) => {
    const request = seal(codeKeyOf(code), "request", introduction, JSON.stringify(introduction));
    const body = JSON.stringify({ request });
    return (await fetch(`${far.http}/peer/pair`, { method: "POST", body })).status;
  };
  const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" });
  const key = ec("P-256");
  for (const wrong of [rsa, ec("P-384"), { ...key, x: "AAAA" }, { kty: "oct", k: "AAAA" }, "key", null])
    expect(await pairWith({ key: wrong, agents: [] })).toBe(404);
  expect(await pairWith({ key, agents: Array(65).fill("main") })).toBe(404);
  expect((await there.request("peers.list", {})).peers).toMatchObject([{ state: "invited" }]);
  expect(await pairWith({ key, agents: ["main", "../main", "a:b", 5, ""] })).toBe(200);
  expect((await there.request("peers.list", {})).peers).toMatchObject([
    { state: "paired", offers: ["main"] },
  ]);
});

test("PA2: an address that guesses codes has to wait", async () => {
  const far = await openHouse();
  const guess = async () =>
    (await fetch(`${far.http}/peer/pair`, { method: "POST", body: JSON.stringify({ request: "AAAA" }) }))
      .status;
  const statuses: number[] = [];
  for (let tries = 0; tries < 12; tries += 1) statuses.push(await guess());
  expect(statuses.slice(0, 10)).toEqual(Array(10).fill(404));
  expect(statuses.at(-1)).toBe(429);
});

test("PA1: the proof of a peer opens no other path, and no agent that is not exposed", async () => {
  const near = await openHouse();
  const far = await openHouse();
  const there = await far.client();
  const { code = "" } = await there.request("peers.add", { name: "desk", agents: ["research"] });
  await add(near, far.http, code);
  const own = await signingKey(near.store, near.engine.now());
  const { kid } = (await signingKey(far.store, 0)).publicKey;
  const get = async (path: string, method = "GET", body = "") => {
    const authorization = peerProof(own, { method, path, body, to: kid, now: Date.now() });
    const init =
      method === "GET" ? { headers: { authorization } } : { method, headers: { authorization }, body };
    return (await fetch(`${far.http}${path}`, init)).status;
  };
  expect(await get("/peer/agents")).toBe(200);
  expect(await get("/a2a/research/.well-known/agent-card.json")).toBe(200);
  expect(await get("/a2a/main/.well-known/agent-card.json")).toBe(403);
  expect(await get("/a2a/main", "POST", "{}")).toBe(404);
  expect(await get("/metrics")).toBe(401);
  expect(await get("/tools/invoke", "POST", "{}")).toBe(401);
  expect(await get("/v1/models")).toBe(401);
  const wrong = () => fetch(`${far.http}/peer/agents`, { headers: { authorization: "Parley-Peer a.b" } });
  const refused: number[] = [];
  for (let tries = 0; tries < 12; tries += 1) refused.push((await wrong()).status);
  expect(refused.at(-1)).toBe(429);
  // A right proof from the same address is still accepted.
  expect(await get("/peer/agents")).toBe(200);
  await there.request("peers.update", { name: "desk", agents: [] });
  expect(await get("/a2a/research/.well-known/agent-card.json")).toBe(403);
  expect(await (await near.client()).request("peers.list", {})).toMatchObject({ peers: [{ offers: [] }] });
  await there.request("peers.remove", { name: "desk" });
  // Other requests of the address were refused as guesses, and this one still says that the peer was removed.
  expect(await get("/peer/agents")).toBe(401);
});
