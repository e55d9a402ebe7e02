// One agent turn with a scripted model: tool calls, limits, aborts and compaction.

import { expect, test } from "vitest";
import { type ModelRequest, UNREADABLE_ARGUMENTS } from "../../src/agent/model/model.ts";
import { optional } from "../../src/core/optional.ts";
import { type Entry, isCompaction, type Message, textOf } from "../../src/core/shapes/message.ts";
import { ANSWER_LIMITS } from "../../src/core/shapes/settings/settings.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { until } from "../kit/until.ts";
import { Crash, OFFLINE, smallModel, startTurn, toolSpec, userSays } from "./turn-kit.ts";

function rolesOf(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (isCompaction(entry) ? "compaction" : entry.role));
}

function resultTexts(entries: readonly Entry[]): string[] {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  return messages.filter((message) => message.role === "toolResult").map(textOf);
}

/** Returns a model that makes these tool calls once and then answers "done". */
function once(
  toolCalls: { name: string; id?: string; arguments?: Record<string, unknown> }[],
  stopReason?: string,
) {
  const stop = stopReason === undefined ? {} : { stopReason };
  return scriptedModel((_, call) => (call === 0 ? { toolCalls, ...stop } : "done"));
}

const never = new Promise<never>(() => {});

test("a text answer is appended, streamed and returned with its usage", async () => {
  const turn = startTurn({ port: scriptedModel(() => "hello") });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "hello", contextTokens: 15 });
  expect(turn.texts).toEqual(["hello"]);
  expect(rolesOf(turn.entries)).toEqual(["user", "assistant"]);
});

test("L1: calls, results and the final text are appended in order, with stable call ids", async () => {
  const port = scriptedModel((_, call) =>
    call < 2 ? { text: `step ${call}`, toolCalls: [{ name: "t" }] } : "end",
  );
  const ids: string[] = [];
  const turn = startTurn({
    port,
    tools: [toolSpec("t")],
    callTool: async (request) => {
      ids.push(request.callId);
      return { text: "ok", isError: false };
    },
  });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "end", usage: { totalTokens: 45 } });
  const roles = ["user", "assistant", "toolResult", "assistant", "toolResult", "assistant"];
  expect(rolesOf(turn.entries)).toEqual(roles);
  expect(ids).toEqual([`run:${turn.entries[1]?.id}:0`, `run:${turn.entries[3]?.id}:0`]);
  expect(turn.events.map((event) => [event.phase, event.callId])).toEqual([
    ["start", ids[0]],
    ["end", ids[0]],
    ["start", ids[1]],
    ["end", ids[1]],
  ]);
});

test("K2: tools marked as parallel run at the same time, and any other tool runs alone", async () => {
  const log: string[] = [];
  const gates = new Map<string, () => void>();
  const turn = startTurn({
    port: once(["p", "p", "s", "p"].map((name) => ({ name }))),
    tools: [toolSpec("p", { parallel: true }), toolSpec("s")],
    callTool: async (request) => {
      const at = request.callId.split(":").at(-1) ?? "";
      log.push(`begin ${at}`);
      await new Promise<void>((resolve) => gates.set(at, resolve));
      log.push(`end ${at}`);
      return { text: at, isError: false };
    },
  });
  const open = async (at: string): Promise<void> => {
    await until(() => gates.has(at));
    gates.get(at)?.();
  };
  await open("1");
  await open("0");
  await open("2");
  await open("3");
  expect(await turn.end).toMatchObject({ kind: "ok" });
  expect(log).toEqual(["begin 0", "begin 1", "end 1", "end 0", "begin 2", "end 2", "begin 3", "end 3"]);
  expect(resultTexts(turn.entries)).toEqual(["1", "0", "2", "3"]);
});

