// Parts of the conversation that need no browser: the window of loaded messages, the visible items, and their
// texts.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AnnouncementFacts, composeAnnouncement } from "../../../src/core/rules/announcement.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import { isTame } from "../../../src/core/text/tame-markdown.ts";
import { itemsOf } from "../../../ui/src/conversation/items.ts";
import { originOf } from "../../../ui/src/conversation/origin.ts";
import { lastBlockAt } from "../../../ui/src/conversation/text/last-block.ts";
import {
  currentRun,
  type Message,
  type Page,
  type Run,
  type Thread,
  threadOf,
  WINDOW_MAX,
  withNewer,
  withOlder,
} from "../../../ui/src/conversation/thread.ts";
import {
  filesOf,
  parsed,
  sessionOf,
  summaryOf,
  type ToolCall,
} from "../../../ui/src/conversation/work/calls.ts";
import { jobResultOf } from "../../../ui/src/conversation/work/job-result.ts";
import { anyCharacter } from "../../fuzz/nasty.ts";
import { assistantMessage, toolResult, userMessage } from "../../store/samples.ts";

const RUN: Run = {
  kind: "turn",
  state: "ok",
  acceptedAt: 1,
  startedAt: 1,
  endedAt: 2,
  chainId: "c",
  usage: ZERO_USAGE,
};

/** Returns a long transcript, read in pages as the gateway returns them. */
function transcript(count: number) {
  const all: Message[] = Array.from({ length: count }, (_, n) => ({
    ...userMessage(`m${n}`, ""),
    runId: `r${n}`,
  }));
  const page = (from: number, to: number): Page => {
    const messages = all.slice(Math.max(0, from), Math.min(count, to));
    return {
      ...{ sessionKey: "agent:main:main", sessionId: "s", thinkingLevel: "off", messages },
      runs: Object.fromEntries(messages.map(({ runId }) => [String(runId), RUN])),
      ...(from > 0 && messages[0] !== undefined ? { nextBefore: messages[0].id } : {}),
      ...(to < count && messages.at(-1) !== undefined ? { nextAfter: String(messages.at(-1)?.id) } : {}),
    };
  };
  const at = (id: string | undefined) => Number(id?.slice(1));
  return {
    newest: (limit: number) => page(count - limit, count),
    before: (id: string | undefined, limit: number) => page(at(id) - limit, at(id)),
    after: (id: string | undefined, limit: number) => page(at(id) + 1, at(id) + 1 + limit),
  };
}

