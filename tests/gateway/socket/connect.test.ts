// The handshake: limits before authentication, and the accepted proofs.

import { expect, test } from "vitest";
import { fakeWorld } from "../../kit/world.ts";
import { type Device, newDevice } from "../clients/devices.ts";
import { connectParams, type House, joined, openHouse, openRaw, type Raw, TOKEN } from "../kit.ts";

async function say(raw: Raw, params: unknown): Promise<Awaited<ReturnType<Raw["res"]>>> {
  raw.send({ type: "req", id: "c", method: "connect", params });
  return raw.res("c");
}

test("a socket is challenged at once, and greeted after a valid connect", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  const challenge = await raw.next((frame) => frame.event === "connect.challenge");
  expect(challenge.payload).toEqual({ nonce: expect.any(String), ts: expect.any(Number) });
  const hello = await say(raw, connectParams());
  expect(hello.ok).toBe(true);
  expect(hello.payload).toMatchObject({
    type: "hello-ok",
    protocol: 3,
    server: { version: "0.0.0-test", host: expect.any(String), connId: expect.any(String) },
    features: {
      methods: expect.arrayContaining(["agent", "chat.send"]),
      events: expect.arrayContaining(["tick"]),
    },
    snapshot: {
      presence: [expect.objectContaining({ clientId: "test" })],
      health: { ok: true },
      stateVersion: { presence: expect.any(Number), health: expect.any(Number) },
      uptimeMs: expect.any(Number),
      stateDir: house.dir,
      sessionDefaults: {
        defaultAgentId: "main",
        mainKey: "main",
        mainSessionKey: "agent:main:main",
        scope: "per-sender",
      },
    },
    policy: { maxPayload: 26_214_400, maxBufferedBytes: 1_000_000, tickIntervalMs: 15_000 },
    auth: { role: "operator", scopes: ["operator.admin", "operator.write", "operator.read"] },
  });
});

test.each([
  [3, 3, 3],
  [1, 3, 3],
  [3, 4, 4],
  [4, 9, 4],
  [1, 99, 4],
])(
  "for a client that supports versions %i to %i the chosen version is %i",
  async (minProtocol, maxProtocol, spoken) => {
    const house = await openHouse();
    const hello = await say(await openRaw(house.url), connectParams({ minProtocol, maxProtocol }));
    expect(hello.payload.protocol).toBe(spoken);
  },
);

test.each([
  [1, 2],
  [5, 9],
  [4, 3],
])(
  "a client that supports versions %i to %i is refused with both ranges, and closed with 1002",
  async (minProtocol, maxProtocol) => {
    const house = await openHouse();
    const raw = await openRaw(house.url);
    const answer = await say(raw, connectParams({ minProtocol, maxProtocol }));
    expect(answer.error?.code).toBe("INVALID_REQUEST");
    expect(answer.error?.message).toContain("3 and 4");
    expect((await raw.closed()).code).toBe(1002);
  },
);

test("unknown fields of connect are ignored, and any client id and mode are accepted", async () => {
  const house = await openHouse();
  const client = {
    id: "my own",
    version: "9",
    platform: "toaster",
    mode: "odd",
    deviceFamily: "x",
    future: [1],
  };
  const more = {
    client,
    caps: ["a"],
    pathEnv: "x",
    futureField: { deep: true },
    locale: "de",
    userAgent: "ua",
  };
  expect((await say(await openRaw(house.url), connectParams(more))).ok).toBe(true);
});

const WRONG_CONNECTS: [string, unknown, RegExp][] = [
  ["no params", undefined, /minProtocol is required/],
  ["params as a list", [], /params must be an object, got an array/],
  ["a version as text", connectParams({ minProtocol: "3" }), /minProtocol must be a whole number, got "3"/],
  ["no client", connectParams({ client: undefined }), /client is required/],
  [
    "a client without an id",
    connectParams({ client: { version: "1", platform: "x", mode: "y" } }),
    /id is required/,
  ],
  ["a number as token", connectParams({ auth: { token: 5 } }), /auth.token must be a string/],
  ["scopes as text", connectParams({ scopes: "operator.read" }), /scopes must be an array/],
  ["a role that isn't one", connectParams({ role: "king" }), /role must be "operator" or "node"/],
];
test.each(WRONG_CONNECTS)(
  "connect with %s is refused with a reason, and the connection is closed",
  async (_, params, words) => {
    const house = await openHouse();
    const raw = await openRaw(house.url);
    const answer = await say(raw, params);
    expect(answer.error?.code).toBe("INVALID_REQUEST");
    expect(answer.error?.message).toMatch(words);
    expect((await raw.closed()).code).toBe(1008);
  },
);

