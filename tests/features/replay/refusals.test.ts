// Chains in which a provider refused a part of the history are replayed without a difference.

import { expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/model/model.ts";
import { isCompaction, textOf } from "../../../src/core/shapes/message.ts";
import { replayChain } from "../../../src/features/replay/play/play.ts";
import { openHouse } from "../../gateway/kit.ts";
import { type ScriptedAnswer, scriptedModel } from "../../kit/scripted-model.ts";
import { recordOf } from "./record-of.ts";

const isNoted = ({ entries }: ModelRequest): boolean =>
  entries.some((entry) => !isCompaction(entry) && entry.role === "assistant" && entry.omits !== undefined);

const ANSWERS: Record<string, (request: ModelRequest, call: number) => ScriptedAnswer> = {
  "refused tool calls": (request, call) => {
    if (call === 0) return { text: "I look.", toolCalls: [{ name: "session_status" }] };
    return isNoted(request) ? "answered" : { refused: "tool pairs" };
  },
  "a refusal that is followed by a failure": (request, call) => {
    if (call === 0) return { toolCalls: [{ name: "session_status" }] };
    return isNoted(request) ? { error: "it failed then" } : { refused: "tool pairs" };
  },
  "a message that is too long": (request) => (isNoted(request) ? "answered" : { overflow: "too long" }),
  "an overflow and a summary": (request) => {
    if (request.entries.some(isCompaction)) return "answered";
    const last = request.entries.at(-1);
    const isSummary = last !== undefined && "role" in last && textOf(last).startsWith("Condense");
    if (isSummary) return "they counted";
    return request.entries.length > 2 ? { overflow: "too long" } : "ok";
  },
};

test.each(Object.keys(ANSWERS))("%s: the replay has the same steps", async (name) => {
  const house = await openHouse({ model: scriptedModel((...args) => ANSWERS[name]?.(...args) ?? "") });
  if (name === "an overflow and a summary") await recordOf(house, "before");
  const record = await recordOf(house, "word ".repeat(2_000));
  const result = await replayChain(record);
  if (!result.ok) throw new Error(result.error);
  expect(result.value.difference).toBeUndefined();
  expect(result.value.entries).toBeGreaterThan(2);
});
