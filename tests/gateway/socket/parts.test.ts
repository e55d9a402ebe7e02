// Parts that are easier to test alone: the generated token, and the queue of frames to a slow reader
// (outlet).

import { EventEmitter } from "node:events";
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WebSocket } from "ws";
import { MAX_FRAME_BYTES, TOKEN_FILE } from "../../../src/contract/protocol.ts";
import { fail, ok } from "../../../src/core/shapes/errors.ts";
import { thrown, wireError } from "../../../src/gateway/answer.ts";
import { type Caller, ensureToken } from "../../../src/gateway/auth.ts";
import { createShares } from "../../../src/gateway/shares.ts";
import { Connection, type ConnectionParts } from "../../../src/gateway/socket/connection.ts";
import { createOutlet, encodeEvent } from "../../../src/gateway/socket/outlet.ts";
import { StoreProblem } from "../../../src/store/problems.ts";
import { temporaryFolder } from "../../kit/engine/engine.ts";
import { lacks } from "../../kit/process/lacks.ts";
import { fakeWorld } from "../../kit/world.ts";

test("a token is generated once, only its owner can read it, and it does not change", async () => {
  const dir = join(temporaryFolder(), "deep", "store");
  const world = fakeWorld();
  const tokens = await Promise.all([ensureToken(dir, world), ensureToken(dir, world)]);
  expect(tokens[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(await ensureToken(dir, fakeWorld({ seed: 9 }))).toBe(
    (await readFile(join(dir, TOKEN_FILE), "utf8")).trim(),
  );
  expect((await stat(join(dir, TOKEN_FILE))).mode & 0o777).toBe(0o600);
});

test("the error about an empty, truncated or damaged token file names the file; a token that the user wrote is accepted", async () => {
  const dir = temporaryFolder();
  const file = join(dir, TOKEN_FILE);
  for (const content of [
    "\n",
    "3f",
    "0123\u0000456789abcdef",
    Buffer.from([0xff, 0xfe, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35]),
  ]) {
    await writeFile(file, content);
    await expect(ensureToken(dir, fakeWorld())).rejects.toMatchObject({ problem: "no_token", place: file });
  }
  await writeFile(file, "my own token\n");
  await chmod(file, 0o600);
  expect(await ensureToken(dir, fakeWorld())).toBe("my own token");
  await rm(file);
  await mkdir(file);
  await expect(ensureToken(dir, fakeWorld())).rejects.toMatchObject({ problem: "not_a_file", place: file });
});

// With a shared store, no earlier code checks the folder. Skipped on systems without /proc.
test.skipIf(lacks("Linux", process.platform === "linux"))(
  "if the folder for the token can't be created, the error names the folder",
  async () => {
    const place = "/proc/parley";
    await expect(ensureToken(place, fakeWorld())).rejects.toMatchObject({ problem: "readonly", place });
  },
);

/**
 * Returns a fake socket with the members that the outlet uses. Its reader reads nothing until the test
 * releases it.
 */
function stuckSocket() {
  const sent: string[] = [];
  const done: (() => void)[] = [];
  let fragments = "";
  const socket = {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    send(data: string | Buffer, how: { fin: boolean } | (() => void)) {
      const text = fragments + data.toString();
      socket.bufferedAmount += data.length;
      fragments = typeof how === "function" ? "" : text;
      if (typeof how !== "function") return;
      sent.push(text);
      done.push(how);
    },
    drain() {
      socket.bufferedAmount = 0;
      for (const written of done.splice(0)) written();
    },
  };
  return { socket, sent, as: socket as unknown as WebSocket };
}

const ofRun = (runId: string) => ({ runId, sessionKey: "agent:main:main", seq: 1 });
const deltaOf = (runId: string, delta: string) => ({ ...ofRun(runId), state: "delta" as const, delta });
const finalOf = (runId: string) => ({ ...ofRun(runId), state: "final" as const });
const delta = (runId: string, text: string) => encodeEvent("chat", deltaOf(runId, text), { replaces: runId });
const final = (runId: string) => encodeEvent("chat", finalOf(runId), { settles: [runId] });

test("O5: a large output in one step does not make the reader count as slow", () => {
  const { socket, sent, as } = stuckSocket();
  const closed: number[] = [];
  const hold = () => () => socket.drain();
  const outlet = createOutlet(as, { maxBufferedBytes: 65_536, close: (code) => closed.push(code), hold });
  for (let index = 0; index < 100; index++) outlet.frame("x".repeat(10_000));
  expect([sent.length, closed]).toEqual([100, []]);
});

test("O6: a long event is encoded once for all readers, and each reader's copy has that reader's own event number", () => {
  const made: (string | Buffer)[] = [];
  const reader = () => {
    const { sent, as, socket } = stuckSocket();
    const send = socket.send;
    socket.send = (data, how) => {
      made.push(data);
      send(data, how);
    };
    return { sent, outlet: createOutlet(as, { maxBufferedBytes: 10_000_000, close: () => {} }) };
  };
  const [one, other] = [reader(), reader()];
  other.outlet.event(final("b"));
  const long = delta("a", "é".repeat(50_000));
  for (const { outlet } of [one, other]) outlet.event(long);
  const shared = made.filter((data) => typeof data !== "string");
  expect([shared.length, new Set(shared).size]).toEqual([2, 1]);
  const frames = [...one.sent, ...other.sent.slice(1)].map((text) => JSON.parse(text));
  const payload = deltaOf("a", "é".repeat(50_000));
  expect(frames).toEqual([1, 2].map((seq) => ({ type: "event", event: "chat", payload, seq })));
});

test("while a reader is slow, deltas of a run replace each other, and the sent events have no gap in seq", () => {
  const { socket, sent, as } = stuckSocket();
  const outlet = createOutlet(as, { maxBufferedBytes: 10_000_000, close: () => {} });
  outlet.event(delta("a", "x".repeat(300_000)));
  for (let index = 0; index < 100; index++) {
    outlet.event(delta("a", `a ${index}`));
    outlet.event(delta("b", `b ${index}`));
  }
  outlet.event(final("b"));
  expect(sent).toHaveLength(2);
  socket.drain();
  const frames = sent.map((text) => JSON.parse(text));
  expect(frames.map((frame) => frame.seq)).toEqual([1, 2, 3]);
  expect(frames.slice(1).map((frame) => frame.payload)).toEqual([finalOf("b"), deltaOf("a", "a 99")]);
});

test("an event that cannot be replaced never overtakes events of its run that are held back", () => {
  const { socket, sent, as } = stuckSocket();
  const outlet = createOutlet(as, { maxBufferedBytes: 10_000_000, close: () => {} });
  outlet.event(delta("a", "x".repeat(300_000)));
  outlet.event(delta("a", "held"));
  outlet.event(delta("b", "another run"));
  const thought = { ...ofRun("a"), ts: 1, stream: "thinking" as const, data: { text: "tool" } };
  outlet.event(encodeEvent("agent", thought, { follows: ["a"] }));
  const shown = () =>
    sent.map((text) => {
      const { delta: added, data } = JSON.parse(text).payload;
      return (added ?? data.text).slice(0, 20);
    });
  expect(shown().slice(1)).toEqual(["held", "tool"]);
  // The reader has read everything, but the outlet does not know that yet.
  socket.bufferedAmount = 0;
  outlet.event(delta("b", "newer"));
  outlet.event(delta("a", "last"));
  expect(shown().slice(3)).toEqual(["newer", "last"]);
});

test("one large answer is sent to an idle reader; a reader whose unread data exceeds the limit is disconnected", () => {
  const { sent, as } = stuckSocket();
  const closed: number[] = [];
  const outlet = createOutlet(as, { maxBufferedBytes: 1_000, close: (code) => closed.push(code) });
  outlet.frame("x".repeat(5_000));
  expect([sent.length, closed.length]).toEqual([1, 0]);
  outlet.frame("y");
  expect([sent.length, closed]).toEqual([1, [1013]]);
});

/** Opens a connection whose methods end when the test releases them. */
function openConnection(result: object = {}) {
  const sent: string[] = [];
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    send: (text: string) => void sent.push(text),
    close: () => {},
    terminate: () => {},
    pause: () => {},
  });
  const begun: { method: string; end: () => void }[] = [];
  const caller: Caller = { id: "x", role: "operator", scopes: ["operator.admin"] };
  const parts = {
    world: fakeWorld(),
    authority: { admit: () => ok(caller), deviceToken: () => undefined },
    shares: createShares(),
    maxBufferedBytes: 1_000,
    hello: async () => ({}),
    join: () => () => {},
    call: (_: Caller, method: string) =>
      new Promise((resolve) => begun.push({ method, end: () => resolve({ result: ok(result) }) })),
  } as unknown as ConnectionParts;
  const countBytes = () => () => {};
  new Connection(parts, { socket: socket as unknown as WebSocket, remote: "test", countBytes });
  const send = (method: string, params: object = {}): void => {
    socket.emit("message", Buffer.from(JSON.stringify({ type: "req", id: "x", method, params })), false);
  };
  return { begun, sent, send };
}

