// Turns of agents elsewhere against a scripted A2A server: what it may send, and what it must not achieve.
// Hard cases: a card that leads elsewhere, redirects, unsigned cards, broken streams, huge answers, questions,
// files, and answers that are no A2A.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { Entry } from "../../../src/core/shapes/message.ts";
import { RemoteAgents, type RemoteTurnArgs } from "../../../src/features/a2a/remote/remote.ts";
import type { RemoteTask } from "../../../src/store/queries/remote-tasks.ts";
import type { World } from "../../../src/world.ts";
import { quietWorld } from "../../kit/engine/engine.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { userMessage } from "../../store/samples.ts";
import { type FakeRemote, fakeRemote, type Json, listen, type Reply } from "./fake-remote.ts";

const task = (state: string, more: Json = {}) => ({
  ...{ id: "task-1", contextId: "context-1", status: { state: `TASK_STATE_${state}` } },
  ...more,
});
const artifact = (text: string, artifactId = "one") => ({ artifactId, parts: [{ text }] });
const about = { taskId: "task-1", contextId: "context-1" };
const piece = (text: string, append = true) => ({
  artifactUpdate: { ...about, artifact: artifact(text), append },
});
const status = (state: string, text?: string) => ({
  statusUpdate: {
    ...about,
    status: {
      state: `TASK_STATE_${state}`,
      ...(text === undefined ? {} : { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] } }),
    },
  },
});

/** Answers with a stream of these results; `cut`: breaks the connection after them. */
function streaming(results: readonly Json[], cut = false): Reply {
  return (_, response, id) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const result of results)
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
    if (cut) setImmediate(() => response.destroy());
    else response.end();
  };
}

const answering =
  (result: Json): Reply =>
  (_, response, id) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  };

/** Runs turns of one session. */
function session(
  remote: FakeRemote,
  runtime: Partial<RemoteTurnArgs["runtime"]> = {},
  maxAnswerBytes = 10_000,
  world: World = quietWorld(),
  mayAct: () => Promise<void> = async () => {},
  /** Returns whether this process still has the run. */
  holds: () => Promise<boolean> = async () => true,
) {
  const entries: Entry[] = [];
  let state: RemoteTask | undefined;
  let runs = 0;
  let live = "";
  const agents = new RemoteAgents();
  const kept: string[] = [];
  const turn = (text: string, signal = new AbortController().signal) => {
    runs += 1;
    entries.push(userMessage(`message-${runs}`, text));
    return again(signal);
  };
  /** Runs the last turn again, as after a crash. */
  const again = (signal = new AbortController().signal) => {
    live = "";
    return agents.turn({
      ...{
        agentId: "far",
        tokensLeft: 900,
        entries: [...entries],
        contextTokens: 0,
      },
      handle: {
        run: { runId: `run-${runs}`, hop: 2, chainId: "chain-1", input: { text: "" } },
        signal,
        append: async (entry) => {
          entries.push(entry);
          return entry;
        },
        confirm: mayAct,
        text: ({ offset, text: more }) => {
          live = live.slice(0, offset) + more;
        },
      },
      runtime: { card: `${remote.url}/card.json`, allowUnsigned: true, ...runtime },
      limits: { maxAnswerBytes },
      world,
      read: async () => state,
      write: async (next) => {
        if (!(await holds())) return false;
        state = next;
        return true;
      },
      hasEnded: async () => true,
      keep: async (callId, { name, content }) => {
        kept.push(`${callId} ${name}: ${Buffer.from(content).toString()}`);
        return { status: name.startsWith("refused") ? "error" : "accepted", fileId: `file-${callId}` };
      },
      onRetry: () => {},
    });
  };
  return { turn, again, entries, kept: () => kept, state: () => state, live: () => live };
}

