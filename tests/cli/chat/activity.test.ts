// The line of activity for the events of a run.

import { expect, test } from "vitest";
import {
  type Activity,
  activityLine,
  IDLE,
  onAgentEvent,
  onChatEvent,
} from "../../../src/cli/chat/activity.ts";
import type { AgentEvent, ChatEvent } from "../../../src/contract/events.ts";

const event = (stream: string, ts: number, data: object): AgentEvent =>
  ({ runId: "r", sessionKey: "agent:main:main", seq: 1, ts, stream, data }) as AgentEvent;
const chat = (state: string): ChatEvent => ({ state, runId: "r", sessionKey: "s", seq: 1 }) as ChatEvent;

const run = (...events: AgentEvent[]): Activity => events.reduce(onAgentEvent, IDLE);

test("names the step and its time since its first event, and is empty after the run", () => {
  const start = event("lifecycle", 1_000, { phase: "start", chainId: "c" });
  const call = event("tool", 5_000, { phase: "start", toolCallId: "1", name: "exec\u001b[31m" });
  const result = event("tool", 9_000, { phase: "result", toolCallId: "1", name: "exec" });
  const retry = event("retry", 9_000, { attempt: 2, of: 3, delayMs: 4_000, error: "529 overloaded" });
  expect(activityLine(run(start), undefined, 4_000)).toBe("thinking · 3 s");
  expect(activityLine(run(start, call), undefined, 65_000)).toBe("exec\\x1b[31m · 1 min");
  expect(activityLine(run(start, call, result), undefined, 9_000)).toBe("thinking · 0 s");
  expect(activityLine(run(start, retry), undefined, 10_000)).toBe(
    "retrying, 2 of 3, in 4 s: 529 overloaded · 1 s",
  );
  const writing = onChatEvent(onChatEvent(run(start), chat("delta"), 2_000), chat("delta"), 3_000);
  expect(activityLine(writing, undefined, 4_000)).toBe("writing · 2 s");
  expect(activityLine(onChatEvent(writing, chat("final"), 5_000), undefined, 5_000)).toBe("");
  expect(activityLine(run(start, event("lifecycle", 2_000, { phase: "end" })), undefined, 2_000)).toBe("");
});

test("adds the sub-agents, the waits and the queue of the session", () => {
  const row = {
    state: "waiting",
    queuedRuns: 2,
    waitingOn: ["agent:ops:main"],
    jobs: { running: 3, done: 1, failed: 0, stopped: 0 },
  } as const;
  expect(activityLine(IDLE, row, 0)).toBe(
    "waiting · 3 sub-agents running · waiting for agent:ops:main · 2 queued",
  );
});