const CONNECT = {
  ...{ minProtocol: 3, maxProtocol: 3 },
  client: { id: "a", version: "1", platform: "p", mode: "m" },
};

test("an answer that no client could receive is replaced by an error", async () => {
  const { begun, sent, send } = openConnection({ text: "x".repeat(MAX_FRAME_BYTES) });
  send("connect", CONNECT);
  send("chat.history");
  await expect.poll(() => begun.length).toBe(1);
  begun[0]?.end();
  const failed = () => sent.find((text) => text.includes('"ok":false'));
  await expect.poll(failed).toContain("too_large");
  expect(sent.every((text) => text.length < 1_000)).toBe(true);
});

test("an event that no client could receive is left out", () => {
  const { sent, as } = stuckSocket();
  const outlet = createOutlet(as, { maxBufferedBytes: 10_000_000, close: () => {} });
  outlet.event(delta("a", "x".repeat(MAX_FRAME_BYTES)));
  outlet.event(final("a"));
  expect(sent.map((text) => JSON.parse(text))).toMatchObject([{ seq: 1, payload: { state: "final" } }]);
});

test("a client's reads run one after another, and so do its writes, but waits and tool calls run in parallel", async () => {
  const { begun, send } = openConnection();
  send("connect", CONNECT);
  for (const method of ["chat.history", "sessions.list", "chat.send", "sessions.reset"]) send(method);
  for (const method of ["agent.wait", "agent.wait", "tools.invoke", "tools.invoke"]) send(method);
  const names = () => begun.map(({ method }) => method).toSorted();
  const first = ["agent.wait", "agent.wait", "chat.history", "chat.send", "tools.invoke", "tools.invoke"];
  await expect.poll(names).toEqual(first);
  for (const { end } of [...begun]) end();
  await expect.poll(names).toEqual([...first, "sessions.list", "sessions.reset"].toSorted());
});

