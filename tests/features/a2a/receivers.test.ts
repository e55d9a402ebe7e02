// Hostile receivers of the notifications of A2A clients, over real HTTP.
// Hard cases: a redirect into this network, a receiver that never answers, an endless answer, and a host that the
// settings no longer name.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createChannel, putPushConfig } from "../../../src/features/a2a/door/notify.ts";
import { cleanup, openStore, temporaryFolder } from "../../kit/engine/engine.ts";
import { fakeWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";

/** Starts a receiver. `host`: as the settings name it. */
async function receiver(answer: (response: ServerResponse) => void) {
  let requests = 0;
  const asked = Promise.withResolvers<void>();
  const server = createServer((request: IncomingMessage, response) => {
    requests += 1;
    request.resume().on("end", () => {
      asked.resolve();
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, asked: asked.promise, requests: () => requests };
}

/** Opens the channel, with the address of one task at `host`. */
async function open(host: string, notifyHosts: readonly string[] = [host]) {
  const world = fakeWorld();
  const store = await openStore(temporaryFolder(), world);
  const config = { token: "", scheme: "", credentials: "", createdAt: 1 };
  const place = { runId: "run-1", id: "one", url: `http://${host}/told` };
  await store.transaction((tx) => putPushConfig(tx, { ...config, ...place }));
  const settings = settingsWith({ features: { a2a: { expose: [], descriptions: {}, notifyHosts } } });
  const { deliver } = createChannel({ settings, db: store.db, world, tokens: [] }, async () => true);
  const text = JSON.stringify({ runId: "run-1", configId: "one", body: { statusUpdate: {} } });
  const route = { channel: "a2a", to: host };
  const message = { deliveryId: "d", sessionKey: "agent:main:a2a:x", route, text, part: 1, parts: 1 };
  return { world, deliver: () => deliver(message) };
}

test("a redirect of a receiver is refused, and not followed", async () => {
  const inside = await receiver((response) => void response.end());
  const redirecting = await receiver(
    (response) => void response.writeHead(307, { location: `http://${inside.host}/admin` }).end(),
  );
  const { deliver } = await open(redirecting.host);
  expect(await deliver()).toEqual({
    kind: "refused",
    error: "the receiver answered 307; redirects are not followed",
  });
  expect([redirecting.requests(), inside.requests()]).toEqual([1, 0]);
});

test("a receiver that never answers is left after ten seconds", async () => {
  const silent = await receiver(() => {});
  const { world, deliver } = await open(silent.host);
  const sent = deliver();
  await silent.asked;
  await world.advance(10_000);
  expect(await sent).toEqual({ kind: "retry", error: "the receiver gave no answer within 10 s" });
});

test("only the start of a receiver's endless answer is read", async () => {
  let bytes = 0;
  const endless = await receiver((response) => {
    const piece = Buffer.alloc(64 * 1024);
    const more = (): void => {
      while (response.writable && bytes < 500_000_000) {
        bytes += piece.length;
        if (!response.write(piece)) return;
      }
    };
    response.writeHead(200).on("drain", more);
    more();
  });
  const { deliver } = await open(endless.host);
  expect(await deliver()).toEqual({ kind: "sent" });
  expect(bytes).toBeLessThan(50_000_000);
});

test("PU1: an address of an earlier time whose host is no longer in a2a.notifyHosts gets nothing", async () => {
  const { host, requests } = await receiver((response) => void response.end());
  const { deliver } = await open(host, ["agents.example"]);
  expect(await deliver()).toEqual({ kind: "refused", error: "a2a.notifyHosts no longer has the host" });
  expect(requests()).toBe(0);
});
