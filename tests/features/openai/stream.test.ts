// The stream of a run: events become frames, as fast as the client reads.

import { expect, test } from "vitest";
import { fail, ok, type Result } from "../../../src/core/shapes/errors.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { createBus, type SharedBus } from "../../../src/engine/bus.ts";
import { type EndedRun, RunFeed, type StreamShape, streamRun } from "../../../src/gateway/http/run-stream.ts";
import { deltas } from "../../kit/live-text.ts";
import { type FakeWorld, fakeWorld } from "../../kit/world.ts";

const SHAPE: StreamShape = {
  begin: () => "<begin>",
  piece: (text) => `<${text}>`,
  end: (_, text) => `<end ${text}>`,
  fail: (failure, hasEnded) => `<${failure.code} ${hasEnded}>`,
};

interface Opened {
  readonly bus: SharedBus;
  readonly world: FakeWorld;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  /** Events that the stream has passed to its reader. */
  readonly happened: string[];
  text(text: string): void;
  end(end: Result<EndedRun>): void;
  next(): Promise<string>;
  /** Returns the whole text of the remaining pieces, and the end frame. */
  rest(): Promise<{ pieces: string; end: string | undefined }>;
  tool(): void;
  /** Stores a message of the assistant, with a call or without. */
  stored(text: string, calls?: boolean): void;
}

const ended = (reply: string): Result<EndedRun> => ok({ run: { reply } as EndedRun["run"], cutShort: false });

function open(): Opened {
  const world = fakeWorld();
  const bus = createBus(world.log);
  const end = Promise.withResolvers<Result<EndedRun>>();
  const happened: string[] = [];
  const stream = streamRun({
    feed: new RunFeed(bus),
    clock: world.clock,
    redactor: world.redactor,
    runId: "run-1",
    shape: SHAPE,
    ended: end.promise,
    onGone: () => happened.push("gone"),
    cut: () => happened.push("cut"),
  });
  const reader = stream.getReader();
  const about = { runId: "run-1", sessionKey: "agent:main:main" };
  const next = deltas();
  return {
    bus,
    world,
    reader,
    happened,
    text: (text) => bus.publish({ kind: "text", ...about, part: "1.0", ...next(text) }),
    tool: () =>
      bus.publish({
        kind: "tool",
        ...about,
        phase: "start",
        callId: "c",
        name: "exec",
        atMs: 1,
      } satisfies LiveEvent),
    stored(text, calls = true) {
      const call = { type: "toolCall" as const, id: "c", name: "exec", arguments: {} };
      const content = [{ type: "text" as const, text }, ...(calls ? [call] : [])];
      const of = { api: "a", provider: "p", model: "m", usage: ZERO_USAGE };
      const stopReason = calls ? "toolUse" : "stop";
      const message = { id: text, role: "assistant" as const, content, timestamp: 1, stopReason, ...of };
      bus.publish({ kind: "message", ...about, sessionId: "s", message });
    },
    end: end.resolve,
    async next() {
      const { value } = await reader.read();
      return value === undefined ? "over" : Buffer.from(value).toString();
    },
    async rest() {
      const frames: string[] = [];
      for (let read = await reader.read(); !read.done; read = await reader.read())
        frames.push(...Buffer.from(read.value).toString().slice(1, -1).split("><"));
      const end = frames.pop();
      return { pieces: frames.join(""), end };
    },
  };
}

test("OS2: text that arrives while nobody reads is returned as one piece by the next read", async () => {
  const stream = open();
  expect(await stream.next()).toBe("<begin>");
  for (let index = 1; index <= 1000; index += 1) stream.text("word ".repeat(index));
  stream.tool();
  stream.text("next message ");
  expect(await stream.next()).toBe(`<${"word ".repeat(1000)}\n\nnext message >`);
  stream.end(ended("next message here"));
  expect(await stream.next()).toBe(`<here><end ${"word ".repeat(1000)}\n\nnext message here>`);
  expect(await stream.next()).toBe("over");
});

test("each text is sent once, whether its message is stored before its call begins or afterwards", async () => {
  for (const isStoredFirst of [false, true]) {
    const stream = open();
    await stream.next();
    stream.text("Let me look.");
    if (isStoredFirst) stream.stored("Let me look.");
    stream.tool();
    if (!isStoredFirst) stream.stored("Let me look.");
    stream.text("Found it.");
    stream.stored("Found it.", false);
    stream.end(ended("Found it."));
    const pieces = "Let me look.\n\nFound it.";
    expect(await stream.rest()).toEqual({ pieces, end: `end ${pieces}` });
  }
});

test("a last message that repeats the text before a call is sent, and a run without one adds nothing", async () => {
  for (const [hasLast, sent] of [
    [true, "Done.\n\nDone."],
    [false, "Done."],
  ] as const) {
    const stream = open();
    await stream.next();
    stream.text("Done.");
    stream.tool();
    stream.stored("Done.");
    if (hasLast) stream.stored("Done.", false);
    stream.end(ended("Done."));
    expect(await stream.rest()).toEqual({ pieces: sent, end: `end ${sent}` });
  }
});

test("OS1: if a stream missed all events, it gets the whole text from the row of the run", async () => {
  const stream = open();
  await stream.next();
  stream.end(ended("Good day"));
  expect(await stream.next()).toBe("<Good day><end Good day>");
});

test("events of other runs are ignored", async () => {
  const stream = open();
  await stream.next();
  stream.bus.publish({
    kind: "text",
    runId: "run-2",
    sessionKey: "agent:main:main",
    part: "1.0",
    offset: 0,
    text: "secret of another ",
  });
  stream.end(ended("mine"));
  expect(await stream.next()).toBe("<mine><end mine>");
});

test("OS3: during silence, comments are sent again and again", async () => {
  const stream = open();
  await stream.next();
  for (let times = 0; times < 3; times += 1) {
    const next = stream.next();
    await stream.world.timerWithin(15_000);
    await stream.world.advance(15_000);
    expect(await next).toBe(": keep-alive\n\n");
  }
});

test("OS2: a client that reads nothing for a minute is disconnected, but a slow reader is not", async () => {
  const stream = open();
  await stream.next();
  await stream.world.advance(59_000);
  expect(stream.happened).toEqual([]);
  stream.text("word ");
  expect(await stream.next()).toBe("<word >");
  await stream.world.advance(59_000);
  expect(stream.happened).toEqual([]);
  await stream.world.advance(1_000);
  expect(stream.happened).toEqual(["cut"]);
});

test("a client that disconnects is reported once, and the stream is released", async () => {
  const stream = open();
  await stream.next();
  const waiting = stream.reader.read();
  await stream.reader.cancel();
  await waiting;
  expect(stream.happened).toEqual(["gone"]);
  stream.text("too late ");
  stream.end(ended("too late"));
  await stream.world.advance(120_000);
  expect(stream.happened).toEqual(["gone"]);
  expect(stream.world.pendingDelays()).toEqual([]);
});

test("a failure of the run and a failure of the stream are reported differently", async () => {
  const failed = open();
  await failed.next();
  failed.text("half a word");
  failed.end(fail("run_failed", "no", { details: { ended: true } }));
  expect(await failed.next()).toBe("<half a word>");
  expect(await failed.next()).toBe("<run_failed true>");
  const stopped = open();
  await stopped.next();
  stopped.end(fail("shutting_down", "no"));
  expect(await stopped.next()).toBe("<shutting_down false>");
});
