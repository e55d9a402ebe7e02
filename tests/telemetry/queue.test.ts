// The queue of spans is limited, exports one batch at a time, reports losses once a minute, and does not
// block a stop.

import { expect, test } from "vitest";
import { type Exporter, SpanQueue } from "../../src/telemetry/queue.ts";
import type { Span } from "../../src/telemetry/span.ts";
import { fakeWorld } from "../kit/world.ts";

function span(at: number, text = ""): Span {
  const spanId = at.toString(16).padStart(16, "0");
  return {
    ...{ traceId: "a".repeat(32), spanId, name: `span ${at}`, kind: "internal", startMs: at, endMs: at },
    attributes: { text },
  };
}

/** Returns an exporter whose answers the test controls. */
function held() {
  const batches: (readonly Span[])[] = [];
  const answers: ((problem?: string) => void)[] = [];
  let closed = 0;
  const exporter: Exporter = {
    export: (batch) => {
      batches.push(batch);
      return new Promise((resolve) => answers.push(resolve));
    },
    close: () => {
      closed += 1;
    },
  };
  return { batches, answers, exporter, closed: () => closed };
}

function open() {
  const world = fakeWorld();
  const out = held();
  const queue = new SpanQueue({ clock: world.clock, log: world.log, exporter: out.exporter });
  const dropped = (): number => world.logged.reduce((sum, { fields }) => sum + Number(fields.count ?? 0), 0);
  return { world, queue, dropped, ...out };
}

test("SQ1: the first span waits a second for other spans, and a full batch is sent at once", async () => {
  const { world, queue, batches } = open();
  queue.add(span(1));
  queue.add(span(2));
  await world.advance(999);
  expect(batches).toHaveLength(0);
  await world.advance(1);
  expect(batches.map(({ length }) => length)).toEqual([2]);
  const full = open();
  for (let at = 0; at < 256; at += 1) full.queue.add(span(at));
  expect(full.batches.map(({ length }) => length)).toEqual([256]);
});

test("SQ1: if the queue is full, by number or by length, the newest span is dropped", async () => {
  const { queue, batches, dropped } = open();
  for (let at = 0; at < 256 + 4_096; at += 1) queue.add(span(at));
  expect(dropped()).toBe(0);
  queue.add(span(9_999));
  expect(dropped()).toBe(1);
  expect(batches).toHaveLength(1);
  const long = open();
  for (let at = 0; at < 17; at += 1) long.queue.add(span(at, "x".repeat(1_000_000)));
  expect(long.dropped()).toBe(1);
});

test("SQ2: one export runs at a time, in order; if it fails, it is not retried", async () => {
  const { world, queue, batches, answers } = open();
  for (let at = 0; at < 600; at += 1) queue.add(span(at));
  expect(batches).toHaveLength(1);
  answers[0]?.("no");
  await world.advance(0);
  expect(batches).toHaveLength(2);
  answers[1]?.();
  await world.advance(0);
  expect(batches.flat().map(({ startMs }) => startMs)).toEqual(Array.from({ length: 600 }, (_, at) => at));
});

test("SQ3: the first loss gives a log line, later losses one line a minute; without losses there is none", async () => {
  const { world, queue, dropped } = open();
  const lines = () => world.logged.length;
  queue.drop(2, "a");
  expect([lines(), dropped()]).toEqual([1, 2]);
  for (let at = 0; at < 50; at += 1) queue.drop(1, "b");
  expect(lines()).toBe(1);
  await world.advance(60_000);
  expect([lines(), dropped()]).toEqual([2, 52]);
  expect(world.logged[1]).toMatchObject({ level: "warn", fields: { count: 50, why: "b" } });
  await world.advance(600_000);
  expect([lines(), world.pendingDelays().length]).toEqual([2, 0]);
  queue.drop(1, "c");
  expect(lines()).toBe(3);
});

test("SQ4: a stop exports all waiting spans", async () => {
  const { world, queue, batches, answers, dropped, closed } = open();
  for (let at = 0; at < 300; at += 1) queue.add(span(at));
  const stopped = queue.close();
  answers[0]?.();
  await world.advance(0);
  expect(batches.map(({ length }) => length)).toEqual([256, 44]);
  answers[1]?.();
  await stopped;
  expect([dropped(), closed()]).toEqual([0, 1]);
  expect(world.pendingDelays()).toEqual([]);
});

test("SQ4: if a collector never answers, a stop takes two seconds longer, and all spans count as dropped", async () => {
  const { world, queue, answers, dropped, closed } = open();
  for (let at = 0; at < 300; at += 1) queue.add(span(at));
  let over = false;
  const stopped = queue.close().then(() => {
    over = true;
  });
  await world.advance(1_999);
  expect(over).toBe(false);
  await world.advance(1);
  await stopped;
  expect([dropped(), closed()]).toEqual([300, 1]);
  answers[0]?.("too late");
  queue.add(span(1));
  await world.advance(120_000);
  expect(world.logged).toHaveLength(1);
});
