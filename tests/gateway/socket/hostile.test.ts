// Hostile clients below the protocol: raw sockets, malformed frames, hundreds of connections.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import { test } from "../../kit/deep.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { fakeWorld } from "../../kit/world.ts";
import { connectParams, type House, joined, openHouse, openRaw, TOKEN } from "../kit.ts";

/** Opens a TCP connection whose own side stays open until the test closes it. */
async function tcp(house: House): Promise<Socket> {
  const socket = connect({ port: house.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  cleanup(() => {
    socket.destroy();
  });
  await once(socket, "connect");
  return socket;
}

/** Returns everything received until the gateway closed or reset the connection. */
async function heard(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (piece) => {
    text += piece;
  });
  await new Promise<void>((resolve) => socket.on("end", resolve).on("close", () => resolve()));
  return text;
}

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

function upgrade(path: string, ...headers: string[]): string {
  return `${[`GET ${path} HTTP/1.1`, ...UPGRADE, ...headers].join("\r\n")}\r\n\r\n`;
}

test("a refused upgrade leaves no connection behind, even if the client never closes", async () => {
  const house = await openHouse();
  const socket = await tcp(house);
  socket.write(upgrade("/", "Host: evil.example"));
  expect(await heard(socket)).toMatch(/^HTTP\/1.1 403 /);
  // The client's side is still open; a stop of the gateway must not wait for it.
  await house.gateway.close();
});

test("a stop does not wait for a client that does not answer the close frame", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const raw = await joined(house);
  raw.socket.pause();
  raw.socket.send(Buffer.from("binary"));
  const other = await joined(house);
  other.send({ type: "req", id: "h", method: "status" });
  await other.res("h");
  const closed = house.gateway.close();
  await world.timerWithin(500);
  await world.advance(500);
  await closed;
});

test.deep("hundreds of silent connections do not keep other clients from connecting", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const silent = await Promise.all(Array.from({ length: 300 }, () => openRaw(house.url)));
  await world.advance(3_000);
  const raw = await joined(house);
  raw.send({ type: "req", id: "h", method: "health" });
  expect((await raw.res("h")).ok).toBe(true);
  await world.advance(1);
  // The gateway has closed the oldest connections.
  expect(await silent[0]?.closed()).toMatchObject({ code: expect.any(Number) });
  expect(await silent[150]?.closed()).toMatchObject({ code: expect.any(Number) });
  expect(silent[299]?.socket.readyState).toBe(1);
});

test.deep(
  "500 clients are all served if they open their sockets at once and send `connect` a second later",
  async () => {
    const world = fakeWorld();
    const house = await openHouse({ world });
    const raws = await Promise.all(Array.from({ length: 500 }, () => openRaw(house.url)));
    await world.advance(1_000);
    const answers = await Promise.all(
      raws.map(async (raw) => {
        raw.send({ type: "req", id: "hello", method: "connect", params: connectParams() });
        raw.send({ type: "req", id: "health", method: "health" });
        return [(await raw.res("hello")).ok, (await raw.res("health")).ok];
      }),
    );
    expect(answers).toEqual(raws.map(() => [true, true]));
  },
);

test("if a client describes itself at length, others see a shortened description", async () => {
  const world = fakeWorld();
  const house = await openHouse({ world });
  const raw = await joined(house);
  const client = { id: "x", version: "v".repeat(60_000), platform: "p", mode: "m" };
  await joined(house, { client });
  await world.advance(1_000);
  const told = await raw.next((frame) => frame.event === "presence" && frame.payload.presence.length === 2);
  expect(JSON.stringify(told).length).toBeLessThan(5_000);
});

test("a compressed frame is a protocol error, and ends the connection", async () => {
  const house = await openHouse();
  const socket = await tcp(house);
  socket.write(upgrade("/", `Host: 127.0.0.1:${house.port}`));
  const all = heard(socket);
  await once(socket, "data");
  // A masked text frame with the flag of a compressed one.
  socket.write(Buffer.from([0xc1, 0x80, 0, 0, 0, 0]));
  expect(await all).toMatch(/^HTTP\/1.1 101 /);
});