test.each([
  [
    "an unknown tool",
    once([{ name: "nope" }]),
    { code: "unknown_tool", error: 'not run: there is no tool "nope"', hint: "You have: t." },
  ],
  [
    "unreadable arguments",
    once([{ name: "t", arguments: { [UNREADABLE_ARGUMENTS]: "{x" } }]),
    { code: "invalid_argument", error: expect.stringContaining("can't be read as one: {x") },
  ],
  [
    "a message cut off by the output limit",
    once([{ name: "t" }], "length"),
    { error: expect.stringContaining("output limit") },
  ],
  ["a nameless call", once([{ name: "" }]), { code: "unknown_tool" }],
])("K4: %s gets an error as its result, and no tool runs", async (_, port, expected) => {
  let ran = 0;
  const callTool = async () => {
    ran += 1;
    return { text: "ran", isError: false };
  };
  const turn = startTurn({ port, tools: [toolSpec("t")], callTool });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "done" });
  expect(JSON.parse(resultTexts(turn.entries)[0] ?? "")).toMatchObject({ status: "error", ...expected });
  expect(ran).toBe(0);
});

test("if tool calls share an id or have none, they get unique ids", async () => {
  const calls = [
    { name: "t", id: "same" },
    { name: "t", id: "same" },
    { name: "t", id: "" },
  ];
  const turn = startTurn({ port: once(calls), tools: [toolSpec("t")] });
  await turn.end;
  const ids = turn.entries.flatMap((entry) => ("toolCallId" in entry ? [entry.toolCallId] : []));
  expect(ids).toEqual(["same", "same_1", "call_2"]);
});

test("a turn without any text is an error, and so is an answer that the output limit cuts off before its text", async () => {
  const empty = await startTurn({ port: scriptedModel(() => ({})) }).end;
  expect(empty).toMatchObject({ kind: "error", error: expect.stringContaining("answered without text") });
  const cutOff = await startTurn({ port: scriptedModel(() => ({ stopReason: "length" })) }).end;
  expect(cutOff).toMatchObject({ kind: "error", code: "run_failed" });
  const strange = startTurn({ port: scriptedModel(() => ({ text: "hm", stopReason: "toolUse" })) });
  expect(await strange.end).toMatchObject({ kind: "ok", text: "hm" });
});

test("a tool result that exceeds its limit is cut, with a note to the model", async () => {
  const port = once([{ name: "t" }]);
  const callTool = async () => ({
    text: "é".repeat(3_000),
    isError: false,
    details: { all: "x".repeat(5_000) },
  });
  const limits = { ...ANSWER_LIMITS, maxToolResultBytes: 2_001 };
  const turn = startTurn({ port, tools: [toolSpec("t")], callTool, more: { limits } });
  expect(await turn.end).toMatchObject({ kind: "ok" });
  const result = turn.entries.find((entry) => "role" in entry && entry.role === "toolResult");
  const cut = "[cut: the result has 6000 bytes; agents.defaults.maxToolResultBytes is 2001]";
  expect(result).toMatchObject({
    content: [{ text: `${"é".repeat(1_000)}\n${cut}` }],
    details: { cut: expect.stringContaining("bytes are left out") },
  });
});

test("maxModelCalls ends an endless turn, and the error names the setting", async () => {
  const port = scriptedModel(() => ({ text: "more", toolCalls: [{ name: "t" }] }));
  const end = await startTurn({ port, tools: [toolSpec("t")], more: { maxModelCalls: 3 } }).end;
  expect(end).toMatchObject({
    kind: "error",
    error: expect.stringMatching(/^stopped after 3 model calls .*agents\.defaults\.maxModelCalls.* is 3\)/),
    text: "more",
  });
  expect(port.requests).toHaveLength(3);
});

test("after a failure that is not retried, fallbackModels are tried in order; the message names the model that answered", async () => {
  const port = scriptedModel((request) =>
    request.model.settings.id === "third"
      ? "here"
      : { error: `no ${request.model.settings.id}`, code: "model_unauthorized" },
  );
  const named = (id: string) => ({ ...OFFLINE, ref: `p/${id}`, settings: { ...OFFLINE.settings, id } });
  const more = { model: named("first"), fallbackModels: [named("second"), named("third"), named("last")] };
  const turn = startTurn({ port, more });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "here" });
  expect(port.requests.map(({ model }) => model.settings.id)).toEqual(["first", "second", "third"]);
  expect(turn.entries.at(-1)).toMatchObject({ model: "third" });
  const failing = startTurn({ port, more: { ...more, fallbackModels: [named("second")] } });
  expect(await failing.end).toMatchObject({ kind: "error", error: "no first; then no second" });
});