test("the first request must be connect", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  raw.send({ type: "req", id: "1", method: "health" });
  expect((await raw.res("1")).error?.message).toContain('must be "connect"');
  expect((await raw.closed()).code).toBe(1008);
});

test("a socket without a connect request is closed after 10 s, not before", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const raw = await openRaw(house.url);
  await raw.next((frame) => frame.event === "connect.challenge");
  await world.advance(9_999);
  expect(raw.socket.readyState).toBe(raw.socket.OPEN);
  await world.advance(1);
  const { code, reason } = await raw.closed();
  expect(code).toBe(1008);
  expect(reason).toContain("10 s");
});

test("a second connect request is an error, and the connection stays open", async () => {
  const house = await openHouse();
  const raw = await joined(house);
  raw.send({ type: "req", id: "again", method: "connect", params: connectParams() });
  expect((await raw.res("again")).error?.message).toContain("already connected");
  raw.send({ type: "req", id: "h", method: "health" });
  expect((await raw.res("h")).ok).toBe(true);
});

test("requests that are sent directly after connect are answered after connect has succeeded", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams() });
  raw.send({ type: "req", id: "h", method: "health" });
  expect((await raw.res("h")).ok).toBe(true);
});

test("more than 64 KiB close the socket with 1009 before connect, and are accepted after connect", async () => {
  const house = await openHouse();
  const flood = await openRaw(house.url);
  flood.text(
    JSON.stringify({ type: "req", id: "1", method: "connect", params: { pad: "x".repeat(70_000) } }),
  );
  expect((await flood.closed()).code).toBe(1009);
  const raw = await joined(house);
  raw.send({ type: "req", id: "1", method: "health", params: { probe: "x".repeat(70_000) } });
  expect((await raw.res("1")).ok).toBe(true);
});

test("many small frames before connect are limited, too", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  raw.text("{");
  for (let index = 0; index < 5_000; index++) raw.socket.send("xxxxxxxxxxxxxxxxxxxx", () => {});
  await raw.closed();
  expect(raw.frames.filter((frame) => frame.type === "res").length).toBeLessThan(5);
});

const GONE: [string, Record<string, unknown>][] = [
  ["no auth", { auth: undefined }],
  ["an empty token", { auth: { token: "" } }],
  ["a wrong token", { auth: { token: "guess" } }],
  ["a token with something behind it", { auth: { token: `${TOKEN} ` } }],
  ["a wrong password", { auth: { password: "guess" } }],
  ["a made-up device token", { auth: { token: "pdt1.e30.AAAA" } }],
];
test.each(GONE)(
  "%s: the connection is refused as UNAUTHORIZED and closed, also on loopback",
  async (_, more) => {
    const house = await openHouse();
    const raw = await openRaw(house.url);
    expect((await say(raw, connectParams(more))).error?.code).toBe("UNAUTHORIZED");
    expect((await raw.closed()).code).toBe(1008);
  },
);

test("wrong tokens are limited for each address, but a right token is still accepted", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const codes: (string | undefined)[] = [];
  for (let index = 0; index < 12; index++) {
    const answer = await say(await openRaw(house.url), connectParams({ auth: { token: `guess ${index}` } }));
    codes.push(answer.error?.code);
  }
  expect(codes.slice(0, 10)).toEqual(Array(10).fill("UNAUTHORIZED"));
  expect(codes.slice(10)).toEqual(["RATE_LIMITED", "RATE_LIMITED"]);
  expect((await say(await openRaw(house.url), connectParams())).ok).toBe(true);
  const late = await say(await openRaw(house.url), connectParams({ auth: { token: "guess" } }));
  expect(late.error).toMatchObject({ code: "RATE_LIMITED", retryAfterMs: expect.any(Number) });
  await world.advance(late.error?.retryAfterMs ?? 0);
  const again = await say(await openRaw(house.url), connectParams({ auth: { token: "guess" } }));
  expect(again.error?.code).toBe("UNAUTHORIZED");
});

