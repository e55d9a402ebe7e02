// The rules PU1 to PU4 of the pump, which all platforms share. Each platform's own file tests that its frames
// reach the pump.

import { expect, test } from "vitest";
import type { InboundMessage } from "../../src/channels/channel.ts";
import { Pump } from "../../src/channels/pump.ts";
import { recordingHost } from "../contract/channel.ts";
import { fakeWorld } from "../kit/world.ts";

/**
 * Opens a pump with a host that stores the text of each frame. Frames with a text in `held` wait for
 * `release`.
 */
function opened(held: readonly string[] = []) {
  const world = fakeWorld();
  const host = Object.assign(recordingHost(), { world });
  const stop = new AbortController();
  const pump = new Pump(host, "telegram default", stop.signal);
  const acknowledged: string[] = [];
  const holding = Promise.withResolvers<void>();
  const bring = (text: string, more: { lane?: string; bytes?: number } = {}): void =>
    pump.push({
      take: async () => {
        if (held.includes(text)) await holding.promise;
        await pump.store({ text } as InboundMessage);
      },
      acknowledge: () => void acknowledged.push(text),
      ...more,
    });
  const stored = () => host.received.map(({ text }) => text);
  return { host, pump, stop, world, bring, stored, acknowledged, release: holding.resolve };
}

test("PU1, PU2: a slow frame delays only its lane, and nothing behind it is acknowledged", async () => {
  const { pump, bring, stored, acknowledged, release } = opened(["slow"]);
  bring("first");
  bring("slow", { lane: "ada" });
  bring("behind", { lane: "ada" });
  bring("other", { lane: "bob" });
  await expect.poll(stored).toEqual(["first", "other"]);
  expect(acknowledged).toEqual(["first"]);
  release();
  await pump.drain();
  expect(stored()).toEqual(["first", "other", "slow", "behind"]);
  expect(acknowledged).toEqual(["first", "slow", "behind", "other"]);
});

test("PU2: a frame without a lane waits for all earlier frames, and all later ones wait for it", async () => {
  const { pump, bring, stored, release } = opened(["slow"]);
  bring("slow", { lane: "ada" });
  bring("barrier");
  bring("later", { lane: "bob" });
  release();
  await pump.drain();
  expect(stored()).toEqual(["slow", "barrier", "later"]);
});

test("PU1, PU4: a failing store is tried again after growing pauses, and no frame is skipped", async () => {
  const { host, pump, bring, stored, acknowledged, world } = opened();
  host.failing = 3;
  bring("one", { lane: "ada" });
  bring("two", { lane: "ada" });
  const pauses: number[] = [];
  for (let retries = 0; retries < 3; retries += 1) {
    const delay = await world.timerWithin(10_000);
    pauses.push(delay);
    expect(acknowledged).toEqual([]);
    await world.advance(delay);
  }
  await pump.drain();
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(new Set(pauses).size).toBe(3);
  expect([stored(), acknowledged]).toEqual([
    ["one", "two"],
    ["one", "two"],
  ]);
});

test("PU4, PU1: after the last attempt the listening fails with the reason, and nothing is acknowledged", async () => {
  const { host, pump, bring, acknowledged, stored, world } = opened();
  const receive = host.receive;
  host.receive = async (message) => {
    if (message.text === "lost for now") throw new Error("the disk is full");
    await receive(message);
  };
  bring("lost for now", { lane: "ada" });
  bring("behind", { lane: "ada" });
  bring("other", { lane: "bob" });
  const end = expect(pump.end()).rejects.toThrow("incoming messages can't be stored");
  for (let retries = 0; retries < 5; retries += 1) await world.advance(await world.timerWithin(10_000));
  await end;
  bring("after the failure");
  await pump.idle();
  expect([stored(), acknowledged]).toEqual([["other"], []]);
});

test("PU3: at the limit of waiting bytes no more frames are accepted, and the waiting ones are stored", async () => {
  const { pump, bring, stored, acknowledged, release } = opened(["slow"]);
  const bytes = 3 * 1024 * 1024;
  for (const text of ["slow", "second", "third", "fourth"]) bring(text, { lane: "ada", bytes });
  expect(pump.signal.aborted).toBe(true);
  release();
  await expect(pump.drain()).rejects.toThrow("faster than they are stored");
  expect([stored(), acknowledged]).toEqual([
    ["slow", "second"],
    ["slow", "second"],
  ]);
});

test("PU1: after a stop the frame under way is stored and acknowledged, and no other one", async () => {
  const { pump, bring, stop, stored, acknowledged, release } = opened(["slow"]);
  bring("slow", { lane: "ada" });
  bring("behind", { lane: "ada" });
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  release();
  await pump.drain();
  expect([stored(), acknowledged]).toEqual([["slow"], ["slow"]]);
});

test("of several frames in a row with nothing to do only the last one is acknowledged", async () => {
  const { pump, bring, acknowledged, release } = opened(["slow"]);
  bring("slow");
  for (const text of ["a", "b", "c"]) pump.push({ acknowledge: () => void acknowledged.push(text) });
  release();
  await pump.drain();
  expect(acknowledged).toEqual(["slow", "c"]);
});