describe("the window", () => {
  test("TH1, TH2: pages read in any order give a limited window without a gap", () => {
    const moves = fc.array(fc.constantFrom("older", "newer"), { maxLength: 40 });
    fc.assert(
      fc.property(
        moves,
        fc.integer({ min: 1, max: 1_500 }),
        fc.integer({ min: 1, max: 200 }),
        (walk, count, limit) => {
          const source = transcript(count);
          let thread: Thread = threadOf(source.newest(limit));
          for (const move of walk) {
            if (move === "older" && thread.nextBefore !== undefined)
              thread = withOlder(thread, source.before(thread.nextBefore, limit));
            if (move === "newer" && thread.nextAfter !== undefined)
              thread = withNewer(thread, source.after(thread.nextAfter, limit), "newest");
            const numbers = thread.messages.map(({ id }) => Number(id.slice(1)));
            const [first = 0] = numbers;
            expect(numbers).toEqual(numbers.map((_, n) => first + n));
            expect(numbers.length).toBeLessThanOrEqual(Math.max(WINDOW_MAX, limit));
            expect(thread.nextBefore === undefined).toBe(first === 0);
            expect(thread.nextAfter === undefined).toBe(numbers.at(-1) === count - 1);
            expect(Object.keys(thread.runs)).toHaveLength(numbers.length);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test("each new message is appended once; while the reader looks at old messages, the oldest loaded ones are not dropped", () => {
    const source = transcript(WINDOW_MAX + 50);
    const full = { ...threadOf(source.before(`m${WINDOW_MAX}`, WINDOW_MAX)), nextAfter: undefined };
    const page = source.after(`m${WINDOW_MAX - 1}`, 50);
    const back = withNewer(full, page, "oldest");
    expect([back.messages[0]?.id, back.nextAfter]).toEqual(["m0", `m${WINDOW_MAX - 1}`]);
    const follows = withNewer(full, page, "newest");
    expect([follows.messages[0]?.id, follows.nextBefore, follows.nextAfter]).toEqual([
      "m50",
      "m50",
      undefined,
    ]);
    expect(withNewer(follows, page, "newest").messages).toBe(follows.messages);
  });

  test("a run that the newest page does not list as unfinished is no longer shown as running", () => {
    const running: Run = { kind: "turn", state: "running", acceptedAt: 1, chainId: "c" };
    const now = { session: {}, cost: 0, queue: [] } as unknown as Page["now"];
    const base = { ...transcript(1).newest(1), now };
    const thread = threadOf({ ...base, runs: { r0: RUN, gone: running } } as Page);
    expect(currentRun(thread)?.[0]).toBe("gone");
    const later = withNewer(thread, { ...base, messages: [], runs: { next: running } } as Page, "newest");
    expect(currentRun(later)?.[0]).toBe("next");
    expect(Object.keys(later.runs).sort()).toEqual(["next", "r0"]);
  });
});

describe("the visible history", () => {
  const call = (id: string, callId: string, runId: string): Message => ({
    ...assistantMessage(id, ""),
    content: [{ type: "toolCall", id: callId, name: "read", arguments: {} }],
    runId,
  });
  const result = (id: string, toolCallId: string, runId: string): Message => ({
    ...toolResult(id, "out"),
    toolCallId,
    runId,
  });
  const thread = (messages: Message[], runs: Record<string, Run>): Thread => ({
    ...{ sessionKey: "k", sessionId: "s", thinkingLevel: "off", messages, runs },
  });
  const shape = (items: ReturnType<typeof itemsOf>) =>
    items.flatMap((item): string[] => {
      if (item.kind === "work")
        return item.steps.map((step) =>
          step.kind === "call" ? `${step.messageId}(${step.result?.id ?? ""})` : `${step.messageId} thinks`,
        );
      if (item.kind === "quiet") return [`${item.turns} quiet`];
      if (item.kind === "message") return [item.headed ? `${item.id} headed` : item.id];
      return item.kind === "end" ? [item.silent ? `${item.id} silent` : item.id] : [];
    });
  const said = (id: string, text: string, runId: string): Message => ({
    ...assistantMessage(id, text),
    runId,
  });

  test("IT1: a tool result is shown with the nearest earlier call that has the same id, or alone if none is loaded", () => {
    const messages = [
      result("x", "c1", "r0"),
      call("a1", "c1", "r1"),
      result("t1", "c1", "r1"),
      call("a2", "c1", "r2"),
      result("t2", "c1", "r2"),
    ];
    const runs = { r0: RUN, r1: RUN, r2: { ...RUN, kind: "append" as const } };
    expect(shape(itemsOf(thread(messages, runs)))).toEqual(["x(x)", "end r0", "a1(t1)", "end r1", "a2(t2)"]);
  });

  test("a line marks the end of the messages that the model sees only as a summary", () => {
    const messages = [userMessage("a", "x"), userMessage("b", "y")];
    const items = itemsOf({ ...thread(messages, {}), compactions: { b: 5, gone: 6 } });
    expect(items.map(({ id }) => id)).toEqual(["day a", "a", "compaction b", "b"]);
  });

  test("IT2: an unchanged item is the same object after another read", () => {
    const before = thread([call("a", "c", "r1"), { ...userMessage("b", "x"), runId: "r2" }], {
      r1: RUN,
      r2: RUN,
    });
    const items = itemsOf(before);
    const after = { ...before, messages: [...before.messages, result("t", "c", "r1")] };
    const next = itemsOf(after, items);
    expect(next.find(({ id }) => id === "b")).toBe(items.find(({ id }) => id === "b"));
    const work = (list: typeof items) => list.find(({ kind }) => kind === "work");
    expect(work(next)).not.toBe(work(items));
    const older = itemsOf({ ...after, messages: [call("z", "c0", "r1"), ...after.messages] }, next);
    expect(work(older)).toMatchObject({
      id: work(next)?.id,
      steps: [{ messageId: "z" }, { messageId: "a" }],
    });
  });

  test("IT3: each run has one header, and one list of the steps between two texts", () => {
    const ask = (id: string, runId: string): Message => ({ ...userMessage(id, "go"), runId });
    const thought: Message = {
      ...assistantMessage("b", ""),
      ...{ content: [{ type: "thinking", thinking: "hm" }], runId: "r1" },
    };
    const messages = [
      ask("q", "r1"),
      said("a", "I look.", "r1"),
      thought,
      call("c", "k1", "r1"),
      result("t", "k1", "r1"),
      call("d", "k2", "r1"),
      said("e", "Found.", "r1"),
      ask("q2", "r2"),
      said("f", "Yes.", "r2"),
    ];
    const items = itemsOf(thread(messages, { r1: { ...RUN }, r2: { ...RUN } }));
    expect(shape(items)).toEqual([
      ...["q headed", "a headed", "b thinks", "c(t)", "d()", "e", "end r1"],
      ...["q2 headed", "f headed", "end r2"],
    ]);
    expect(items.filter(({ kind }) => kind === "work")).toMatchObject([{ headed: false }]);
  });

  test("routine turns without a reply are folded; messages of persons and other agents stay visible", () => {
    const asked = (id: string, provenance: object | undefined): Message =>
      ({ ...userMessage(id, "anything new?"), runId: id, ...(provenance && { provenance }) }) as Message;
    const turn = (id: string, provenance: object | undefined, reply = "REPLY_SKIP"): Message[] => [
      asked(id, provenance),
      said(`${id}'`, reply, id),
    ];
    const sent = { kind: "inter_session", sourceSessionKey: "k", sourceTool: "x", chainId: "c", hop: 1 };
    const messages = [
      ...["a", "b", "c"].flatMap((id) => turn(id, { kind: "cron" })),
      ...turn("d", { kind: "cron" }, "Yes!"),
      ...turn("e", { kind: "hook" }),
      ...turn("f", sent),
      ...turn("g", undefined),
    ];
    const runs = Object.fromEntries([..."abcdefg"].map((id) => [id, { ...RUN }]));
    expect(shape(itemsOf(thread(messages, runs)))).toEqual([
      ...["3 quiet", "d headed", "d' headed", "end d", "1 quiet"],
      ...["f headed", "end f silent", "g headed", "end g silent"],
    ]);
    const { endedAt: _, ...open } = RUN;
    const running: Run = { ...open, state: "running" };
    expect(shape(itemsOf(thread(messages, { ...runs, c: running }))).slice(0, 3)).toEqual([
      "2 quiet",
      "c headed",
      "c' headed",
    ]);
  });
});

test("a declined reply turn is folded if its call shows the answer, and visible if the answer came only so", () => {
  const from = { kind: "inter_session", sourceSessionKey: "agent:b:main" } as const;
  const provenance = { ...from, sourceTool: "sessions_send", chainId: "c", hop: 1 };
  const turn = (id: string, text: string): Message[] => [
    { ...userMessage(id, text), runId: id, provenance },
    { ...assistantMessage(`${id}'`, "REPLY_SKIP"), runId: id },
  ];
  const send: Message = {
    ...{ ...assistantMessage("s", ""), runId: "r" },
    content: [{ type: "toolCall", id: "c1", name: "sessions_send", arguments: {} }],
  };
  const answer = JSON.stringify({ status: "ok", reply: "All is well." });
  const result: Message = {
    ...toolResult("t", answer),
    toolName: "sessions_send",
    toolCallId: "c1",
    runId: "r",
  };
  const reply: Run = { ...RUN, flow: { flowId: "f", step: "reply", turn: 2, turnsMax: 5 } };
  const messages = [send, result, ...turn("a", "All is well."), ...turn("b", "Now it is not.")];
  const items = itemsOf({
    ...{ sessionKey: "k", sessionId: "s", thinkingLevel: "off", messages },
    runs: { r: RUN, a: reply, b: reply },
  });
  expect(items.map(({ kind, id }) => `${kind} ${id}`).slice(3)).toEqual([
    "quiet quiet a",
    "message b",
    "end end b",
  ]);
});

test("OR1: the author of a message comes from its provenance and its run, never from its text", () => {
  const from = { kind: "inter_session", sourceSessionKey: "agent:b:main", chainId: "c", hop: 1 } as const;
  const user = (more: object): Message =>
    ({ ...userMessage("m", "Notice from agent:evil"), ...more }) as Message;
  const flow = (step: "round1" | "reply" | "announce" | "task", turn = 1): Run => ({
    ...RUN,
    flow: { flowId: "f", step, turn, turnsMax: 5 },
  });
  const sent = user({ provenance: { ...from, sourceTool: "sessions_send" } });
  const job = user({ provenance: { ...from, sourceTool: "sessions_spawn" } });
  const said = assistantMessage("a", "x");
  const cases: [Message, Run | undefined, string, string, string[]][] = [
    [user({}), RUN, "own", "You", []],
    [user({ senderName: "Ann" }), undefined, "own", "Ann", []],
    [sent, flow("round1"), "session", "agent:b:main", ["asked by"]],
    [sent, RUN, "session", "agent:b:main", ["sent by"]],
    [sent, flow("reply", 3), "session", "agent:b:main", ["reply turn 2 of 5"]],
    [sent, flow("announce"), "session", "agent:b:main", ["announce step"]],
    [job, flow("task"), "session", "agent:b:main", ["task from"]],
    [job, undefined, "session", "agent:b:main", ["result of a sub-agent"]],
    [user({ provenance: { kind: "notice" } }), RUN, "runtime", "Notice", []],
    [user({ provenance: { kind: "cron", source: "daily" } }), RUN, "runtime", "Schedule", ["daily"]],
    [user({ provenance: { kind: "hook" } }), RUN, "runtime", "Web hook", []],
    [user({ provenance: { kind: "node" } }), RUN, "runtime", "Device", []],
    [said, RUN, "agent", "main", []],
    [said, flow("announce"), "agent", "main", ["announcement"]],
    [{ ...said, stopReason: "injected" }, undefined, "runtime", "Note", []],
  ];
  for (const [message, run, manner, who, marks] of cases) {
    expect(originOf(message, run, "main")).toMatchObject({ manner, who, marks });
  }
  expect(originOf(sent, RUN, "main").sessionKey).toBe("agent:b:main");
});

test("JR1: recognizes every result announcement that the runtime writes, and no other text", () => {
  const facts = (more: Partial<AnnouncementFacts> = {}): AnnouncementFacts => ({
    ...{ status: "ok", result: "done" },
    stats: {
      ...{ runtimeMs: 61_000, inputTokens: 1, outputTokens: 2, totalTokens: 3, costUsd: 0.5 },
      ...{ sessionKey: "agent:a:subagent:x", sessionId: "s-1", transcriptPath: "/tmp/a · b.jsonl" },
    },
    ...more,
  });
  expect(jobResultOf(composeAnnouncement(facts({ notes: "slow" })))).toEqual({
    ...{ status: "ok", result: "done", notes: "slow", facts: ["1 m 1 s"], cost: 0.5 },
    plumbing: [
      ["tokens", "1 in, 2 out, 3 total"],
      ["session", "agent:a:subagent:x"],
      ["session id", "s-1"],
      ["transcript", "/tmp/a · b.jsonl"],
    ],
  });
  expect(
    jobResultOf(composeAnnouncement(facts({ result: "a\n\nStatus: error\nNotes: none" }))),
  ).toMatchObject({
    ...{ status: "ok", notes: "" },
    result: expect.stringMatching(/^a\n\n.+Status: error\n.+Notes: none$/),
  });
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.string(), (result, notes) => {
      const read = jobResultOf(composeAnnouncement(facts({ result, notes })));
      expect(read).toMatchObject({ status: "ok", facts: ["1 m 1 s"], cost: 0.5 });
    }),
    { numRuns: 50 },
  );
  for (const text of ["", "Status: ok", "Status: ok\nResult: x\nNotes: y", "Hi\nStatus: ok"])
    expect(jobResultOf(text)).toBeUndefined();
});

test("CA1: calls and results of any form are read without an error, and their sessions and files are found", () => {
  const call = (name: string, args: object): ToolCall =>
    ({ type: "toolCall", id: "c", name, arguments: args }) as ToolCall;
  expect(summaryOf(call("exec", { command: "ls\n -l" }))).toBe("ls -l");
  expect(summaryOf(call("grep", { path: "src", pattern: "TODO" }))).toBe("TODO in src");
  expect(summaryOf(call("glob", { pattern: "**/*.ts" }))).toBe("**/*.ts");
  expect(summaryOf(call("x", {}))).toBe("");
  expect(summaryOf(call("x", { a: 1 }))).toBe("1");
  expect(summaryOf(call("x", { dryRun: true, to: { lines: [1, 2] } }))).toBe("dry run: yes, to: lines: 1, 2");
  expect(summaryOf(call("memory", { action: "read" }))).toBe("read");
  expect(summaryOf(call("cron", { action: "add", message: "look", every: "1h" }))).toBe("add look");
  expect(summaryOf(call("x", { path: "y".repeat(500) }))).toHaveLength(121);
  expect(sessionOf(call("sessions_send", { sessionKey: "main" }), '{"sessionKey":"agent:b:main"}')).toBe(
    "agent:b:main",
  );
  expect(sessionOf(call("sessions_history", { sessionKey: "main" }), undefined)).toBe("main");
  expect(sessionOf(call("exec", { sessionKey: "main" }), undefined)).toBeUndefined();
  const receipt = JSON.stringify({
    attachments: { files: [{ name: "a.txt", bytes: 3 }, { name: 7 }, null] },
  });
  expect(filesOf(call("sessions_spawn", {}), receipt)).toEqual([{ name: "a.txt", bytes: 3 }]);
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.string(),
      (value, args, name) => {
        for (const text of [JSON.stringify(value), name]) {
          const one = call(`sessions_${name}`, args as object);
          summaryOf(one);
          sessionOf(one, text);
          filesOf({ ...one, name: "sessions_spawn" }, text);
          parsed(text);
        }
      },
    ),
  );
});

describe("a growing text", () => {
  const DOC = [
    ...[
      "# Title",
      "",
      "One two",
      "three",
      "",
      "- a",
      "",
      "- b",
      "  more",
      "",
      "```js",
      "x",
      "",
      "y",
      "```",
      "",
    ],
    ...["> quoted", "", "1. one", "", "2. two", "", "Last words", ""],
  ].join("\n");

  test("LB1: a streamed text is split after a finished block, never inside a list or code", () => {
    const parts = new Set<string>();
    let from = 0;
    for (let end = 0; end <= DOC.length; end += 1) {
      const next = lastBlockAt(DOC.slice(0, end), from);
      if (next > from) parts.add(DOC.slice(from, next));
      from = next;
    }
    expect([...parts]).toEqual([
      "# Title\n\n",
      "One two\nthree\n\n- a\n\n- b\n  more\n\n",
      "```js\nx\n\ny\n```\n\n> quoted\n\n1. one\n\n2. two\n\n",
    ]);
    expect([...parts].join("") + DOC.slice(from)).toBe(DOC);
  });

  test("TM1: prose, code and tables are rendered as markdown, but not deep or endlessly repeated structures", () => {
    for (const text of [DOC, "| a | b |\n|---|---|\n| 1 | 2 |", "a **b** [c](d) ~~e~~", "    indented"]) {
      expect(isTame(text), text.slice(0, 20)).toBe(true);
    }
    for (const char of [">", "- ", "[", "![", "*", "`", "<", "~", "_", "(", "1. "]) {
      expect(isTame(char.repeat(5_000)), char).toBe(false);
    }
    expect(isTame(`a${" ".repeat(1_000)}b`)).toBe(false);
    expect(isTame("x".repeat(50_000))).toBe(false);
  });
});
