// A turn that crashes between any two steps and resumes from its stored transcript.

import fc from "fast-check";
import { expect } from "vitest";
import { modelView } from "../../src/agent/loop/view.ts";
import type { ModelPort } from "../../src/agent/model/model.ts";
import {
  type Entry,
  isCompaction,
  type Message,
  textOf,
  toolCallsOf,
} from "../../src/core/shapes/message.ts";
import type { ToolSpec } from "../../src/core/shapes/tool.ts";
import { rounds, both as test } from "../kit/deep.ts";
import { scriptedModel } from "../kit/scripted-model.ts";
import { Crash, OFFLINE, startTurn, type TurnSetup, toolSpec, userSays } from "./turn-kit.ts";

const TOOLS: readonly ToolSpec[] = [
  toolSpec("once"),
  toolSpec("again", { idempotent: true }),
  toolSpec("side", { parallel: true }),
  toolSpec("sideAgain", { parallel: true, idempotent: true }),
];

/** The tool calls of each model step. After the last step the model answers "final". */
type Plan = readonly (readonly string[])[];

const plans: fc.Arbitrary<Plan> = fc.array(
  fc.array(fc.constantFrom("once", "again", "side", "sideAgain", "unknown"), { minLength: 1, maxLength: 4 }),
  { maxLength: 4 },
);

function messagesOf(entries: readonly Entry[]): Message[] {
  return entries.filter((entry): entry is Message => !isCompaction(entry));
}

/**
 * Returns a model that decides by the transcript only, so that a new process continues where the old one
 * stopped.
 */
function planned(plan: Plan): ModelPort {
  return scriptedModel((request) => {
    const step = messagesOf(request.entries).filter((message) => message.role === "assistant").length;
    const names = plan[step];
    return names === undefined ? "final" : { toolCalls: names.map((name) => ({ name })) };
  });
}

interface Ran {
  readonly counts: Map<string, number>;
  readonly setup: TurnSetup;
}

function counting(plan: Plan, entries: Entry[]): Ran {
  const counts = new Map<string, number>();
  const callTool: TurnSetup["callTool"] = async (request) => {
    counts.set(request.callId, (counts.get(request.callId) ?? 0) + 1);
    return { text: `ran ${request.name}`, isError: false };
  };
  return { counts, setup: { port: planned(plan), entries, tools: TOOLS, callTool } };
}

/** Checks that every tool call has exactly one result, in the transcript and in the model's input. */
function expectPaired(entries: readonly Entry[]): void {
  const messages = messagesOf(entries);
  const calls = messages.flatMap((message) => toolCallsOf(message).map((call) => call.id));
  const results = messages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []));
  expect(results.toSorted()).toEqual(calls.toSorted());
  const view = modelView(entries, OFFLINE);
  view.forEach((message, at) => {
    toolCallsOf(message).forEach((call, index) => {
      expect(view[at + 1 + index]).toMatchObject({ role: "toolResult", toolCallId: call.id });
    });
  });
}

test("L2: after a crash at any append the turn ends with the same result, and no finished tool call runs again", async () => {
  await fc.assert(
    fc.asyncProperty(plans, async (plan) => {
      const whole = counting(plan, [userSays("go")]);
      const unbroken = startTurn(whole.setup);
      expect(await unbroken.end).toMatchObject({ kind: "ok", text: "final" });
      const appends = unbroken.entries.length - 1;
      for (let crashAt = 0; crashAt <= appends; crashAt++) {
        const entries: Entry[] = [userSays("go")];
        const { counts, setup } = counting(plan, entries);
        const first = startTurn({ ...setup, appendsMax: crashAt });
        if (crashAt < appends) await expect(first.end).rejects.toBeInstanceOf(Crash);
        else await first.end;
        const second = startTurn(setup);
        expect(await second.end).toMatchObject({ kind: "ok", text: "final" });
        expect(entries).toHaveLength(unbroken.entries.length);
        expectPaired(entries);
        expectRunOnce(entries, counts);
      }
    }),
    { numRuns: rounds(15, 60) },
  );
});

function expectRunOnce(entries: readonly Entry[], counts: ReadonlyMap<string, number>): void {
  for (const message of messagesOf(entries)) {
    toolCallsOf(message).forEach((call, index) => {
      const spec = TOOLS.find((tool) => tool.name === call.name);
      const ran = counts.get(`run:${message.id}:${index}`) ?? 0;
      const result = messagesOf(entries).find(
        (one) => one.role === "toolResult" && one.toolCallId === call.id,
      );
      const text = result === undefined ? "" : textOf(result);
      if (spec === undefined) expect(ran).toBe(0);
      else if (spec.idempotent) expect(text).toBe(`ran ${call.name}`);
      else expect(ran).toBeLessThanOrEqual(1);
      if (spec !== undefined && !text.includes("outcome_unknown")) expect(ran).toBeGreaterThanOrEqual(1);
    });
  }
}

test("a finished turn returns at once, without a model call", async () => {
  const entries: Entry[] = [userSays("go")];
  await startTurn({ port: scriptedModel(() => "final"), entries }).end;
  const port = scriptedModel(() => "never");
  expect(await startTurn({ port, entries }).end).toMatchObject({
    kind: "ok",
    text: "final",
    contextTokens: 15,
  });
  expect(port.requests).toHaveLength(0);
  expect(entries).toHaveLength(2);
});

