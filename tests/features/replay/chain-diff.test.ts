// Pairs of steps of two chains: order, missing steps, ids, tokens and times.

import { expect, test } from "vitest";
import type { AssistantMessage, Entry } from "../../../src/core/shapes/message.ts";
import { ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import type { ChainRecord } from "../../../src/core/shapes/record/chain.ts";
import type { Run } from "../../../src/core/shapes/run.ts";
import { diffChains } from "../../../src/features/replay/chain-diff.ts";

const ID = "01a21055-5d7a-7c49-8e3f-51d8036d0f5";
const usage = { ...ZERO_USAGE, totalTokens: 10, cost: { ...ZERO_USAGE.cost, total: 0.5 } };

function runOf(runId: string, sessionKey: string, text: string): Run {
  return {
    ...{ runId, sessionKey, sessionId: runId, agentId: "main", laneSeq: 1, kind: "turn", state: "ok" },
    ...{ input: { text }, chainId: "chain", hop: 0, attempt: 1, crashes: 0, crashesInRow: 0 },
    ...{ acceptedAt: 1_000, startedAt: 1_100, endedAt: 3_000, timeoutMs: 0, usage },
  };
}

function answer(id: string, text: string, ...calls: string[]): AssistantMessage {
  const blocks = calls.map((name) => ({ type: "toolCall" as const, id: name, name, arguments: { at: 1 } }));
  return {
    ...{
      id,
      role: "assistant",
      timestamp: 0,
      api: "x",
      provider: "x",
      model: "x",
      usage,
      stopReason: "stop",
    },
    content: [{ type: "text", text }, ...blocks],
  };
}

const result = (id: string, text: string): Entry => ({
  ...{ id, role: "toolResult", toolCallId: "x", toolName: "x", isError: false, timestamp: 0 },
  content: [{ type: "text", text }],
});

function chainOf(chainId: string, runs: Run[], entries: [string, number, Entry][]): ChainRecord {
  const none = { sessions: [], flows: [], waits: [], refusals: [], deliveries: [], revisions: [] };
  const rows = entries.map(([runId, at, entry]) => ({ sessionKey: "s", runId, at, entry }));
  return { program: "test", chainId, runs, entries: rows, ...none };
}

test("steps with equal names are paired in order, and ids do not count", () => {
  const a = chainOf(
    "a",
    [runOf("r1", `agent:main:subagent:${ID}1`, "hello")],
    [
      ["r1", 1_600, answer("m1", `see ${ID}2`, "read", "grep")],
      ["r1", 1_700, result("m1:1", "found")],
      ["r1", 1_900, result("m1:0", "contents")],
      ["r1", 2_000, answer("m2", "done")],
    ],
  );
  const b = chainOf(
    "b",
    [runOf("r2", `agent:main:subagent:${ID}3`, "hello"), runOf("r3", "agent:writer:main", "write")],
    [
      ["r2", 1_200, answer("m3", `see ${ID}4`, "grep")],
      ["r2", 1_250, result("m3:0", "nothing")],
    ],
  );
  const diff = diffChains(a, b);
  const shown = diff.steps.map(({ session, step, a: left, b: right, same }) => {
    const sides = (left === undefined ? "" : "a") + (right === undefined ? "" : "b");
    return [session, step, sides, same].join(" ");
  });
  expect(shown).toEqual([
    "agent:main:subagent:… message ab true",
    "agent:main:subagent:… answer ab true",
    "agent:main:subagent:… call read a false",
    "agent:main:subagent:… call grep ab false",
    "agent:main:subagent:… answer a false",
    "agent:main:subagent:… end ab true",
    "agent:writer:main message b false",
    "agent:writer:main end b false",
  ]);
  expect(diff.steps[1]).toMatchObject({
    a: { runId: "r1", tokens: 10, cost: 0.5, ms: 500 },
    b: { runId: "r2", ms: 100 },
  });
  expect(diff.steps[2]?.a).toMatchObject({ text: '{"at":1} -> contents', ms: 300 });
  expect(diff).toMatchObject({
    a: { chainId: "a", runs: 1, steps: 6, tokens: 10, cost: 0.5, ms: 2_000 },
    b: { chainId: "b", runs: 2, steps: 6, tokens: 20, cost: 1 },
    differences: 5,
  });
});
