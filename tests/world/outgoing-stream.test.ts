// A POST request whose answer is read piece by piece, over real HTTP.

import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { AddressRefused, isConnectTimeout } from "../../src/world/outgoing.ts";
import { outgoingPost, type Post } from "../../src/world/outgoing-stream.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { deafServer, listenHere, serveHttp } from "../kit/loopback.ts";
import { fakeWorld } from "../kit/world.ts";

const NEVER = new AbortController().signal;

async function serve(answer: (response: ServerResponse, path: string) => void): Promise<Post> {
  const { origin, close } = await serveHttp((request, response) => {
    request.resume().on("end", () => answer(response, request.url ?? ""));
  });
  cleanup(close);
  return {
    ...{ purpose: "model", url: `${origin}/v1?a=b`, configured: origin, headers: { "x-own": "1" } },
    ...{ body: "{}", limits: { connectTimeoutSeconds: 10 } },
  };
}

test("the answer has its status, all of its headers and its bytes", async () => {
  const post = await serve((response, path) => {
    response.writeHead(404, { "x-two": ["a", "b"] }).end(path);
  });
  const answer = await outgoingPost(post, NEVER, fakeWorld().clock);
  expect(answer.status).toBe(404);
  expect(answer.headers.get("x-two")).toBe("a, b");
  expect(String(await answer.read())).toBe("/v1?a=b");
  expect(await answer.read()).toBeUndefined();
  expect(await answer.read()).toBeUndefined();
});

test("two requests, one after the other, share a connection", async () => {
  const ports = new Set<unknown>();
  const post = await serve((response) => {
    ports.add(response.socket?.remotePort);
    response.end("ok");
  });
  for (let round = 0; round < 2; round += 1) {
    const answer = await outgoingPost(post, NEVER, fakeWorld().clock);
    expect(String(await answer.read())).toBe("ok");
    expect(await answer.read()).toBeUndefined();
    await arrival();
  }
  expect(ports.size).toBe(1);
});

test("another host than the configured one is refused", async () => {
  const post = await serve((response) => response.end("ok"));
  const elsewhere = { ...post, configured: "http://127.0.0.2:1" };
  await expect(outgoingPost(elsewhere, NEVER, fakeWorld().clock)).rejects.toThrow(AddressRefused);
});

test("a connection that is not established in time is given up, but a slow answer is not", async () => {
  const deaf = await deafServer();
  cleanup(() => deaf.close());
  const limits = { connectTimeoutSeconds: 1 };
  const slow = await serve((response) => {
    // Longer than the limit, which is over with the connection.
    setTimeout(() => response.end("late"), 1_200);
  });
  const silent = { ...slow, limits, url: `${deaf.url}/v1`, configured: deaf.url };
  const failed = await outgoingPost(silent, NEVER, fakeWorld().clock).catch((error: unknown) => error);
  expect(isConnectTimeout(failed)).toBe(true);
  const answer = await outgoingPost({ ...slow, limits }, NEVER, fakeWorld().clock);
  expect(String(await answer.read())).toBe("late");
});

test("an abort before the answer closes the connection, and rejects with its reason", async () => {
  const [arrived, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const post = await serve((response) => {
    response.on("close", () => gone.resolve());
    arrived.resolve();
  });
  const abort = new AbortController();
  const waiting = outgoingPost(post, abort.signal, fakeWorld().clock);
  void arrived.promise.then(() => abort.abort(new Error("enough")));
  await expect(waiting).rejects.toThrow("enough");
  await gone.promise;
  await expect(outgoingPost(post, abort.signal, fakeWorld().clock)).rejects.toThrow("enough");
});

test("a connection that breaks in the middle rejects the next read, after the bytes before it", async () => {
  const { answer, response } = await begun();
  response.write("more");
  await arrival();
  response.destroy();
  expect(String(await answer.read())).toBe("more");
  await expect(answer.read()).rejects.toThrow("socket hang up");
});

// With some of these sizes, a pause of the reader leaves a part in Node's stream, and the connection closes.
test.each([300, 330, 352, 380, 420])(
  "an answer of %i KiB is read to its end, although the server has closed the connection",
  async (kib) => {
    const gone = Promise.withResolvers<void>();
    const post = await serve((response) => {
      response.writeHead(200, { connection: "close" }).end("x".repeat(kib * 1024));
      response.socket?.on("close", () => gone.resolve());
    });
    const answer = await outgoingPost(post, NEVER, fakeWorld().clock);
    await gone.promise;
    await arrival();
    let read = 0;
    for (let piece = await answer.read(); piece !== undefined; piece = await answer.read())
      read += piece.byteLength;
    expect(read).toBe(kib * 1024);
  },
);

test("an answer that switches the protocol is an error, and does not wait for the idle limit", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n");
    });
  });
  const origin = `http://127.0.0.1:${await listenHere(server)}`;
  cleanup(async () => void server.close());
  const limits = { connectTimeoutSeconds: 10 };
  const post = {
    purpose: "model",
    url: origin,
    configured: origin,
    headers: {},
    body: "{}",
    limits,
  } as const;
  await expect(outgoingPost(post, NEVER, fakeWorld().clock)).rejects.toThrow("socket hang up");
});

