// The order in which runs get slots: by priority, then runs that continue, then agents in turn.

import { expect, test } from "vitest";
import { APPENDS, nameQueue, nextHead, type QueueHead } from "../../../src/core/rules/run-queue.ts";
import { sampleRun } from "../../store/samples.ts";

const head = (queue: string, more: Partial<QueueHead> = {}): QueueHead => ({
  queue,
  isResuming: false,
  readyAt: 1,
  ...more,
});
const idle = () => ({ held: 0, served: 0 });

const CRON = { text: "go", provenance: { kind: "cron", source: "nightly" } } as const;
const NOTICE = { text: "go", provenance: { kind: "notice" } } as const;

test.each([
  ["a person's message", {}, "0main"],
  ["a notice", { input: NOTICE }, "1main"],
  ["a step of a conversation", { flow: { flowId: "f", step: "reply", turn: 1 } }, "1main"],
  ["the work of a sub-agent", { sessionKey: "agent:main:subagent:1" }, "2main"],
  ["a scheduled job", { input: CRON }, "3main"],
  ["a text to append", { kind: "append", input: CRON }, APPENDS],
] as const)("%s waits in the queue of its priority and agent", (_, more, queue) => {
  expect(nameQueue(sampleRun(more))).toBe(queue);
});

test("a text to append goes before a person, a person before a sub-agent, and this before a job", () => {
  const heads = [head("3a"), head("2a"), head("1a"), head("0a"), head(APPENDS)];
  const order: string[] = [];
  for (let left = heads; left.length > 0; left = left.filter(({ queue }) => !order.includes(queue)))
    order.push(nextHead(left, idle)?.queue ?? "");
  expect(order).toEqual([APPENDS, "0a", "1a", "2a", "3a"]);
});

test("of one priority, a run that continues goes first, then the agent with the fewest slots, then the oldest", () => {
  const use = (agentId: string) => ({ held: agentId === "busy" ? 2 : 0, served: agentId === "b" ? 7 : 0 });
  const [busy, a, b] = [head("0busy"), head("0a", { readyAt: 9 }), head("0b")];
  expect(nextHead([busy, b, a], use)).toBe(a);
  expect(nextHead([busy, b], use)).toBe(b);
  expect(nextHead([head("0a"), a], use)?.readyAt).toBe(1);
  const resuming = head("0busy", { isResuming: true });
  expect(nextHead([b, resuming, a], use)).toBe(resuming);
});
