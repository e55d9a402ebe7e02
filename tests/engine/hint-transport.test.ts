// Hints between processes that are sent together share one notification.

import { expect, test } from "vitest";
import { type Hint, HintTransport } from "../../src/engine/cluster/hint-transport.ts";
import type { SharedStore } from "../../src/store/sql.ts";
import { openStore, temporaryFolder } from "../kit/engine/engine.ts";
import { fakeWorld } from "../kit/world.ts";

async function openTransport() {
  const world = fakeWorld();
  const store = await openStore(temporaryFolder(), world);
  const notified: (readonly string[])[] = [];
  const heard: Hint[] = [];
  let gaps = 0;
  let told: (text: string) => void = () => {};
  const shared: SharedStore = {
    now: () => world.clock.now(),
    urgently: store.transaction,
    syncClock: async () => {},
    isDeaf: () => false,
    address: "self",
    notify: async (texts) => void notified.push(texts),
    listen: async (hear) => {
      told = hear;
      return async () => {};
    },
  };
  const wire = new HintTransport({ store, shared, world });
  await wire.start(
    (hint) => heard.push(hint),
    () => {
      gaps += 1;
    },
  );
  await world.advance(1_000);
  return {
    world,
    wire,
    notified,
    heard,
    gaps: () => gaps,
    tell: (items: object[]) => told(JSON.stringify(items)),
  };
}

test("pieces of one text are sent as one hint, and so are pieces of one thought", async () => {
  const { world, wire, notified } = await openTransport();
  const about = { runId: "r", sessionKey: "s", part: "1.0" };
  wire.addFollower("other");
  for (const [at, text] of ["one ", "two "].entries())
    for (const kind of ["thinking", "text"] as const)
      wire.send({ kind: "event", event: { kind, ...about, offset: at * 4, text } });
  await world.advance(1);
  const hints = notified.flat().flatMap((text) => JSON.parse(text) as unknown[]);
  expect(hints).toMatchObject([
    { event: { kind: "thinking", offset: 0, text: "one two " } },
    { event: { kind: "text", offset: 0, text: "one two " } },
  ]);
  await wire.stop();
});

test("hints from one turn of the event loop are sent together in order; later hints are sent separately", async () => {
  const { world, wire, notified } = await openTransport();
  const send = (from: number): void => {
    for (let at = from; at < from + 50; at += 1) {
      const sessionKey = `agent:main:chat:${at}`;
      wire.send({ kind: "event", event: { kind: "session", sessionKey, change: "state" } });
    }
  };
  send(0);
  await world.advance(1);
  send(100);
  send(100);
  await world.advance(100);
  const keysOf = (texts: readonly string[]): string[] =>
    texts.flatMap((text) =>
      (JSON.parse(text) as Hint[]).map((hint) => ("event" in hint ? (hint.event.sessionKey ?? "") : "")),
    );
  const keys = (from: number): string[] =>
    Array.from({ length: 50 }, (_, at) => `agent:main:chat:${from + at}`);
  expect(notified.map(keysOf)).toEqual([keys(0), keys(100)]);
  await wire.stop();
});

test("a large hint whose row cannot be read counts as a gap, and the hints after it are heard", async () => {
  const { wire, heard, gaps, tell } = await openTransport();
  tell([
    { kind: "kept", id: 4711 },
    { kind: "wake", sessionKey: "agent:main:main" },
  ]);
  await wire.stop();
  expect(heard).toEqual([{ kind: "wake", sessionKey: "agent:main:main" }]);
  expect(gaps()).toBe(1);
});

test("news for all is sent, also if the only reader of a text behind it has left meanwhile", async () => {
  const { world, wire, notified } = await openTransport();
  const event = { kind: "text", runId: "r", sessionKey: "s", part: "1.0", offset: 0, text: "x" } as const;
  wire.send({ kind: "ready" });
  await world.advance(1);
  wire.addFollower("other");
  await world.advance(2_999);
  wire.send({ kind: "ready" });
  wire.send({ kind: "event", event });
  await world.advance(100);
  expect(notified.flat()).toEqual(['[{"kind":"ready"}]', '[{"kind":"ready"}]']);
  await wire.stop();
});