test("L3: if a failure is stored, the turn returns it again after a crash", async () => {
  const entries: Entry[] = [userSays("go")];
  const partial = {
    id: "a1",
    role: "assistant",
    content: [{ type: "text", text: "half" }],
    timestamp: 2,
    api: "x",
    provider: "x",
    model: "x",
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: zero() },
    stopReason: "error",
    errorMessage: "broke",
  } as const;
  entries.push(partial);
  const port = scriptedModel(() => "never");
  const end = await startTurn({ port, entries }).end;
  expect(end).toMatchObject({ kind: "error", error: "broke", text: "half" });
  entries[1] = { ...partial, stopReason: "aborted" };
  expect(await startTurn({ port, entries }).end).toMatchObject({ kind: "ok", text: "never" });
});

function zero() {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
}

test("K3: if a tool was removed, a call that had begun keeps an unknown outcome, and a new call is refused", async () => {
  const plan = [["again", "once", "again"]];
  const entries: Entry[] = [userSays("go")];
  const first = counting(plan, entries);
  await expect(startTurn({ ...first.setup, appendsMax: 1 }).end).rejects.toBeInstanceOf(Crash);
  const second = counting(plan, entries);
  await startTurn({ ...second.setup, tools: [], more: { everyTool: TOOLS } }).end;
  const texts = messagesOf(entries).flatMap((one) => (one.role === "toolResult" ? [textOf(one)] : []));
  expect(texts[0]).toBe("ran again");
  expect(texts.slice(1).map((text) => JSON.parse(text).code)).toEqual(["unknown_tool", "unknown_tool"]);
  expect([...second.counts.values()]).toEqual([1]);
});

test("K3: a tool call that may have begun is not repeated; a call that cannot have begun is executed", async () => {
  const entries: Entry[] = [userSays("go")];
  const { counts, setup } = counting([["once", "once"]], entries);
  await expect(startTurn({ ...setup, appendsMax: 1 }).end).rejects.toBeInstanceOf(Crash);
  expect([...counts.values()]).toEqual([1]);
  await startTurn(setup).end;
  const texts = messagesOf(entries)
    .filter((message) => message.role === "toolResult")
    .map(textOf);
  expect(texts[0]).toContain("outcome_unknown");
  expect(texts[1]).toBe("ran once");
  expect([...counts.values()]).toEqual([1, 1]);
});

test("a tool call keeps its id in each attempt, and the tool gets the number of the attempt", async () => {
  const entries: Entry[] = [userSays("go")];
  const seen: [string, number][] = [];
  const again = (attempt: number, appendsMax: number): TurnSetup => ({
    port: planned([["again", "sideAgain", "sideAgain"]]),
    entries,
    tools: TOOLS,
    appendsMax,
    more: { attempt },
    callTool: async ({ callId, attempt: told, name }) => {
      seen.push([callId, told]);
      return { text: `ran ${name}`, isError: false };
    },
  });
  await expect(startTurn(again(1, 1)).end).rejects.toBeInstanceOf(Crash);
  await expect(startTurn(again(2, 1)).end).rejects.toBeInstanceOf(Crash);
  await startTurn(again(3, 9)).end;
  const message = messagesOf(entries).find((one) => one.role === "assistant");
  const [first, second, third] = [0, 1, 2].map((index) => `run:${message?.id}:${index}`);
  expect(seen.filter(([id]) => id === first)).toEqual([
    [first, 1],
    [first, 2],
  ]);
  expect(seen.filter(([id]) => id === second).map(([, attempt]) => attempt)).toEqual([2, 3]);
  expect(seen.filter(([id]) => id === third).map(([, attempt]) => attempt)).toEqual([2, 3]);
});

test("L5, L2: messages that arrive during a turn are read between two steps, wherever the process crashes", async () => {
  const plan: Plan = [["again"], ["again"]];
  /** Appends the message once, after the first result and before the turn reads its transcript. */
  const setupOf = (entries: Entry[], appendsMax: number): TurnSetup => ({
    ...counting(plan, entries).setup,
    appendsMax,
    more: {
      maxModelCalls: 3,
      steered: async () => {
        const isDue = messagesOf(entries).at(-1)?.role === "toolResult" && entries.length === 3;
        if (!isDue) return undefined;
        const said = { ...userSays("and this", "later"), steered: true };
        entries.push(said);
        return said;
      },
    },
  });
  const whole: Entry[] = [userSays("go")];
  const end = await startTurn(setupOf(whole, 99)).end;
  const roles = ["user", "assistant", "toolResult", "user", "assistant", "toolResult", "assistant"];
  expect(messagesOf(whole).map(({ role }) => role)).toEqual(roles);
  for (let crashAt = 0; crashAt < 5; crashAt += 1) {
    const entries: Entry[] = [userSays("go")];
    await expect(startTurn(setupOf(entries, crashAt)).end).rejects.toBeInstanceOf(Crash);
    // The result counts all steps and tokens of the run, including those before the message.
    expect(await startTurn(setupOf(entries, 99)).end).toEqual(end);
    expect(messagesOf(entries).map(({ role }) => role)).toEqual(roles);
  }
});
