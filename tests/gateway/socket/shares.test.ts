// Limits per token and per address: other callers are still served, and what was counted is released again.

import { request as httpRequest } from "node:http";
import { expect } from "vitest";
import type { TokenSettings } from "../../../src/core/shapes/settings/settings.ts";
import { Shares } from "../../../src/gateway/shares.ts";
import { test } from "../../kit/deep.ts";
import { type House, joined, openHouse, type Raw } from "../kit.ts";

const MIB = 1024 * 1024;
const FLOODER = "a-token-of-somebody-who-floods";
const OTHER = "a-token-of-somebody-who-does-not";
const TOKENS: TokenSettings[] = [FLOODER, OTHER].map((token) => ({
  token,
  role: "operator",
  scopes: ["operator.admin"],
}));

const openBoth = (): Promise<House> => openHouse({ gateway: { tokens: TOKENS } });
const flooding = (house: House): Promise<Raw> => joined(house, { auth: { token: FLOODER } });

async function isServed(house: House, token: string): Promise<boolean> {
  const client = await house.client({ token });
  const { ok } = await client.request("health");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ tool: "agents_list", args: {} });
  const answer = await fetch(`${house.http}/tools/invoke`, { method: "POST", headers, body });
  client.close();
  return ok && answer.status === 200;
}

test("one user gets at most one share, which is smaller than the total; returned shares can be used again", () => {
  const shares = new Shares({ ofOne: 3, all: 5 });
  expect([shares.take("a", 2), shares.take("a", 2), shares.take("a"), shares.take("a")]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect([shares.take("b", 3), shares.take("b", 2), shares.take("c")]).toEqual([false, true, false]);
  expect([shares.usedBy("a"), shares.usedBy("b"), shares.inUse()]).toEqual([3, 2, 5]);
  shares.give("a", 3);
  expect([shares.take("c", 3), shares.inUse()]).toEqual([true, 5]);
  for (const [who, amount] of [
    ["b", 2],
    ["c", 3],
  ] as const)
    shares.give(who, amount);
  expect([shares.inUse(), shares.usedBy("c"), shares.hasRoom("d", 4)]).toEqual([0, 0, false]);
});

test.deep(
  "pending calls are limited per token, over all its connections; other tokens are served",
  async () => {
    const house = await openHouse({ gateway: { tokens: TOKENS }, play: () => new Promise(() => {}) });
    const links = await Promise.all(Array.from({ length: 5 }, () => flooding(house)));
    const begin = links[0] as Raw;
    begin.send({
      ...{ type: "req", id: "run", method: "chat.send" },
      params: { sessionKey: "main", message: "hold on", idempotencyKey: "held" },
    });
    await begin.res("run");
    // The share of the token is 4 × 512 waits. Each connection's waits are read before the next
    // connection sends: the gateway may otherwise refuse those of any connection.
    for (const link of links) {
      for (let at = 0; at < 512; at += 1) {
        const params = { runId: "held", timeoutMs: 60_000 };
        link.send({ type: "req", id: `wait-${at}`, method: "agent.wait", params });
      }
      link.send({ type: "req", id: "read", method: "health" });
      await link.res("read");
    }
    const refused = await (links[4] as Raw).res("wait-511");
    expect(refused).toMatchObject({ ok: false, error: { code: "RATE_LIMITED", retryable: true } });
    expect(refused.error?.message).toContain("this token has too many unanswered requests");
    expect(await isServed(house, OTHER)).toBe(true);
    const overHttp = await fetch(`${house.http}/tools/invoke`, {
      method: "POST",
      headers: { authorization: `Bearer ${FLOODER}` },
    });
    expect([overHttp.status, overHttp.headers.get("retry-after")]).toEqual([429, "1"]);
    for (const link of links) link.socket.terminate();
    await expect.poll(() => isServed(house, FLOODER).catch(() => false)).toBe(true);
  },
);

test.deep(
  "unfinished frames are limited per token; other tokens are served, and bytes are returned",
  async () => {
    const house = await openBoth();
    const half = Buffer.alloc(20 * MIB, "x");
    for (let round = 0; round < 3; round += 1) {
      const links = await Promise.all(Array.from({ length: 3 }, () => flooding(house)));
      for (const link of links) await new Promise((sent) => link.socket.send(half, { fin: false }, sent));
      const over = await flooding(house);
      over.socket.send(half, { fin: false });
      expect(await over.closed(), `round ${round}`).toEqual({
        code: 1013,
        reason: "this token has too many bytes of unanswered requests",
      });
      expect(await isServed(house, OTHER)).toBe(true);
      for (const link of links) link.socket.terminate();
      await Promise.all(links.map((link) => link.closed()));
    }
  },
);

test.deep(
  "the bytes of a large frame count only until its answer, so a token can send any number of frames one by one",
  async () => {
    const house = await openBoth();
    const link = await flooding(house);
    const padding = "x".repeat(10 * MIB);
    for (let at = 0; at < 12; at += 1) {
      link.send({ type: "req", id: `large-${at}`, method: "health", params: { padding } });
      expect((await link.res(`large-${at}`)).error?.code).toBe("INVALID_REQUEST");
    }
  },
);

/**
 * Sends a request with an endless body. Resolves when the gateway has read this many bytes, or has
 * answered.
 */
async function unfinished(house: House, path: string, bytes: number) {
  const request = httpRequest(`${house.http}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${FLOODER}`, "content-type": "application/json" },
  });
  request.on("error", () => {});
  const answered = Promise.withResolvers<number | undefined>();
  request.on("response", (response) => {
    response.resume();
    answered.resolve(response.statusCode);
  });
  const piece = Buffer.alloc(bytes, " ");
  await new Promise((resolve) => request.write(piece, resolve));
  return { request, answered: answered.promise };
}

test.deep(
  "unfinished bodies are limited per token; other tokens are served, and closed requests free their bytes",
  async () => {
    const house = await openBoth();
    for (const path of ["/mcp", "/v1/chat/completions"]) {
      for (let round = 0; round < 2; round += 1) {
        const bodies = await Promise.all(
          Array.from({ length: 8 }, () => unfinished(house, path, 8 * MIB - 1024)),
        );
        const over = await unfinished(house, path, 4 * MIB);
        expect(await Promise.race([over.answered, ...bodies.map((one) => one.answered)]), path).toBe(429);
        expect(await isServed(house, OTHER)).toBe(true);
        for (const { request } of [...bodies, over]) {
          request.destroy();
        }
        await expect.poll(() => isServed(house, FLOODER)).toBe(true);
      }
    }
  },
);

test.deep(
  "connections are limited per token; other tokens still connect, and closed connections make room for others",
  async () => {
    const house = await openBoth();
    const links: Raw[] = [];
    // Connects in rounds, because only a few connections may be in their handshake.
    while (links.length < 1_500) {
      links.push(...(await Promise.all(Array.from({ length: 100 }, () => flooding(house)))));
    }
    await expect(flooding(house)).rejects.toThrow(/this token has too many connections/);
    expect(await isServed(house, OTHER)).toBe(true);
    const [first] = links;
    first?.socket.close();
    await first?.closed();
    await expect
      .poll(() =>
        flooding(house).then(
          () => "in",
          () => "out",
        ),
      )
      .toBe("in");
  },
  120_000,
);
