// Live text over the network: deltas for clients that ask for them, otherwise the whole text at longer
// intervals.

import { expect, test } from "vitest";
import type { AgentEvent, ChatEvent } from "../../../src/contract/events.ts";
import type { LiveEvent } from "../../../src/core/shapes/event.ts";
import { LONG_CHARS, type MaskStream, Redactor } from "../../../src/core/text/redact/redact.ts";
import { LongText } from "../../../src/core/text/text-delta.ts";
import { createBus } from "../../../src/engine/bus.ts";
import type { Caller } from "../../../src/gateway/auth.ts";
import { createFanout } from "../../../src/gateway/socket/fanout.ts";
import type { EncodedEvent } from "../../../src/gateway/socket/outlet.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { settingsWith } from "../../tools/app.ts";

const RUN = { runId: "run-1", sessionKey: "agent:main:main" };
const KEY = `sk-proj-${"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8v"}`;
const OPERATOR: Caller = { id: "t", role: "operator", scopes: ["operator.read"] };

interface Frame {
  readonly event: string;
  readonly payload: ChatEvent & AgentEvent;
}

/** Returns a client that assembles texts from the events that it receives. */
function client(fanout: ReturnType<typeof createFanout>, caps: readonly string[]) {
  const frames: Frame[] = [];
  const told: EncodedEvent[] = [];
  let text = "";
  const leave = fanout.add({
    caller: OPERATOR,
    params: { caps },
    event(event) {
      told.push(event);
      const frame = JSON.parse(`${event.head}}`) as Frame;
      frames.push(frame);
      const { state, delta, offset = 0, message } = frame.payload;
      if (frame.event !== "chat") return;
      if (state === "delta" && delta !== undefined) {
        const after = new LongText(text);
        expect(after.change({ offset, text: delta }), `a delta at ${offset} of ${text.length}`).toBe(true);
        text = after.text;
      } else text = message?.content[0]?.text ?? text;
    },
  });
  return {
    frames,
    told,
    leave,
    get text() {
      return text;
    },
    get bytes() {
      return told.reduce((sum, { head }) => sum + head.length, 0);
    },
  };
}

function openFanout(redactor = new Redactor(["a-known-secret"])) {
  const world = fakeWorld();
  const bus = createBus(world.log);
  const settings = settingsWith({});
  const fanout = createFanout({ ...world, bus, redactor, settings, shared: false });
  let length = 0;
  let part = 0;
  const publish = (event: LiveEvent): void => bus.publish(event);
  return {
    world,
    fanout,
    publish,
    start: () => publish({ kind: "run_started", ...RUN, chainId: "c", startedAt: world.clock.now() }),
    say(text: string) {
      publish({ kind: "text", ...RUN, part: `1.${part}`, offset: length, text });
      length += text.length;
    },
    restart(text: string) {
      publish({ kind: "text", ...RUN, part: `1.${part}`, offset: 0, text });
      length = text.length;
    },
    call(callId: string) {
      const about = { callId, name: "exec", atMs: 1 };
      publish({ kind: "tool", ...RUN, phase: "start", ...about });
      part += 1;
      length = 0;
    },
    end: (text: string) =>
      publish({
        ...{ kind: "run_ended", ...RUN, chainId: "c", state: "ok", text, endedAt: world.clock.now() },
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
      } as unknown as LiveEvent),
  };
}

test("a client with text-deltas gets each new piece once, and the whole text at the end", () => {
  const house = openFanout();
  const watcher = client(house.fanout, ["text-deltas"]);
  house.start();
  for (const word of ["Hello ", "to ", "you"]) house.say(word);
  house.end("Hello to you");
  const chat = watcher.frames.filter(({ event }) => event === "chat").map(({ payload }) => payload);
  expect(chat.map(({ state, offset, delta }) => [state, offset, delta])).toEqual([
    ["delta", 0, "Hello "],
    ["delta", 6, "to "],
    ["delta", 9, "you"],
    ["final", undefined, undefined],
  ]);
  expect(watcher.text).toBe("Hello to you");
  const seqs = watcher.frames.map(({ payload }) => payload.seq);
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  expect(watcher.frames.filter(({ payload }) => payload.stream === "assistant")).toEqual([]);
});

test("a client that connects during a run gets the whole text first, then deltas", () => {
  const house = openFanout();
  const first = client(house.fanout, ["text-deltas"]);
  house.start();
  house.say("one ");
  house.say("two ");
  const second = client(house.fanout, ["text-deltas"]);
  expect(second.text).toBe("one two ");
  house.say("three");
  expect(second.text).toBe("one two three");
  expect(second.frames.at(-1)?.payload).toMatchObject({ offset: 8, delta: "three" });
  expect(first.text).toBe("one two three");
});

