// A model for random chains. It sends, spawns, waits, fails and calls unknown tools at random, as the dice of a
// seed say.

import type { ModelRequest } from "../../../src/agent/model/model.ts";
import { isCompaction, type Message, textOf } from "../../../src/core/shapes/message.ts";
import { type Dice, dice } from "../../kit/dice.ts";
import {
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  scriptedModel,
} from "../../kit/scripted-model.ts";

const SESSIONS = ["agent:main:main", "agent:research:main", "agent:writer:main", "agent:nobody:main"];

function callOf(luck: Dice, word: string): ScriptedCall {
  const kind = luck.below(10);
  if (kind < 4) {
    const args = { sessionKey: luck.of(SESSIONS), message: word, timeoutSeconds: luck.of([0, 1, 20, 20]) };
    return { name: "sessions_send", arguments: args };
  }
  if (kind < 6) {
    const more = [
      {},
      {},
      { label: word },
      { runTimeoutSeconds: 1 },
      { announce: "post" },
      { cleanup: "delete" },
    ];
    return { name: "sessions_spawn", arguments: { task: word, ...luck.of<object>(more) } };
  }
  if (kind < 8) {
    const action = luck.of(["list", "wait", "wait", "cancel"]);
    const which = action === "cancel" ? { sessionKey: "all" } : {};
    return { name: "subagents", arguments: { action, ...which } };
  }
  return luck.of([
    { name: "sessions_list" },
    { name: "session_status", arguments: {} },
    { name: "no_such_tool", arguments: { word } },
  ]);
}

function answer(luck: Dice, word: string, depth: number): ScriptedAnswer {
  if (luck.chance(0.04)) return { error: `the model failed at ${word}` };
  if (luck.chance(0.03)) return { text: word, stopReason: "length" };
  if (luck.chance(0.1)) return luck.of(["REPLY_SKIP", "ANNOUNCE_SKIP", ""]);
  if (depth > 2 || luck.chance(0.4)) return `words ${word}`;
  const calls = Array.from({ length: 1 + luck.below(3) }, (_, at) => callOf(luck, `${word}.${at}`));
  return luck.chance(0.3) ? { text: `before ${word}`, toolCalls: calls } : { toolCalls: calls };
}

function withTokens(said: ScriptedAnswer, totalTokens: number): ScriptedAnswer {
  if (typeof said === "string") return { text: said, totalTokens };
  return "error" in said || "overflow" in said ? said : { ...said, totalTokens };
}

/** Returns a random answer to a request. A message in a message gets shorter answers, so that chains end. */
function answerTo(luck: Dice, { entries }: ModelRequest, call: number): ScriptedAnswer {
  const messages = entries.filter((entry): entry is Message => !isCompaction(entry));
  const from = messages.findLastIndex((message) => message.role === "user");
  const steps = messages.slice(from + 1).filter((message) => message.role === "assistant").length;
  const input = messages[from] === undefined ? "" : textOf(messages[from]);
  return answer(luck, `w${call}`, steps + (input.match(/\./g)?.length ?? 0));
}

/** Makes the model of one seed. Each of its answers uses this many tokens. */
export function randomModel(seed: string, tokens = 15): ScriptedModel {
  const luck = dice(seed);
  return scriptedModel((request, call) => withTokens(answerTo(luck, request, call), tokens));
}