test("a redirect is not followed", async () => {
  const paths: string[] = [];
  const post = await serve((response, path) => {
    paths.push(path);
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  expect((await outgoingPost(post, NEVER, fakeWorld().clock)).status).toBe(307);
  expect(paths).toEqual(["/v1?a=b"]);
});

test("if a server sends faster than the answer is read, it is slowed down", async () => {
  let written = 0;
  const stalled = Promise.withResolvers<void>();
  const total = 64 * 1024 * 1024;
  const block = Buffer.alloc(64 * 1024);
  const post = await serve((response) => {
    const more = (): void => {
      while (written < total) {
        written += block.length;
        if (response.write(block)) continue;
        response.once("drain", more);
        // Without flow control, the gateway would read all of this immediately.
        if (written > 1024 * 1024) stalled.resolve();
        return;
      }
      response.end();
    };
    more();
  });
  const answer = await outgoingPost(post, NEVER, fakeWorld().clock);
  await stalled.promise;
  // Enough rounds to fill the system's buffers.
  for (let round = 0, before = -1; round < 200 || before !== written; round += 1) {
    before = written;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(written).toBeLessThan(total);
  let read = 0;
  for (let piece = await answer.read(); piece !== undefined; piece = await answer.read())
    read += piece.byteLength;
  expect(read).toBe(total);
});

test("an abort ends a pending read and closes the connection", async () => {
  const gone = Promise.withResolvers<void>();
  const post = await serve((response) => {
    response.on("close", () => gone.resolve());
    response.write("begun");
  });
  const abort = new AbortController();
  const answer = await outgoingPost(post, abort.signal, fakeWorld().clock);
  expect(String(await answer.read())).toBe("begun");
  const waiting = answer.read();
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await gone.promise;
});

/** Waits until bytes that were written have arrived. */
async function arrival(): Promise<void> {
  for (let round = 0; round < 200; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns an answer that was read up to `begun`, and the server's side of it. */
async function begun(world = fakeWorld()) {
  const responding = Promise.withResolvers<ServerResponse>();
  const post = await serve((response) => {
    response.write("begun");
    responding.resolve(response);
  });
  const answer = await outgoingPost(post, NEVER, world.clock);
  expect(String(await answer.read())).toBe("begun");
  return { answer, world, response: await responding.promise };
}

test("a read with a time limit collects small pieces until the limit", async () => {
  const { answer, world, response } = await begun();
  const reading = answer.read(50);
  for (const piece of ["one ", "two"]) {
    response.write(piece);
    await arrival();
  }
  await world.advance(50);
  expect(String(await reading)).toBe("one two");
  response.end();
  expect(await answer.read(50)).toBeUndefined();
  expect(world.pendingDelays()).toEqual([]);
});

test("at the end of an answer, its last pieces are returned at once", async () => {
  const { answer, world, response } = await begun();
  const reading = answer.read(50);
  response.write("one ");
  await arrival();
  response.end("two");
  expect(String(await reading)).toBe("one two");
  expect(world.pendingDelays()).toEqual([]);
});

test("a read with a time limit returns early if 16 KiB have arrived", async () => {
  const { answer, response } = await begun();
  const reading = answer.read(50);
  response.write("x".repeat(32 * 1024));
  expect((await reading)?.byteLength).toBeGreaterThanOrEqual(16 * 1024);
  response.end();
});

test("an answer that does not end is closed a second after its reader has stopped", async () => {
  const gone = Promise.withResolvers<void>();
  const post = await serve((response) => {
    response.on("close", () => gone.resolve());
    response.write("begun");
  });
  const world = fakeWorld();
  const answer = await outgoingPost(post, NEVER, world.clock);
  await answer.read();
  answer.leave();
  await world.advance(1_000);
  await gone.promise;
  expect(world.pendingDelays()).toEqual([]);
});

test("an endless answer is closed after its reader has stopped", async () => {
  const gone = Promise.withResolvers<void>();
  const post = await serve((response) => {
    const more = (): void => {
      while (!response.destroyed && response.write("x".repeat(8_000)));
      response.once("drain", more);
    };
    response.on("close", () => gone.resolve());
    more();
  });
  const world = fakeWorld();
  const answer = await outgoingPost(post, NEVER, world.clock);
  await answer.read();
  answer.leave();
  await gone.promise;
  expect(world.pendingDelays()).toEqual([]);
});