test("pieces become live text, and the answer is written once; the conversation and the hop are sent", async () => {
  const remote = await fakeRemote();
  const events = [{ task: task("WORKING") }, piece("One ", false), piece("two"), status("COMPLETED")];
  remote.on.SendStreamingMessage = streaming(events);
  const { turn, entries, live } = session(remote);
  expect(await turn("Count")).toMatchObject({ kind: "ok", text: "One two" });
  expect(live()).toBe("One two");
  expect(entries).toMatchObject([{ role: "user" }, { role: "assistant" }]);
  await turn("Again");
  const [first, second] = remote.calls.map(({ params }) => params.message as Json);
  expect(first).toMatchObject({
    messageId: "parley-run-1",
    metadata: { "parley.hop": 2, "parley.chain": "chain-1", "parley.budget": 900 },
  });
  expect(first?.contextId).toBeUndefined();
  expect(second).toMatchObject({ messageId: "parley-run-2", contextId: "context-1" });
  expect(JSON.stringify(second?.parts)).not.toContain("Count");
});

test("a later artifact replaces or follows; a message without a task is an answer, too", async () => {
  const remote = await fakeRemote();
  const other = { artifactUpdate: { ...about, artifact: artifact("A second part", "two") } };
  const events = [{ task: task("WORKING") }, piece("Wrong", false), piece("Right", false), other];
  remote.on.SendStreamingMessage = streaming([...events, status("COMPLETED")]);
  const { turn, live } = session(remote);
  expect(await turn("Go")).toMatchObject({ kind: "ok", text: "Right\n\nA second part" });
  expect(live()).toBe("Right\n\nA second part");
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Just so" }, { data: { a: 1 } }] };
  remote.on.SendStreamingMessage = streaming([{ message }]);
  expect(await turn("And?")).toMatchObject({ kind: "ok", text: 'Just so\n{"a":1}' });
});

test("RT1: after a broken stream the task is followed, and the message is not sent again", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }, piece("Half", false)], true);
  remote.on.GetTask = answering(task("WORKING", { artifacts: [artifact("Half")] }));
  remote.on.SubscribeToTask = streaming([piece(" and whole"), status("COMPLETED")]);
  const { turn } = session(remote);
  expect(await turn("Go")).toMatchObject({ kind: "ok", text: "Half and whole" });
  expect(remote.calls.map(({ method }) => method)).toEqual([
    "SendStreamingMessage",
    "GetTask",
    "SubscribeToTask",
  ]);
});

test("RT1: a task that could not be stored when it began is stored when it is followed", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }]);
  remote.on.GetTask = answering(task("COMPLETED", { artifacts: [artifact("Whole")] }));
  let writes = 0;
  const { turn } = session(remote, {}, 10_000, quietWorld(), undefined, async () => {
    writes += 1;
    if (writes === 1) throw new Error("the disk is full");
    return true;
  });
  expect(await turn("Go")).toMatchObject({ kind: "ok", text: "Whole" });
  // The second write stores the task, and the third one its end.
  expect(writes).toBe(3);
});

test("RT1: a task that ends just before it is followed is read again", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }], true);
  remote.on.GetTask = answering(task("WORKING"));
  remote.on.SubscribeToTask = (_, response, id) => {
    remote.on.GetTask = answering(task("COMPLETED", { artifacts: [artifact("Done in between")] }));
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32004, message: "the task has ended" } }),
    );
  };
  const { turn } = session(remote);
  expect(await turn("Go")).toMatchObject({ kind: "ok", text: "Done in between" });
  expect(remote.calls.map(({ method }) => method)).toEqual([
    "SendStreamingMessage",
    "GetTask",
    "SubscribeToTask",
    "GetTask",
  ]);
});

test("RT2: if the connection breaks before the task is known, the message is not repeated and the run says so", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = (_, response) => void response.destroy();
  const { turn } = session(remote);
  const end = await turn("Deploy");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("outcome unknown") });
  expect(remote.calls).toHaveLength(1);
});

test("RT3: a turn ends without an answer, and cancels nothing, once another process has its run", async () => {
  const remote = await fakeRemote();
  const done = { task: task("COMPLETED", { artifacts: [artifact("Whole")] }) };
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }, done]);
  const { turn, entries } = session(remote, {}, 10_000, quietWorld(), undefined, async () => false);
  expect(await turn("Go")).toMatchObject({ kind: "aborted" });
  expect(entries).toHaveLength(1);
  expect(remote.calls.map(({ method }) => method)).toEqual(["SendStreamingMessage"]);
});