test("L4: an abort during the model call or a tool ends the turn, and nothing more is appended", async () => {
  const asking = startTurn({ port: scriptedModel(() => never) });
  asking.abort.abort();
  expect(await asking.end).toMatchObject({ kind: "aborted" });
  expect(asking.entries).toHaveLength(1);

  let begun = (): void => {};
  const running = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const working = startTurn({
    port: once([{ name: "t" }]),
    tools: [toolSpec("t")],
    callTool: () => {
      begun();
      return never;
    },
  });
  await running;
  working.abort.abort();
  expect(await working.end).toMatchObject({ kind: "aborted" });
  expect(rolesOf(working.entries)).toEqual(["user", "assistant"]);
});

test("L4: after an abort nothing is appended, whenever the abort comes between call and result", async () => {
  for (let ticks = 0; ticks < 20; ticks += 1) {
    const abort = new AbortController();
    const late: Entry[] = [];
    const after = (left: number): void => {
      if (left === 0) abort.abort();
      else queueMicrotask(() => after(left - 1));
    };
    const turn = startTurn({
      port: once([{ name: "t" }]),
      tools: [toolSpec("t")],
      callTool: async () => {
        after(ticks);
        return { text: "ran", isError: false };
      },
      more: {
        signal: abort.signal,
        append: async (entry) => {
          if (abort.signal.aborted) late.push(entry);
          return entry;
        },
      },
    });
    await turn.end;
    expect(late).toEqual([]);
  }
});

test("if append throws, the turn throws and stops the other running tools", async () => {
  const signals: AbortSignal[] = [];
  const turn = startTurn({
    port: once([{ name: "quick" }, { name: "slow" }]),
    tools: [toolSpec("quick", { parallel: true }), toolSpec("slow", { parallel: true })],
    callTool: (request, signal) => {
      signals.push(signal);
      return request.name === "quick" ? Promise.resolve({ text: "", isError: false }) : never;
    },
    appendsMax: 1,
  });
  await expect(turn.end).rejects.toThrow();
  expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
});

const PAIR = [toolSpec("fails", { parallel: true }), toolSpec("works", { parallel: true })];

test("K1: if one of two parallel tools throws, the turn throws only after the other tool's result is stored", async () => {
  const storing = Promise.withResolvers<void>();
  const store = Promise.withResolvers<void>();
  const order: string[] = [];
  const turn = startTurn({
    port: once([{ name: "works" }, { name: "fails" }]),
    tools: PAIR,
    callTool: async ({ name }) => {
      if (name === "works") return { text: "done", isError: false };
      await storing.promise;
      throw new Error("the store refused");
    },
    more: {
      append: async (entry) => {
        if (isCompaction(entry) || entry.role !== "toolResult") return entry;
        storing.resolve();
        await store.promise;
        order.push("stored");
        return entry;
      },
    },
  });
  const left = turn.end.catch(() => order.push("left"));
  await storing.promise;
  for (let step = 0; step < 20; step += 1) await Promise.resolve();
  store.resolve();
  await left;
  expect(order).toEqual(["stored", "left"]);
});

test("K1: the id of a result is derived from its call; if an earlier attempt has stored a result, that one is used", async () => {
  const ids: string[] = [];
  const port = once([{ name: "works", id: "call_1" }]);
  const turn = startTurn({
    port,
    tools: PAIR,
    more: {
      append: async (entry) => {
        if (isCompaction(entry) || entry.role !== "toolResult") return entry;
        ids.push(entry.id);
        return { ...entry, content: [{ type: "text", text: "of an earlier attempt" }] };
      },
    },
  });
  expect(await turn.end).toMatchObject({ kind: "ok" });
  const asked = port.requests[1]?.entries.filter((entry): entry is Message => !isCompaction(entry)) ?? [];
  const call = asked.find((message) => message.role === "assistant");
  expect(ids).toEqual([`${call?.id}:0`]);
  expect(resultTexts(asked)).toEqual(["of an earlier attempt"]);
  expect(turn.events.at(-1)).toMatchObject({ phase: "end", result: "of an earlier attempt" });
});