async function challengeOf(raw: Raw): Promise<string> {
  return (await raw.next((frame) => frame.event === "connect.challenge")).payload.nonce;
}

const FORMS: [string, (device: Device, nonce: string, at: number) => { text: string; nonce?: string }][] = [
  [
    "v3",
    ({ id }, nonce, at) => ({
      nonce,
      text: ["v3", id, "test", "test", "operator", "", at, TOKEN, nonce, "test", ""].join("|"),
    }),
  ],
  [
    "v2",
    ({ id }, nonce, at) => ({
      nonce,
      text: ["v2", id, "test", "test", "operator", "", at, TOKEN, nonce].join("|"),
    }),
  ],
  [
    "v1 without a nonce",
    ({ id }, _, at) => ({ text: ["v1", id, "test", "test", "operator", "", at, TOKEN].join("|") }),
  ],
  ["the nonce alone", (_, nonce) => ({ nonce, text: nonce })],
];
test.each(FORMS)(
  "a device signature over %s is accepted, and the answer contains a device token that connects",
  async (_, form) => {
    const house = await openHouse();
    const raw = await openRaw(house.url);
    const key = newDevice();
    const signedAt = Date.now();
    const { text, ...nonce } = form(key, await challengeOf(raw), signedAt);
    const proof = { id: key.id, publicKey: key.publicKey, signature: key.sign(text), signedAt, ...nonce };
    const hello = await say(raw, connectParams({ device: proof }));
    expect(hello.payload.auth.deviceToken).toEqual(expect.any(String));
    const again = await comeAgain(house, key, { auth: { token: hello.payload.auth.deviceToken } });
    expect(again.payload.auth.scopes).toEqual(hello.payload.auth.scopes);
  },
);

function proofOf(key: Device, nonce: string): Record<string, unknown> {
  return { id: key.id, publicKey: key.publicKey, signature: key.sign(nonce), signedAt: Date.now(), nonce };
}

/** Connects again, with the device's signature over the challenge. */
async function comeAgain(house: House, key: Device, more: Record<string, unknown>) {
  const raw = await openRaw(house.url);
  return say(raw, connectParams({ ...more, device: proofOf(key, await challengeOf(raw)) }));
}

test("a device proof is refused if any part of it is wrong", async () => {
  const house = await openHouse();
  const wrong = async (
    change: (proof: Record<string, unknown>, nonce: string) => Record<string, unknown>,
  ) => {
    const raw = await openRaw(house.url);
    const nonce = await challengeOf(raw);
    const good = proofOf(newDevice(), nonce);
    return (await say(raw, connectParams({ device: change(good, nonce) }))).error;
  };
  expect(await wrong((proof) => ({ ...proof, nonce: "another" }))).toMatchObject({ code: "UNAUTHORIZED" });
  expect(await wrong((proof) => ({ ...proof, id: "0".repeat(64) }))).toMatchObject({ code: "UNAUTHORIZED" });
  expect(await wrong((proof) => ({ ...proof, publicKey: "AAAA" }))).toMatchObject({ code: "UNAUTHORIZED" });
  expect(await wrong((proof) => ({ ...proof, signature: "AAAA" }))).toMatchObject({ code: "UNAUTHORIZED" });
  expect(await wrong((proof) => ({ ...proof, signature: 7 }))).toMatchObject({ code: "INVALID_REQUEST" });
  expect(await wrong(({ nonce: _, ...proof }) => ({ ...proof, signedAt: 0 }))).toMatchObject({
    code: "UNAUTHORIZED",
  });
});

test("a proof for one connection is invalid for any other connection", async () => {
  const house = await openHouse();
  const [first, second] = [await openRaw(house.url), await openRaw(house.url)];
  const proof = proofOf(newDevice(), await challengeOf(first));
  expect((await say(first, connectParams({ device: proof }))).ok).toBe(true);
  expect((await say(second, connectParams({ device: proof }))).error?.code).toBe("UNAUTHORIZED");
});