test("before each attempt, once the card is read, nothing is sent until the gateway may act for the run", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }], true);
  remote.on.GetTask = answering(task("COMPLETED", { artifacts: [artifact("Whole")] }));
  const asked: PromiseWithResolvers<void>[] = [];
  const { turn } = session(remote, {}, 10_000, quietWorld(), () => {
    const may = Promise.withResolvers<void>();
    asked.push(may);
    return may.promise;
  });
  const end = turn("Go");
  for (const before of [0, 1]) {
    const may = await until(() => asked[before]);
    expect(remote.reads()).toBe(1);
    expect(remote.calls).toHaveLength(before);
    may.resolve();
  }
  expect(await end).toMatchObject({ kind: "ok", text: "Whole" });
  expect(remote.calls).toHaveLength(2);
});

test("if the gateway may no longer act for the run, the turn fails, and the agent gets nothing", async () => {
  const remote = await fakeRemote();
  const lost = new Error("another gateway has the run");
  const { turn } = session(remote, {}, 10_000, quietWorld(), () => Promise.reject(lost));
  await expect(turn("Go")).rejects.toBe(lost);
  expect(remote.calls).toEqual([]);
});

test.each([true, false])("RT2: a slow agent is not asked twice (streams: %s)", async (isStreaming) => {
  const remote = await fakeRemote();
  if (!isStreaming) remote.card = { ...remote.card, capabilities: {} };
  const world = fakeWorld();
  const waiting: (() => void)[] = [];
  const done = { task: task("COMPLETED", { artifacts: [artifact("At last")] }) };
  const reply = isStreaming ? streaming([done]) : answering(done);
  const slow: Reply = (...call) => void waiting.push(() => reply(...call));
  Object.assign(remote.on, { SendStreamingMessage: slow, SendMessage: slow });
  const turn = session(remote, {}, 10_000, world).turn("Deploy");
  await expect.poll(() => waiting.length).toBe(1);
  for (let minutes = 0; minutes < 3; minutes += 1) {
    await world.advance(60_000);
    // A second message would arrive before this request.
    await fetch(`${remote.url}/card.json`);
  }
  for (const answer of waiting) answer();
  expect(await turn).toMatchObject({ kind: "ok", text: "At last" });
  expect(remote.calls).toHaveLength(1);
});

test("a question of the agent is the answer, and the next message belongs to the same task", async () => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([
    { task: task("WORKING") },
    status("INPUT_REQUIRED", "Which one?"),
  ]);
  const { turn } = session(remote);
  expect(await turn("Book a room")).toMatchObject({ kind: "ok", text: "Which one?" });
  remote.on.SendStreamingMessage = streaming([
    { task: task("COMPLETED", { artifacts: [artifact("Booked")] }) },
  ]);
  expect(await turn("The blue one")).toMatchObject({ kind: "ok", text: "Booked" });
  expect(remote.calls.at(-1)?.params.message).toMatchObject({ taskId: "task-1", contextId: "context-1" });
});

test.each([-32004, -32001])(
  "if the task no longer waits (error %i), the message is sent again, without the task",
  async (code) => {
    const remote = await fakeRemote();
    remote.on.SendStreamingMessage = streaming([{ task: task("INPUT_REQUIRED") }]);
    const { turn, state } = session(remote);
    await turn("Book a room");
    expect(state()).toMatchObject({ taskId: "task-1", isAsking: true });
    remote.on.SendStreamingMessage = (params, response, id) => {
      const { taskId = "" } = params.message as { taskId?: string };
      if (taskId === "")
        return streaming([{ task: task("COMPLETED", { id: "task-2" }) }])(params, response, id);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message: "the task has ended" } }));
    };
    expect(await turn("The blue one")).toMatchObject({ kind: "ok" });
    expect(state()).toMatchObject({ taskId: "task-2", contextId: "context-1", isAsking: false });
    expect(remote.calls.map(({ params }) => (params.message as Json).taskId ?? "")).toEqual([
      "",
      "task-1",
      "",
    ]);
  },
);

