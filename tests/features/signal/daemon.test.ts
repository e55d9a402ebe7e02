// Calls to a signal-cli daemon, and its event stream: timeouts, size limits and failures.

import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { expect, test } from "vitest";
import { daemonAt } from "../../../src/features/signal/daemon.ts";
import { eventsOf, type StreamEvent } from "../../../src/features/signal/events.ts";
import { cleanup } from "../../kit/engine/engine.ts";
import { ADA, OWN } from "../../kit/platforms/signal-people.ts";
import { startSignalServer } from "../../kit/platforms/signal-server.ts";
import { fakeWorld } from "../../kit/world.ts";

/** Starts a server that writes `said` to each connection immediately. */
async function listener(said: string, onHeard: () => void = () => undefined): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", onHeard);
    socket.write(said);
    cleanup(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("SD1: if the daemon does not answer, the outcome is unknown; if the daemon is not running, nothing was sent", async () => {
  const world = fakeWorld();
  let heard = 0;
  const url = await listener("", () => {
    heard += 1;
  });
  const call = daemonAt(url, world.clock).call("send", {}, { timeoutMs: 30_000, bytesMax: 100 });
  await world.timerWithin(30_000);
  const signal = new AbortController();
  const second = daemonAt(url, world.clock).call(
    "send",
    {},
    { timeoutMs: 60_000, bytesMax: 1, signal: signal.signal },
  );
  await expect.poll(() => heard).toBe(2);
  await world.advance(30_000);
  expect(await call).toMatchObject({
    kind: "failed",
    reached: true,
    why: expect.stringContaining("within 30 s"),
  });
  signal.abort();
  expect(await second).toMatchObject({ kind: "failed", why: "it was canceled" });
  const nowhere = daemonAt("http://127.0.0.1:1", world.clock);
  const failed = await nowhere.call("send", {}, { timeoutMs: 30_000, bytesMax: 100 });
  expect(failed).toMatchObject({
    kind: "failed",
    reached: false,
    why: expect.stringContaining("ECONNREFUSED"),
  });
});

test("an answer that is too long, incomplete or not JSON is reported, and the outcome is unknown", async () => {
  const { clock } = fakeWorld();
  const call = async (said: string) =>
    daemonAt(await listener(said), clock).call("send", {}, { timeoutMs: 30_000, bytesMax: 1_000 });
  const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
  const long = await call(`${head}content-length: 9000\r\n\r\n${"x".repeat(5_000)}`);
  expect(long).toMatchObject({
    kind: "failed",
    reached: true,
    why: expect.stringContaining("longer than 1000"),
  });
  expect(await call(`${head}content-length: 7\r\n\r\nno json`)).toMatchObject({
    kind: "failed",
    reached: true,
  });
  expect(await call("SSH-2.0-OpenSSH_9.6\r\n")).toMatchObject({ kind: "failed", reached: true });
  expect(await call(`${head}content-length: 20\r\n\r\n{"result":{"a":true}}`.slice(0, -1))).toMatchObject({
    kind: "failed",
  });
});

test("SE3: a stream that receives no data is closed; a stream with heartbeats stays open", async () => {
  const world = fakeWorld();
  const server = await startSignalServer({ accounts: [OWN] });
  const { signal } = new AbortController();
  const path = `/api/v1/events?account=${encodeURIComponent(OWN.number)}`;
  const opened = await daemonAt(server.url, world.clock).open(path, {}, { headMs: 30_000, signal });
  if (opened.kind !== "open") throw new Error(opened.why);
  const events = eventsOf(opened.answer, world.clock, () => undefined);
  const seen: StreamEvent[] = [];
  const over = (async () => {
    for await (const event of events) seen.push(event);
  })();
  await world.timerWithin(60_000);
  await world.advance(59_000);
  server.event(OWN.number, { envelope: { source: ADA.number } });
  await expect.poll(() => seen.length).toBe(1);
  expect(await world.timerWithin(60_000)).toBe(60_000);
  const failed = expect(over).rejects.toThrow("silent for 60 s");
  await world.advance(60_000);
  await failed;
  expect(seen[0]?.id).toMatch(/-1$/);
});

test("SE1: an event id that is not valid in an HTTP header is ignored", async () => {
  const { clock } = fakeWorld();
  const said = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
  const url = await listener(`${said}id: ok-1\ndata: 1\n\nid: a\u0001b é\ndata: 2\n\nid:\ndata: 3\n\n`);
  const { signal } = new AbortController();
  const opened = await daemonAt(url, clock).open("/", {}, { headMs: 30_000, signal });
  if (opened.kind !== "open") throw new Error(opened.why);
  const events = eventsOf(opened.answer, clock, () => undefined);
  const ids = [await events.next(), await events.next(), await events.next()].map(({ value }) => value?.id);
  expect(ids).toEqual(["ok-1", "ok-1", "ok-1"]);
  opened.close();
});
