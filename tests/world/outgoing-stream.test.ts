// A POST request whose answer is read piece by piece, over real HTTP.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { outgoingPost, type Post } from "../../src/world/outgoing-stream.ts";
import { cleanup } from "../kit/engine/engine.ts";
import { serveHttp } from "../kit/loopback.ts";
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