test.each([
  ["FAILED", "it failed: no money"],
  ["REJECTED", "it refused the message: no money"],
  ["CANCELED", "it was cancelled there: no money"],
])("a task in state %s fails the run with its reason", async (state, error) => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }, status(state, "no money")]);
  expect(await session(remote).turn("Go")).toMatchObject({ kind: "error", error: `agent "far": ${error}` });
});

test("an agent without streams is asked once, and answers with its task", async () => {
  const remote = await fakeRemote();
  remote.card = { ...remote.card, capabilities: {} };
  remote.on.SendMessage = answering({ task: task("COMPLETED", { artifacts: [artifact("Done")] }) });
  expect(await session(remote).turn("Go")).toMatchObject({ kind: "ok", text: "Done" });
});

const FILE = {
  artifactId: "file",
  parts: [
    { raw: Buffer.from("a plan").toString("base64"), filename: "plan.pdf", mediaType: "application/pdf" },
    { url: "http://elsewhere.example/secret.pdf", filename: "far.pdf", mediaType: "application/pdf" },
    { raw: "AAAA", filename: "refused.bin", mediaType: "application/octet-stream" },
  ],
};

test("files are kept for the people of the session; an address is not fetched; hidden text is removed", async () => {
  const remote = await fakeRemote();
  const artifacts = [artifact("<think>secret</think>Here it is."), FILE];
  remote.on.SendStreamingMessage = streaming([{ task: task("COMPLETED", { artifacts }) }]);
  const { turn, entries, kept } = session(remote);
  const end = await turn("Go");
  expect(end).toMatchObject({
    kind: "ok",
    text: 'Here it is.\n\n[It also sent "far.pdf", "refused.bin", not kept here.]',
  });
  expect(kept()).toEqual(["run-1:a2a:0 plan.pdf: a plan", "run-1:a2a:2 refused.bin: \0\0\0"]);
  const roles = entries.map((one) => ("role" in one ? one.role : "summary"));
  expect(roles).toEqual(["user", "assistant", "toolResult", "assistant", "toolResult", "assistant"]);
  expect(entries[2]).toMatchObject({ toolCallId: "run-1:a2a:0", toolName: "send_file", isError: false });
  expect(entries[4]).toMatchObject({ toolCallId: "run-1:a2a:2", isError: true });
});

test.each([1, 2, 3, 4, 5])("if the gateway dies after entry %i, each file is written once", async (count) => {
  const remote = await fakeRemote();
  const artifacts = [artifact("Here it is."), FILE];
  remote.on.SendStreamingMessage = streaming([{ task: task("COMPLETED", { artifacts }) }]);
  remote.on.GetTask = answering(task("COMPLETED", { artifacts }));
  const { turn, again, entries } = session(remote);
  await turn("Go");
  entries.length = count;
  expect(await again()).toMatchObject({
    kind: "ok",
    text: expect.stringMatching(/"far.pdf", "refused.bin"/),
  });
  const roles = entries.map((one) => ("role" in one ? one.role : "summary"));
  expect(roles).toEqual(["user", "assistant", "toolResult", "assistant", "toolResult", "assistant"]);
  expect(new Set(entries.flatMap(({ id }) => id)).size).toBe(6);
});

test("of files that are too large together, the later ones are only named", async () => {
  const remote = await fakeRemote();
  const raw = Buffer.alloc(8 * 1024 * 1024).toString("base64");
  const artifacts = ["one", "two", "three"].map((name) => ({
    ...{ artifactId: name, parts: [{ raw, filename: `${name}.bin`, mediaType: "application/octet-stream" }] },
  }));
  remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }]);
  remote.on.GetTask = answering(task("COMPLETED", { artifacts }));
  const { turn, kept } = session(remote);
  expect(await turn("Go")).toMatchObject({ text: '[It also sent "three.bin", not kept here.]' });
  expect(kept().map((text) => text.slice(0, 22))).toEqual([
    "run-1:a2a:0 one.bin: \0",
    "run-1:a2a:1 two.bin: \0",
  ]);
});