/** Returns ten exchanges and one further message. */
function longTalk(): Entry[] {
  const old = Array.from({ length: 10 }, (_, at) =>
    userSays(`old question ${at} ${"x".repeat(400)}`, `old${at}`),
  );
  return [...old, userSays("the new question")];
}

test("after a context overflow the transcript is compacted once, and the model call is repeated", async () => {
  const port = scriptedModel(
    (_, call) => [{ overflow: "too long" }, "the summary", "the answer"][call] ?? "",
  );
  const turn = startTurn({ port, entries: longTalk() });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "the answer", usage: { totalTokens: 30 } });
  const compaction = turn.entries.find(isCompaction);
  expect(compaction).toMatchObject({ summary: "the summary" });
  expect(turn.entries.some((entry) => entry.id === compaction?.firstKeptId)).toBe(true);
  expect(port.requests[1]?.tools).toEqual([]);
});

test("an overflow after all compactions is an error that names the model and its context window", async () => {
  const isSummary = (request: ModelRequest) => request.system.startsWith("You condense");
  const port = scriptedModel((request) => (isSummary(request) ? "summary" : { overflow: "still too long" }));
  const turn = startTurn({ port, entries: longTalk(), more: { model: smallModel(50_000) } });
  const end = await turn.end;
  expect(end).toMatchObject({ kind: "error" });
  expect(end).toHaveProperty("error", expect.stringContaining("offline/rehearsal (50000 tokens)"));
  expect(port.requests.map(isSummary)).toEqual([false, true, false, true, false]);
  const kept = turn.entries.filter(isCompaction).map(({ firstKeptId }) => firstKeptId);
  expect(kept).toEqual([expect.stringMatching(/^old/), "input"]);
});

test("an overflow without older messages to summarize is an error at once", async () => {
  const port = scriptedModel(() => ({ overflow: "too long" }));
  const end = await startTurn({ port }).end;
  expect(end).toHaveProperty("error", expect.stringContaining("nothing older"));
  expect(port.requests).toHaveLength(1);
});

test("a turn that may say nothing is not asked again", async () => {
  const port = scriptedModel(() => "");
  const turn = startTurn({ port, more: { maySayNothing: true } });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "" });
  expect(port.requests).toHaveLength(1);
});

test("C3: a summary request that is too long is halved; if it stays too long, an excerpt is the summary", async () => {
  const port = scriptedModel((request) =>
    request.entries.some(isCompaction) ? "the answer" : { overflow: "too long" },
  );
  const turn = startTurn({ port, entries: longTalk() });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "the answer" });
  const [excerpt] = turn.entries.filter(isCompaction);
  expect(excerpt?.summary).toContain("The model wrote no summary.");
  expect(excerpt?.summary).toContain("old question 0");
  expect(excerpt?.summary.length).toBeLessThan(5_000);
  expect(port.requests.length).toBeLessThanOrEqual(8);
});

test("the transcript is compacted before the context window is full", async () => {
  const port = scriptedModel((request) => (request.tools.length === 0 ? "summary" : "end"));
  const more = { model: smallModel(1_000) };
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")], more });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "end" });
  expect(rolesOf(turn.entries).slice(-2)).toEqual(["compaction", "assistant"]);
});

test("a high token count from the provider triggers an early compaction, but only one", async () => {
  const totals = [9_000, 5, 100];
  const port = scriptedModel((request, call) => ({
    text: "x",
    toolCalls: request.tools.length > 0 && call === 0 ? [{ name: "t" }] : [],
    totalTokens: totals[call] ?? 0,
  }));
  const more = { model: smallModel(10_000) };
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")], more });
  await turn.end;
  const roles = rolesOf(turn.entries).slice(-4);
  expect(roles).toEqual(["assistant", "toolResult", "compaction", "assistant"]);
});

