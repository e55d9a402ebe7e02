// The state of a message between sessions, from the rows of its run, transcript and inbox.

import { expect, test } from "vitest";
import { receiptOf } from "../../../src/core/rules/receipt.ts";
import type { InboxMark, Run } from "../../../src/core/shapes/run.ts";

type Facts = Parameters<typeof receiptOf>[0];

const RUN = {
  runId: "m1",
  kind: "turn",
  state: "queued",
  acceptedAt: 10,
  flow: { flowId: "f", step: "round1", turn: 1 },
} as const;

function stateOf(run: Partial<Run>, more: Omit<Facts, "run"> = {}) {
  const receipt = receiptOf({ run: { ...RUN, ...run }, ...more });
  return receipt && [receipt.state, receipt.times, receipt.code];
}

test("a run that was not started by a message of another session has no receipt", () => {
  for (const step of ["announce", "task"] as const) {
    expect(receiptOf({ run: { ...RUN, flow: { flowId: "f", step, turn: 1 } } })).toBeUndefined();
  }
  const { flow: _, ...person } = RUN;
  expect(receiptOf({ run: person })).toBeUndefined();
  expect(receiptOf({ run: { ...RUN, flow: { flowId: "f", step: "reply", turn: 2 } } })).toBeDefined();
});

test("the receipt of a message that a model reads goes through each state from the queue to the answer, each with its time", () => {
  const times = { queued: 10, offered: 20 };
  expect(stateOf({})).toEqual(["queued", { queued: 10 }, undefined]);
  expect(stateOf({ state: "running", startedAt: 20 })).toEqual(["offered", times, undefined]);
  // The run has returned to its queue after a crash.
  expect(stateOf({ state: "queued", startedAt: 20 })).toEqual(["offered", times, undefined]);
  const heard = { ...times, in_turn: 30 };
  expect(stateOf({ state: "waiting", startedAt: 20, heardAt: 30 })).toEqual(["in_turn", heard, undefined]);
  const ended = { startedAt: 20, endedAt: 40, model: "m/n" };
  const of = (run: Partial<Run>) => stateOf({ ...ended, heardAt: 30, ...run });
  expect(of({ state: "ok", reply: "yes" })).toEqual(["answered", { ...heard, answered: 40 }, undefined]);
  expect(of({ state: "ok", reply: " REPLY_SKIP " })?.[0]).toBe("declined");
  expect(of({ state: "ok" })?.[0]).toBe("declined");
  expect(of({ state: "error", code: "model_failed" as never })).toEqual([
    "failed",
    { ...heard, failed: 40 },
    "model_failed",
  ]);
  expect(of({ state: "timeout" })?.[2]).toBe("run_timeout");
  expect(of({ state: "aborted", code: "session_reset" })?.[0]).toBe("failed");
});

test("a message whose run never began is `expired`, or `declined` if a budget refused the run", () => {
  expect(stateOf({ state: "aborted", code: "session_deleted", endedAt: 15 })).toEqual([
    "expired",
    { queued: 10, expired: 15 },
    "session_deleted",
  ]);
  const refused = { state: "error", code: "budget_used", startedAt: 12, endedAt: 12 } as const;
  expect(stateOf(refused)?.[0]).toBe("declined");
  expect(stateOf({ ...refused, model: "m/n" })?.[0]).toBe("failed");
});

test("the receipt of a message in an inbox follows the inbox marks, and a final state does not change", () => {
  const of = (mark: InboxMark) =>
    stateOf({ kind: "append", state: "ok", startedAt: 11, endedAt: 11 }, { mark });
  expect(of({})).toEqual(["queued", { queued: 10 }, undefined]);
  expect(of({ offeredAt: 20 })).toEqual(["offered", { queued: 10, offered: 20 }, undefined]);
  expect(of({ offeredAt: 20, inTurnAt: 30 })?.[0]).toBe("in_turn");
  expect(of({ offeredAt: 20, inTurnAt: 30, endedAt: 40, outcome: "answered" })).toEqual([
    "answered",
    { queued: 10, offered: 20, in_turn: 30, answered: 40 },
    undefined,
  ]);
  expect(of({ offeredAt: 20, inTurnAt: 50, endedAt: 40, outcome: "expired" })).toEqual([
    "expired",
    { queued: 10, offered: 20, expired: 40 },
    undefined,
  ]);
  expect(receiptOf({ run: { ...RUN, kind: "append", state: "ok" } })).toBeUndefined();
});

test("the times of a receipt never decrease, even if two processes have different clocks", () => {
  const receipt = receiptOf({
    run: { ...RUN, state: "ok", reply: "x", startedAt: 8, heardAt: 7, endedAt: 9 },
  });
  expect(receipt?.times).toEqual({ queued: 10, offered: 10, in_turn: 10, answered: 10 });
});