test("a device token has the rights of its connection, and can't be altered", async () => {
  const house = await openHouse();
  const key = newDevice();
  const hello = await comeAgain(house, key, { scopes: ["operator.read"] });
  const token: string = hello.payload.auth.deviceToken;
  const again = await comeAgain(house, key, { auth: { token } });
  expect(again.payload.auth.scopes).toEqual(["operator.read"]);
  const more = { scopes: ["operator.admin"] };
  const asked = await comeAgain(house, key, { auth: { token }, ...more });
  expect(asked.payload.auth.scopes).toEqual(["operator.read"]);
  const [prefix, body = "", mark] = token.split(".");
  const grant = JSON.parse(Buffer.from(body, "base64url").toString());
  for (const change of [more, { until: grant.until + 1 }, { device: newDevice().id }]) {
    const richer = Buffer.from(JSON.stringify({ ...grant, ...change })).toString("base64url");
    const forged = await comeAgain(house, key, { auth: { token: `${prefix}.${richer}.${mark}` } });
    expect(forged.error).toMatchObject({
      code: "UNAUTHORIZED",
      message: expect.stringContaining("the token is not valid"),
    });
  }
});

const CONNECT_ANEW = "Connect with the gateway's token and the device's signature to get a new one.";

test("a device token is refused with another key, without a signed challenge, and after its expiry", async () => {
  const world = fakeWorld();
  let later = 0;
  const now = () => world.clock.now() + later;
  const house = await openHouse({ world: { ...world, clock: { ...world.clock, now } } });
  const key = newDevice();
  const token: string = (await comeAgain(house, key, {})).payload.auth.deviceToken;
  const auth = { token };
  const refused = (why: string) => ({ code: "UNAUTHORIZED", message: `${why}. ${CONNECT_ANEW}` });
  const other = await comeAgain(house, newDevice(), { auth });
  expect(other.error).toMatchObject(refused("the device token belongs to another device"));
  const unsigned = refused(
    "a device token needs its device's signature over the challenge of this connection",
  );
  for (const auth of [{ token }, { deviceToken: token }, { password: token }]) {
    expect((await say(await openRaw(house.url), connectParams({ auth }))).error).toMatchObject(unsigned);
  }
  const signedAt = now();
  const text = ["v1", key.id, "test", "test", "operator", "", signedAt, token].join("|");
  const lasting = { id: key.id, publicKey: key.publicKey, signature: key.sign(text), signedAt };
  const replayable = await say(await openRaw(house.url), connectParams({ auth, device: lasting }));
  expect(replayable.error).toMatchObject(unsigned);
  later = 89 * 86_400_000;
  const fresh: string = (await comeAgain(house, key, { auth })).payload.auth.deviceToken;
  later += 86_400_000;
  expect((await comeAgain(house, key, { auth })).error).toMatchObject(
    refused("the device token has expired"),
  );
  expect((await comeAgain(house, key, { auth: { token: fresh } })).ok).toBe(true);
});

test("a device token is not accepted over HTTP", async () => {
  const house = await openHouse();
  const { payload } = await comeAgain(house, newDevice(), {});
  const headers = { authorization: `Bearer ${payload.auth.deviceToken}`, "content-type": "application/json" };
  const http = house.url.replace(/^ws/, "http");
  for (const route of ["/v1/models", "/metrics"]) {
    expect((await fetch(`${http}${route}`, { headers })).status, route).toBe(401);
  }
  for (const route of ["/v1/chat/completions", "/v1/responses", "/tools/invoke", "/mcp"]) {
    const asked = await fetch(`${http}${route}`, { method: "POST", headers, body: "{}" });
    expect(asked.status, route).toBe(401);
  }
});

test("a signature does not replace a token", async () => {
  const house = await openHouse();
  const raw = await openRaw(house.url);
  const proof = proofOf(newDevice(), await challengeOf(raw));
  expect((await say(raw, connectParams({ auth: undefined, device: proof }))).error?.code).toBe(
    "UNAUTHORIZED",
  );
});