test("a turn that only compacts stores the summary and says so; after a crash it does only what is missing", async () => {
  const entries = longTalk();
  for (const [appendsMax, requests] of [
    [0, 1],
    [1, 1],
    [undefined, 0],
    [0, 0],
  ] as const) {
    const port = scriptedModel(() => "summary");
    const turn = startTurn({ port, entries, more: { compactOnly: true }, ...optional({ appendsMax }) });
    const end = await turn.end.catch((error: unknown) => error);
    if (requests === 1) expect(end).toBeInstanceOf(Crash);
    else expect(end).toMatchObject({ kind: "ok", text: expect.stringContaining("are summarised") });
    expect(port.requests).toHaveLength(requests);
  }
  expect(rolesOf(entries).slice(-2)).toEqual(["compaction", "assistant"]);
  expect(entries.filter(isCompaction)).toMatchObject([{ summary: "summary" }]);
});

test("a turn that only compacts says if there is nothing older, and fails if there is no summary", async () => {
  const short = startTurn({ port: scriptedModel(() => "x"), more: { compactOnly: true } });
  expect(await short.end).toMatchObject({ kind: "ok", text: "There is nothing older to summarise." });
  const port = scriptedModel(() => ({ overflow: "too long" }));
  const failing = startTurn({ port, entries: longTalk(), more: { compactOnly: true } });
  expect(await failing.end).toHaveProperty(
    "error",
    expect.stringContaining("summarising older messages failed"),
  );
});

test("after an answer of the model, a new overflow may cause a new compaction", async () => {
  const answers = [
    { overflow: "too long" },
    "summary one",
    { toolCalls: [{ name: "t" }] },
    { overflow: "too long again" },
    "summary two",
    "end",
  ];
  const port = scriptedModel((_, call) => answers[call] ?? "");
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")] });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "end" });
  expect(turn.entries.filter(isCompaction).map((entry) => entry.summary)).toEqual([
    "summary one",
    "summary two",
  ]);
});

test.each([
  ["cut short", { text: "Sum", stopReason: "length", totalTokens: 7 }],
  ["no text but a tool call", { toolCalls: [{ name: "t" }], totalTokens: 7 }],
  ["a failure", { error: "400 no summaries here" }],
])("C2: if the summary within the conversation is %s, it is asked for as a text", async (_, inPlace) => {
  const call = { toolCalls: [{ name: "t" }], totalTokens: 86_000 };
  const answers = [call, inPlace, { text: "the summary", totalTokens: 5 }, { text: "end", totalTokens: 1 }];
  const port = scriptedModel((_request, at) => answers[at] ?? "");
  const more = { model: smallModel(100_000) };
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")], more });
  const spent = "totalTokens" in inPlace ? inPlace.totalTokens : 0;
  expect(await turn.end).toMatchObject({ kind: "ok", usage: { totalTokens: 86_006 + spent } });
  expect(turn.entries.filter(isCompaction).map(({ summary }) => summary)).toEqual(["the summary"]);
  expect(port.requests.map(({ tools }) => tools.length)).toEqual([1, 1, 0, 1]);
});

test("C2: without room for a summary after the whole conversation, it is asked for as a text at once", async () => {
  const call = { toolCalls: [{ name: "t" }], totalTokens: 95_000 };
  const port = scriptedModel((_request, at) => [call, "the summary", "end"][at] ?? "");
  const more = { model: smallModel(100_000) };
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")], more });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "end" });
  expect(port.requests.map(({ tools }) => tools.length)).toEqual([1, 0, 1]);
});

test("the tokens of a summary that failed are counted", async () => {
  const call = { toolCalls: [{ name: "t" }], totalTokens: 86_000 };
  const cut = { text: "Sum", stopReason: "length", totalTokens: 7 };
  const answers = [call, cut, { error: "503 later" }, { text: "end", totalTokens: 1 }];
  const port = scriptedModel((_request, at) => answers[at] ?? "");
  const more = { model: smallModel(100_000) };
  const turn = startTurn({ port, entries: longTalk(), tools: [toolSpec("t")], more });
  expect(await turn.end).toMatchObject({ kind: "ok", text: "end", usage: { totalTokens: 86_008 } });
});