test("a resumed run begins its text again, and the whole new text is sent", () => {
  const house = openFanout();
  const watcher = client(house.fanout, ["text-deltas"]);
  house.start();
  house.say("The first try");
  house.restart("Second");
  expect(watcher.frames.at(-1)?.payload.message).toMatchObject({ content: [{ text: "Second" }] });
  expect(watcher.text).toBe("Second");
  house.say(" try");
  expect(watcher.text).toBe("Second try");
});

test("I14: a secret that arrives in pieces is redacted for both kinds of clients, at every moment", async () => {
  const house = openFanout();
  const watchers = [client(house.fanout, ["text-deltas"]), client(house.fanout, [])];
  house.start();
  const text = `It is ${KEY}, or a-known-secret. Done`;
  for (const char of text) {
    house.say(char);
    await house.world.advance(40);
  }
  house.call("c1");
  for (const watcher of watchers) {
    expect(watcher.text).toBe("It is [redacted], or [redacted]. Done");
    const said = JSON.stringify(watcher.frames);
    expect(said).not.toContain(KEY.slice(0, 9));
    expect(said).not.toContain("a-known");
  }
});

test("without the capability `text-deltas`, a client gets the text so far at most once in 150 ms, and then what follows", async () => {
  const house = openFanout();
  const watcher = client(house.fanout, []);
  const wholes = () => watcher.frames.filter(({ event }) => event === "chat").length;
  house.start();
  house.say("one ");
  expect(wholes()).toBe(1);
  house.say("two ");
  house.say("three ");
  await house.world.advance(149);
  expect(watcher.text).toBe("one ");
  await house.world.advance(1);
  expect(watcher.text).toBe("one two three ");
  expect(wholes()).toBe(2);
  expect(watcher.frames.filter(({ payload }) => payload.stream === "assistant")).toHaveLength(2);
});

test("both events of a whole text have the same text, whatever characters and run ids it meets", async () => {
  for (const runId of ["run-1", "\u0000", '"', "$&"]) {
    const house = openFanout();
    const watcher = client(house.fanout, []);
    house.publish({ kind: "run_started", ...RUN, runId, chainId: "c", startedAt: house.world.clock.now() });
    const text = 'a "quoted" \\ line\n$& $1 \u0000 \ud83d\ude00 \ud83d';
    house.publish({ kind: "text", ...RUN, runId, part: "1.0", offset: 0, text: `${text} ` });
    const [assistant, chat] = watcher.frames.slice(-2).map(({ payload }) => payload);
    expect(assistant).toMatchObject({ runId, stream: "assistant", data: { text: `${text} ` } });
    expect(chat?.message?.content).toEqual([{ type: "text", text: `${text} ` }]);
    expect(chat?.runId).toBe(runId);
  }
});

test("a final event has the text and the error, whatever characters are in them, also in two halves", () => {
  for (const caps of [[], ["text-deltas"]]) {
    for (const error of ["\u0000", 'a "\u0000" b']) {
      const house = openFanout();
      const watcher = client(house.fanout, caps);
      house.start();
      house.say("one \ud83d");
      house.say('\ude00 "two" \u0000 ');
      const text = 'one \ud83d\ude00 "two" \u0000 three';
      house.publish({
        ...{ kind: "run_ended", ...RUN, chainId: "c", state: "error", code: "run_failed", text, error },
        ...{ endedAt: 1, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 } },
      } as unknown as LiveEvent);
      const { payload } = watcher.frames.at(-1) ?? {};
      expect(payload).toMatchObject({ state: "error", errorMessage: error, stopReason: "error" });
      expect(payload?.message?.content).toEqual([{ type: "text", text }]);
      expect(watcher.text).toBe(text);
    }
  }
});

test("the longer a text is, the less often it is sent; all of it is sent before a tool call", async () => {
  const house = openFanout();
  const watcher = client(house.fanout, []);
  house.start();
  house.say("x ".repeat(32 * 1024));
  const before = watcher.frames.length;
  house.say("more ");
  await house.world.advance(590);
  expect(watcher.frames.length).toBe(before);
  await house.world.advance(20);
  expect(watcher.text.endsWith("more ")).toBe(true);
  house.say("the last word");
  house.call("c1");
  expect(watcher.text.endsWith("the last word")).toBe(true);
});

test("without subscribers a text is not redacted; a subscriber that comes later gets the whole text, redacted", () => {
  const house = openFanout();
  house.start();
  house.say(`It is ${KEY} `);
  house.say("and more ");
  const watcher = client(house.fanout, ["text-deltas"]);
  expect(watcher.text).toBe("It is [redacted] and more ");
  house.say("words");
  expect(watcher.text).toBe("It is [redacted] and more words");
});

