// Live text, thinking and tool calls of an ACP agent's turn, alone and in the streams of a whole gateway.

import OpenAI from "openai";
import { expect, test } from "vitest";
import { isCompaction, ZERO_USAGE } from "../../../src/core/shapes/message.ts";
import type { TextDelta } from "../../../src/core/text/text-delta.ts";
import { AcpTurn } from "../../../src/features/acp/program/turn.ts";
import { until } from "../../kit/until.ts";
import { fakeWorld } from "../../kit/world.ts";
import { openStage, TOKEN } from "./kit.ts";

/** `store`: resolves when an entry is stored. Default: at once. */
function openTurn(store = async (): Promise<void> => {}) {
  const said: string[] = [];
  const say = (kind: string) => (delta: TextDelta) => said.push(`${kind} ${delta.offset} ${delta.text}`);
  const turn = new AcpTurn({
    ...{ runId: "r1", agentId: "main", world: fakeWorld() },
    append: async (entry) => {
      await store();
      said.push(`stored ${isCompaction(entry) ? "compaction" : entry.role}`);
      return entry;
    },
    ...{ onText: say("text"), onThinking: say("thought") },
    onTool: ({ phase }) => said.push(phase),
  });
  const chunk = (kind: "message" | "thought", text: string) =>
    turn.update({ sessionUpdate: `agent_${kind}_chunk`, content: { type: "text", text } });
  const call = (toolCallId: string, status: "pending" | "in_progress" | "completed") =>
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
    ...["thought 0 why", "text 0 look", "start", "stored assistant"],
    ...["end", "stored toolResult", "text 0 done"],
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
  expect(said).toEqual([
    ...["start", "stored assistant", ...after],
    ...["end", "stored toolResult", ...after],
  ]);
});

test("while an entry is being stored, the next text and calls wait, and keep their order", async () => {
  const gate = Promise.withResolvers<void>();
  const { turn, said, chunk, call, stored } = openTurn(() => gate.promise);
  chunk("message", "one");
  call("c1", "in_progress");
  call("c1", "completed");
  chunk("message", "two");
  call("c2", "in_progress");
  expect(said).toEqual(["text 0 one", "start"]);
  gate.resolve();
  await stored(3);
  await turn.end("stop", ZERO_USAGE);
  expect(said).toEqual([
    ...["text 0 one", "start", "stored assistant", "end"],
    ...["text 0 two", "start", "stored toolResult"],
    ...["stored assistant", "end", "stored toolResult"],
  ]);
});

test("before a call begins, its message's text is complete, even if it ends like the beginning of a tag", async () => {
  const { said, chunk, call } = openTurn();
  chunk("message", "is a <th");
  call("c1", "in_progress");
  expect(said).toEqual(["text 0 is a ", "text 5 <th", "start"]);
});

test("if text follows a call that is still to begin, the call's start is told before the text", async () => {
  const { said, chunk, call, stored } = openTurn();
  chunk("message", "one");
  call("c1", "pending");
  expect(said).toEqual(["text 0 one"]);
  chunk("message", "two");
  await stored(1);
  call("c1", "in_progress");
  expect(said).toEqual(["text 0 one", "start", "stored assistant", "text 0 two"]);
});

test("a stream in OpenAI's format contains each text of an ACP agent once, wherever its calls begin", async () => {
  const stage = await openStage();
  const client = new OpenAI({ apiKey: TOKEN, baseURL: `${stage.url.replace("ws", "http")}/v1` });
  const streamed = async (content: string): Promise<string> => {
    const messages = [{ role: "user" as const, content }];
    // All requests have the same user, so that they share one session and its program.
    const request = { model: "parley/main", messages, user: "one", stream: true } as const;
    const stream = await client.chat.completions.create(request);
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    return text;
  };
  expect(await streamed("tool")).toBe("Let me look. \n\nIt says forty-two.");
  expect(await streamed("quick")).toBe("Let me look at the notes.");
  expect(await streamed("moved")).toBe("First this.\n\nThen that too.");
  expect(await streamed("beside")).toBe("Meanwhile.\n\nAt last, done.");
  expect(await streamed("late")).toBe("meanwhile\n\nat last");
});

test("before the start of a call is told to clients, the whole text before it is told", async () => {
  const stage = await openStage();
  const told: string[] = [];
  stage.client.on("chat", ({ state, message }) => {
    if (state === "delta") told.push(message?.content.map((block) => block.text).join() ?? "");
  });
  stage.client.on("agent", ({ stream, data }) => {
    if (stream === "tool" && data.phase === "start") told.push("start");
  });
  expect(await stage.say("quick")).toBe("Let me look at the notes.");
  expect(told.slice(-2)).toEqual(["Let me look at the notes.", "start"]);
});