test("I14: every text of a failure is redacted, also its hint and its details", () => {
  const { redactor } = fakeWorld();
  redactor.learn(["sesame-open-7788"]);
  const text = "postgres://parley:sesame-open-7788@db/parley";
  const failure = fail("store_unavailable", text, {
    hint: text,
    details: { place: [text], retryAfterMs: 5 },
  });
  const told = wireError(failure, redactor);
  expect(JSON.stringify(told)).not.toContain("sesame");
  expect(told).toMatchObject({ retryAfterMs: 5, details: { code: "store_unavailable" } });
});

test("a full disk is reported with the store's message and advice; a bug is reported without details", () => {
  const world = fakeWorld();
  const full = wireError(
    thrown(world, new StoreProblem("full", "/somewhere/parley.sqlite"), "chat.send"),
    world.redactor,
  );
  expect(full).toMatchObject({
    code: "UNAVAILABLE",
    retryable: true,
    details: { code: "store_unavailable" },
  });
  expect(full.message).toMatch(/parley\.sqlite.*full.*Free some space/s);
  const bug = wireError(thrown(world, new TypeError("x is not a function"), "chat.send"), world.redactor);
  expect(bug.message).not.toContain("x is not");
  expect(world.logged.map((line) => line.level)).toEqual(["error", "error"]);
});