/** Remembers the most characters that were redacted in one step. */
class SteppedRedactor extends Redactor {
  stepMaxChars = 0;
  #note(text: string): string {
    this.stepMaxChars = Math.max(this.stepMaxChars, text.length);
    return text;
  }
  override mask(text: string): string {
    return super.mask(this.#note(text));
  }
  override stream(): MaskStream {
    const stream = super.stream();
    const push = stream.push.bind(stream);
    stream.push = (text) => push(this.#note(text));
    return stream;
  }
}

/** Opens a fanout whose long work lets other work run after each step. */
function steppedHouse() {
  const redactor = new SteppedRedactor(["a-known-secret"]);
  redactor.pacedBy(() => () => new Promise((resolve) => setImmediate(resolve)));
  return { redactor, house: openFanout(redactor) };
}

const LONG = `It is ${KEY}. ${"many words ".repeat(100_000)}a-known-secret, the end`;
type House = ReturnType<typeof openFanout>;
const FLOW = { ...RUN, flowId: "f", from: "agent:main:main", to: "agent:main:main", turn: 1, turnsMax: 2 };

test.each<[string, (house: House) => void]>([
  ["text that comes in one piece", (house) => house.say(LONG)],
  [
    "text that begins again",
    (house) => {
      house.say("The first try");
      house.restart(LONG);
    },
  ],
  ["final text that was not streamed", (house) => house.end(LONG)],
  [
    "final text that differs from the streamed one",
    (house) => {
      house.say("Something else");
      house.end(LONG);
    },
  ],
  [
    "argument of a tool call",
    ({ publish }) =>
      publish({
        ...{ kind: "tool", ...RUN, phase: "start", callId: "c", name: "write", atMs: 1 },
        arguments: { content: LONG },
      }),
  ],
  [
    "announcement",
    ({ publish }) => publish({ kind: "delivered", ...RUN, deliveryId: "d", text: LONG, atMs: 1 }),
  ],
  [
    "message of a flow",
    ({ publish }) => publish({ kind: "flow", ...FLOW, step: "reply", text: LONG, atMs: 1 }),
  ],
])(
  "a long %s is redacted in steps; later events of its session wait, those of others do not",
  async (_, act) => {
    const { redactor, house } = steppedHouse();
    const watcher = client(house.fanout, ["text-deltas"]);
    house.start();
    act(house);
    const keys = [RUN.sessionKey, "agent:main:chat:other"];
    for (const sessionKey of keys) house.publish({ kind: "session", sessionKey, change: "created" });
    const changes = () => watcher.frames.filter(({ event }) => event === "sessions");
    expect(changes()).toMatchObject([{ payload: { key: keys[1] } }]);
    await until(() => changes().length === 2);
    expect(watcher.frames.at(-1)).toMatchObject({ event: "sessions", payload: { key: keys[0] } });
    expect(redactor.stepMaxChars).toBeLessThanOrEqual(LONG_CHARS);
    const shown = JSON.stringify(watcher.frames);
    expect(shown).toContain("It is [redacted]. many words");
    expect(shown).not.toContain(KEY);
  },
);

test.each([
  ["short", "many words ".repeat(1_000)],
  ["long", LONG],
])(
  "a %s text that is published again, because another process missed a part, is sent to nobody again",
  async (_, text) => {
    const { redactor, house } = steppedHouse();
    const watchers = [client(house.fanout, ["text-deltas"]), client(house.fanout, [])];
    house.start();
    for (let at = 0; at < text.length; at += LONG_CHARS) house.say(text.slice(at, at + LONG_CHARS));
    await house.world.advance(60_000);
    const before = watchers.map(({ frames }) => frames.length);
    const shown = watchers.map((watcher) => watcher.text.length);
    house.restart(text);
    house.publish({ kind: "session", sessionKey: RUN.sessionKey, change: "created" });
    await until(() => watchers.every(({ frames }) => frames.at(-1)?.event === "sessions"));
    expect(watchers.map(({ frames }) => frames.length)).toEqual(before.map((count) => count + 1));

    // The text that is published again may also be longer than the known one.
    house.restart(`${text} and more`);
    house.call("c1");
    await until(() => watchers.every((watcher) => watcher.text.endsWith(" and more")));
    const bytes = watchers[0]?.told.slice(before[0]).reduce((sum, { head }) => sum + head.length, 0);
    expect(bytes).toBeLessThan(2_000);
    expect(watchers.every((watcher, at) => watcher.text.length > (shown[at] ?? 0))).toBe(true);
    expect(redactor.stepMaxChars).toBeLessThanOrEqual(LONG_CHARS);
  },
);