const HEADS: [string, string][] = [
  ["two hosts", "Host: 127.0.0.1\r\nHost: evil.example"],
  ["two origins", "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nOrigin: https://evil.example"],
  ["a host with a user", "Host: evil@127.0.0.1"],
  ["no host", "X-Nothing: 1"],
];
test.each(HEADS)("a request with %s in its JSON is refused", async (_, head) => {
  const house = await openHouse();
  const socket = await tcp(house);
  socket.write(`GET /readyz HTTP/1.1\r\n${head}\r\nConnection: close\r\n\r\n`);
  const text = await heard(socket);
  expect(text).toMatch(/^HTTP\/1.1 40[03] /);
  expect(text).toMatch(/\r\n\r\n\{"ok":false,"error":\{"code":/);
});

const ASKERS: [string, string, number][] = [
  ["by bare address", "1.1\r\nHost: 10.1.2.3:7275", 200],
  ["by a name that is not configured", "1.1\r\nHost: one.internal", 200],
  ["in HTTP/1.0, which has no host", "1.0", 200],
  ["from a page of another site", "1.1\r\nHost: 10.1.2.3:7275\r\nOrigin: https://evil.example", 403],
  [
    "from a page whose name was pointed here",
    "1.1\r\nHost: evil.example\r\nOrigin: http://evil.example",
    403,
  ],
];
test.each(ASKERS)("H3: a health probe %s is answered", async (_, head, status) => {
  const house = await openHouse();
  for (const path of ["/readyz", "/healthz"]) {
    const socket = await tcp(house);
    socket.write(`GET ${path} HTTP/${head}\r\nConnection: close\r\n\r\n`);
    const text = await heard(socket);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (status === 200) expect(text).toMatch(/\r\n\{"ok":true,"status":"(live|ready)"\}(\r\n|$)/);
  }
  const other = await tcp(house);
  other.write(`GET /metrics HTTP/${head}\r\nConnection: close\r\n\r\n`);
  expect(await heard(other)).toMatch(/^HTTP\/1.1 40[03] /);
});

const SITES: [string, (own: string) => string[]][] = [
  ["of another site", (own) => [`Host: ${own}`, "Origin: https://evil.example"]],
  ["without an origin of its own (sandboxed, a file)", (own) => [`Host: ${own}`, "Origin: null"]],
  ["of another port here", (own) => [`Host: ${own}`, "Origin: http://127.0.0.1:1"]],
  ["whose name was pointed at this machine", () => ["Host: evil.example", "Origin: http://evil.example"]],
  [
    "that says two origins",
    (own) => [`Host: ${own}`, `Origin: http://${own}`, "Origin: https://evil.example"],
  ],
];
test.each(SITES)("a page %s opens no WebSocket, and does not even get the challenge", async (_, headers) => {
  const house = await openHouse();
  for (const path of ["/", "/demo", "/channels/telegram/default"]) {
    const socket = await tcp(house);
    socket.write(upgrade(path, ...headers(`127.0.0.1:${house.port}`)));
    const text = await heard(socket);
    expect(text).toMatch(/^HTTP\/1.1 403 /);
    expect(text).not.toContain("challenge");
  }
});

test("a token in the path, a cookie or the query is not accepted", async () => {
  const house = await openHouse();
  const headers = { "content-type": "application/json", cookie: `token=${TOKEN}`, "x-parley-token": TOKEN };
  const body = JSON.stringify({ tool: "sessions_list", token: TOKEN });
  const answer = await fetch(`${house.http}/tools/invoke?token=${TOKEN}`, { method: "POST", headers, body });
  expect(answer.status).toBe(401);
  const raw = await openRaw(`${house.url}/?token=${TOKEN}`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  raw.send({ type: "req", id: "c", method: "connect", params: connectParams({ auth: undefined }) });
  expect((await raw.res("c")).error?.code).toBe("UNAUTHORIZED");
});

test("the body of a request without a token is not awaited", async () => {
  const house = await openHouse();
  const socket = await tcp(house);
  socket.write(
    "POST /tools/invoke HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n" +
      "Content-Type: application/json\r\n\r\n1\r\n{\r\n",
  );
  const [first] = await once(socket, "data");
  expect(String(first)).toMatch(/^HTTP\/1.1 401 /);
});
