// The bridge process of `parley mcp`, with streams and a gateway that the test controls.

import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { fail } from "../../../../src/core/shapes/errors.ts";
import { Bridge } from "../../../../src/features/join/mcp/bridge.ts";
import { cleanup } from "../../../kit/engine/engine.ts";
import { fakeWorld } from "../../../kit/world.ts";

test("the bridge retries an unreachable gateway many times without using more memory", async () => {
  const world = fakeWorld();
  const server = createServer((request, response) => {
    response.writeHead(request.method === "POST" ? 202 : 503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const listening: (AbortSignal | null | undefined)[] = [];
  const { fetch } = globalThis;
  cleanup(() => {
    globalThis.fetch = fetch;
  });
  // Records calls of fetch and passes them on.
  globalThis.fetch = async (address, init) => {
    if (init?.method === undefined) listening.push(init?.signal);
    return fetch(address, init);
  };
  const input = new PassThrough();
  const bridge = new Bridge({
    ...{ world, input, output: new PassThrough(), query: "", note: () => undefined },
    upstream: { url, token: "" },
    again: async () => fail("store_unavailable", "never asked"),
  });
  const stop = new AbortController();
  const running = bridge.run(stop.signal);
  input.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  for (let times = 1; times <= 12; times += 1) {
    await expect.poll(() => listening.length).toBe(times);
    await world.timerWithin(30_000);
    await world.advance(30_000);
  }
  const [signal] = listening;
  // Node keeps one listener for each request until garbage collection.
  expect(getEventListeners(signal as AbortSignal, "abort").length).toBeLessThanOrEqual(listening.length + 1);
  stop.abort();
  await running;
});
