// Parent spans of runs, on a real store: tool calls, steps of flows, ends of runs, and equal times.

import { expect, test } from "vitest";
import { ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { FlowRef, Run } from "../../src/core/shapes/run.ts";
import { endRun, insertRun } from "../../src/store/queries/runs/runs.ts";
import type { Store } from "../../src/store/sql.ts";
import { parentSpanOf } from "../../src/telemetry/lineage.ts";
import { callSpanId, runSpanId, traceIdOf } from "../../src/telemetry/span.ts";
import { openStore, temporaryFolder } from "../kit/engine/engine.ts";

const A = "agent:main:main";
const B = "agent:research:main";

function runOf(runId: string, acceptedAt: number, more: Partial<Run> = {}): Run {
  return {
    ...{ runId, sessionKey: A, sessionId: "s", agentId: "main", laneSeq: acceptedAt, kind: "turn" },
    ...{
      state: "queued",
      input: { text: "x" },
      chainId: "c",
      hop: 0,
      attempt: 1,
      crashes: 0,
      crashesInRow: 0,
    },
    ...{ acceptedAt, timeoutMs: 0, usage: ZERO_USAGE },
    ...more,
  };
}

async function write(store: Store, run: Run, endedAt?: number): Promise<Run> {
  await store.transaction(async (tx) => {
    await insertRun(tx, run);
    if (endedAt === undefined) return;
    await endRun(tx, run.runId, { end: { state: "ok", endedAt }, usage: ZERO_USAGE });
  });
  return run;
}

const flow = (step: FlowRef["step"], turn: number): { flow: FlowRef } => ({
  flow: { flowId: "f", step, turn },
});
const from = (sourceSessionKey: string): Pick<Run, "input"> => {
  const provenance = {
    kind: "inter_session",
    sourceSessionKey,
    sourceTool: "x",
    chainId: "c",
    hop: 1,
  } as const;
  return { input: { text: "x", provenance } };
};

test("LN1: the parent span of a run is the tool call that started it, or the outside program's run that made the call", async () => {
  const store = await openStore(temporaryFolder());
  const call = runOf("r2", 2, { parentRunId: "r1", callId: "r1:m1:0" });
  expect(await parentSpanOf(store.db, call)).toBe(callSpanId("r1", "r1:m1:0"));
  const outside = runOf("r3", 3, { parentRunId: "r1", callId: "mcp:1234" });
  expect(await parentSpanOf(store.db, outside)).toBe(runSpanId("r1"));
  expect(await parentSpanOf(store.db, runOf("r4", 4))).toBeUndefined();
});

test("LN1: the parent span of a flow step is the step that ended before it, whatever else happened in the chain", async () => {
  const store = await openStore(temporaryFolder());
  await write(store, runOf("one", 1, { sessionKey: B, ...flow("round1", 1) }), 10);
  await write(store, runOf("noise", 5, { sessionKey: B }), 9);
  await write(store, runOf("elsewhere", 5, { sessionKey: B, chainId: "other", ...flow("round1", 1) }), 10);
  const two = await write(store, runOf("two", 10, { ...from(B), ...flow("reply", 2) }), 20);
  const three = await write(
    store,
    runOf("three", 20, { sessionKey: B, ...from(A), ...flow("reply", 3) }),
    30,
  );
  const said = await write(
    store,
    runOf("said", 30, { sessionKey: B, ...from(A), ...flow("announce", 3) }),
    40,
  );
  expect(await parentSpanOf(store.db, two)).toBe(runSpanId("one"));
  expect(await parentSpanOf(store.db, three)).toBe(runSpanId("two"));
  expect(await parentSpanOf(store.db, said)).toBe(runSpanId("three"));
});

test("LN1: if another session woke a run, the run's parent span is the last run of that session", async () => {
  const store = await openStore(temporaryFolder());
  await write(store, runOf("work", 1, { sessionKey: B, ...flow("task", 1) }), 10);
  await write(store, runOf("words", 10, { sessionKey: B, ...flow("announce", 1) }), 20);
  expect(await parentSpanOf(store.db, runOf("woken", 20, from(B)))).toBe(runSpanId("words"));
  expect(await parentSpanOf(store.db, runOf("alone", 20, from("agent:ghost:main")))).toBeUndefined();
});

test("LN2: if several steps have equal times, each one follows the step before it, so that they never form a cycle", async () => {
  const store = await openStore(temporaryFolder());
  const turns = [1, 2, 3, 4].map((turn) =>
    runOf(`turn-${turn}`, 7, {
      sessionKey: turn % 2 === 0 ? A : B,
      ...from(turn % 2 === 0 ? B : A),
      ...flow(turn === 1 ? "round1" : "reply", turn),
    }),
  );
  for (const run of turns) await write(store, run, 7);
  const parents = await Promise.all(turns.map((run) => parentSpanOf(store.db, run)));
  expect(parents).toEqual([undefined, ...["turn-1", "turn-2", "turn-3"].map(runSpanId)]);
});

test("SP1: ids are equal in every process, have the length that OpenTelemetry requires, and are different for each kind", () => {
  expect(traceIdOf("chain-1")).toMatch(/^[0-9a-f]{32}$/);
  expect(runSpanId("chain-1")).toMatch(/^[0-9a-f]{16}$/);
  expect(traceIdOf("chain-1")).toBe("2dcbcd898b0f49be732ddd9b1318799f");
  expect(new Set([runSpanId("a"), callSpanId("a", "b"), callSpanId("a b", ""), runSpanId("a b")]).size).toBe(
    4,
  );
});
