// Live text and thinking of an ACP agent's turn.

import { expect, test } from "vitest";
import { AcpTurn } from "../../src/agent/acp/turn.ts";
import { isCompaction, ZERO_USAGE } from "../../src/core/shapes/message.ts";
import type { TextDelta } from "../../src/core/text/text-delta.ts";
import { until } from "../kit/until.ts";
import { fakeWorld } from "../kit/world.ts";

function openTurn() {
  const said: string[] = [];
  const say = (kind: string) => (delta: TextDelta) => said.push(`${kind} ${delta.offset} ${delta.text}`);
  const turn = new AcpTurn({
    ...{ runId: "r1", agentId: "main", world: fakeWorld() },
    append: async (entry) => {
      said.push(`stored ${isCompaction(entry) ? "compaction" : entry.role}`);
      return entry;
    },
    ...{ onText: say("text"), onThinking: say("thought"), onTool: () => {} },
  });
  const chunk = (kind: "message" | "thought", text: string) =>
    turn.update({ sessionUpdate: `agent_${kind}_chunk`, content: { type: "text", text } });
  const call = (toolCallId: string, status: "in_progress" | "completed") =>
    turn.update({ sessionUpdate: "tool_call", toolCallId, title: "read", status });
  const stored = (count: number) =>
    until(() => said.filter((line) => line.startsWith("stored")).length === count);
  return { turn, said, chunk, call, stored };
}

test("live text and thinking are not published again when their message is stored", async () => {
  const { turn, said, chunk, call, stored } = openTurn();
  chunk("thought", "why");
  chunk("message", "look");
  call("c1", "in_progress");
  await stored(1);
  call("c1", "completed");
  await stored(2);
  chunk("message", "done");
  await turn.end("stop", ZERO_USAGE);
  expect(said).toEqual([
    ...["thought 0 why", "text 0 look", "stored assistant"],
    ...["stored toolResult", "text 0 done"],
  ]);
});

test("live text and thinking that follow a stored entry are published again from the beginning", async () => {
  const { turn, said, chunk, call, stored } = openTurn();
  call("c1", "in_progress");
  await stored(1);
  chunk("thought", "next");
  chunk("message", "done");
  call("c1", "completed");
  await stored(2);
  await turn.end("stop", ZERO_USAGE);
  const after = ["thought 0 next", "text 0 done"];
  expect(said).toEqual(["stored assistant", ...after, "stored toolResult", ...after]);
});