test("of more than ten files, ten are kept and the first others are named", async () => {
  const remote = await fakeRemote();
  const parts = Array.from({ length: 25 }, (_, at) => ({
    ...{ raw: "AAAA", filename: `${at}.bin`, mediaType: "application/octet-stream" },
  }));
  const artifacts = [{ artifactId: "files", parts }];
  remote.on.SendStreamingMessage = streaming([{ task: task("COMPLETED", { artifacts }) }]);
  const { turn, kept } = session(remote);
  const names = Array.from({ length: 10 }, (_, at) => `"${at + 10}.bin"`).join(", ");
  expect(await turn("Go")).toMatchObject({ text: `[It also sent ${names} and 5 more, not kept here.]` });
  expect(kept()).toHaveLength(10);
});

const TOKENS = { input: 5, output: 2, cacheRead: 1, cacheWrite: 0 };

test.each([
  [TOKENS, 8],
  [{ ...TOKENS, input: -1 }, 0],
  [{ ...TOKENS, output: 1e300 }, 0],
  [{ ...TOKENS, cacheRead: "1" }, 0],
  ["many", 0],
])(
  "the tokens %j that an agent reports count as %i, also after a crash and for a failed task",
  async (usage, totalTokens) => {
    const remote = await fakeRemote();
    const metadata = { "parley.usage": usage };
    const ended = { statusUpdate: { ...status("COMPLETED").statusUpdate, metadata } };
    remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }, piece("Done", false), ended]);
    const { turn, again } = session(remote);
    expect(await turn("Go")).toMatchObject({ kind: "ok", usage: { totalTokens, cost: { total: 0 } } });
    expect(await again()).toMatchObject({ kind: "ok", usage: { totalTokens } });
    remote.on.SendStreamingMessage = streaming([{ task: task("FAILED", { metadata }) }]);
    expect(await turn("Go on")).toMatchObject({ kind: "error", usage: { totalTokens } });
  },
);

const said = (text: string): Json => ({
  message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] },
});
const second = (text: string, append = true) => ({
  artifactUpdate: { ...about, artifact: artifact(text, "two"), append },
});
const WORKING = { task: task("WORKING") };
const x = (chars: number): string => "x".repeat(chars);

const BEYOND: readonly (readonly [string, readonly Json[]])[] = [
  ["in two pieces", [WORKING, piece(x(5_000), false), piece(x(5_001))]],
  ["in a message without a task", [said(x(10_001))]],
  ["in the text of the last status", [WORKING, status("COMPLETED", x(10_001))]],
  ["in a question after an artifact", [WORKING, piece(x(5_000), false), status("INPUT_REQUIRED", x(4_999))]],
  ["in a task that is over", [{ task: task("COMPLETED", { artifacts: [artifact(x(10_001))] }) }]],
  [
    "in two artifacts and the break",
    [WORKING, piece(x(5_000), false), second(x(4_999)), status("COMPLETED")],
  ],
  ["after another artifact grew", [WORKING, piece("1"), second(x(5_000)), piece(x(5_000))]],
  [
    "in bytes of the pieces",
    [WORKING, piece("\u20ac".repeat(3_000), false), piece("\u20ac".repeat(334)), status("COMPLETED")],
  ],
  ["in bytes of a message", [said("\u20ac".repeat(3_334))]],
  ["in bytes of the last status", [WORKING, status("COMPLETED", "\u20ac".repeat(3_334))]],
];

test.each(BEYOND)("an answer beyond the limit ends the run: %s", async (_, events) => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming(events);
  const { turn, live } = session(remote);
  const end = await turn("Go");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("maxAnswerBytes") });
  expect(Buffer.byteLength(live())).toBeLessThanOrEqual(10_000);
});

const WITHIN: readonly (readonly [string, readonly Json[], string])[] = [
  ["a message", [said("\u20ac".repeat(3_333))], "\u20ac".repeat(3_333)],
  ["a status", [WORKING, status("COMPLETED", x(10_000))], x(10_000)],
  [
    "a replaced artifact",
    [WORKING, piece(x(9_000), false), piece(x(8_000), false), piece(x(2_000)), status("COMPLETED")],
    x(10_000),
  ],
  [
    "an artifact after progress that is not part of the answer",
    [WORKING, status("WORKING", x(6_000)), piece(x(6_000), false), status("COMPLETED", x(6_000))],
    x(6_000),
  ],
  [
    "artifacts of which the first was empty for a while",
    [WORKING, piece("", false), second("b", false), second("b"), piece("a"), status("INPUT_REQUIRED", "c?")],
    "a\n\nbb\n\nc?",
  ],
  [
    "artifacts of which the last was empty for a while",
    [WORKING, piece("a", false), second("", false), second("b"), second("b"), status("COMPLETED")],
    "a\n\nbb",
  ],
];

test.each(WITHIN)("an answer within the limit is returned: %s", async (_, events, text) => {
  const remote = await fakeRemote();
  remote.on.SendStreamingMessage = streaming(events);
  const { turn, live } = session(remote);
  expect(await turn("Go")).toMatchObject({ kind: "ok", text });
  if (live() !== "") expect(text.startsWith(live())).toBe(true);
});

test.each(["FAILED", "REJECTED", "CANCELED"])(
  "of the text with which a task is %s, the beginning is kept",
  async (state) => {
    const remote = await fakeRemote();
    const why = `no luck ${"x".repeat(100_000)}`;
    remote.on.SendStreamingMessage = streaming([{ task: task("WORKING") }, status(state, why)]);
    const end = await session(remote).turn("Go");
    if (end.kind !== "error") throw new Error(end.kind);
    expect(end.error).toContain("no luck xxx");
    expect(end.error.length).toBeLessThan(600);
  },
);

test("an answer with too many values ends the run", async () => {
  const remote = await fakeRemote();
  remote.card = { ...remote.card, capabilities: {} };
  remote.on.SendMessage = (_, response) => {
    const type = { "content-type": "text/event-stream" };
    response.writeHead(200, type).end(`{"jsonrpc":"2.0","id":1,"result":[${"{},\n\n".repeat(200_000)}0]}`);
  };
  const end = await session(remote).turn("Go");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("more than 250000 values") });
});

test("an endless answer and an endless card end the run", async () => {
  const remote = await fakeRemote();
  const endless = (response: ServerResponse): void => {
    const piece = " ".repeat(1024 * 1024);
    const more = (): void => {
      while (response.writable && response.write(piece));
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", more);
    more();
  };
  remote.card = { ...remote.card, capabilities: {} };
  remote.on.SendMessage = (_, response) => endless(response);
  const end = await session(remote).turn("Go");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("longer than 64 MiB") });
  const url = await listen((_, response) => endless(response));
  const unread = await session({ ...remote, url }).turn("Go");
  expect(unread).toMatchObject({ kind: "error", error: expect.stringContaining("too long") });
});

test("RC1: a card that leads to another host, or redirects, gets nothing", async () => {
  const remote = await fakeRemote();
  let reached = 0;
  const elsewhere = await listen((_, response) => {
    reached += 1;
    response.end("{}");
  });
  const place = { url: `${elsewhere}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" };
  remote.card = { ...remote.card, supportedInterfaces: [place] };
  const end = await session(remote).turn("My secret");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("not on the configured host") });
  const redirecting = await listen(
    (_, response) => void response.writeHead(307, { location: elsewhere }).end(),
  );
  const other = await session({ ...remote, url: redirecting }).turn("My secret");
  expect(other).toMatchObject({ kind: "error" });
  expect(reached).toBe(0);
});

test("RC2: an unsigned card is refused unless the settings allow it", async () => {
  const remote = await fakeRemote();
  const end = await session(remote, { allowUnsigned: false, key: "some-key" }).turn("Go");
  expect(end).toMatchObject({ kind: "error", error: expect.stringContaining("its card is not signed") });
  expect(remote.calls).toEqual([]);
});

test.each(["not JSON", "[]", '{"name":5}', "{}"])(
  "the card %j ends the run with one clear error",
  async (text) => {
    const url = await listen((_, response) => void response.end(text));
    const end = await session({ url, calls: [], on: {}, card: {}, reads: () => 0 }).turn("Go");
    expect(end).toMatchObject({ kind: "error", error: expect.stringMatching(/^agent "far": .{3,600}$/) });
  },
);
