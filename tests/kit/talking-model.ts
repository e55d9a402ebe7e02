// A model for tests in which sessions send to each other. If a message is `do:[calls]`, the model makes these
// tool calls in parallel and answers with their results. Further calls, after a line `then`, are made when
// the ones before have results. It repeats any other message.

import { HEADING } from "../../src/core/rules/turn-rules.ts";
import { type Entry, isCompaction, type Message, textOf } from "../../src/core/shapes/message.ts";
import {
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  scriptedModel,
} from "./scripted-model.ts";

const isMessage = (entry: Entry): entry is Message => !isCompaction(entry);

/** Returns a message that asks the model to make these tool calls. */
export function doing(...calls: ScriptedCall[]): string {
  return `do:${JSON.stringify(calls)}`;
}

const THEN = "\nthen\n";

/** Returns a message that asks the model to do this, one after the other. */
export function inTurn(...messages: string[]): string {
  return messages.join(THEN);
}

export function sending(sessionKey: string, message: string, timeoutSeconds = 20): ScriptedCall {
  return { name: "sessions_send", arguments: { sessionKey, message, timeoutSeconds } };
}

export function spawning(task: string, more: Record<string, unknown> = {}): ScriptedCall {
  return { name: "sessions_spawn", arguments: { task, ...more } };
}

/** Returns the reply in a tool call's result. If there is none, returns the code or the status. */
function gistOf(text: string): string {
  const { reply, code, status } = JSON.parse(text) as Record<string, string>;
  return reply ?? code ?? status ?? "";
}

function answer(system: string, entries: readonly Entry[]): ScriptedAnswer {
  const messages = entries.filter(isMessage);
  const at = messages.findLastIndex((message) => message.role === "user");
  const input = messages[at] === undefined ? "" : textOf(messages[at]);
  if (system.includes(HEADING.announce)) return "The people of this session are told how it went.";
  if (system.includes(HEADING.subagentAnnounce)) return "The job is done.";
  if (system.includes(HEADING.reply))
    return input.includes("enough") ? "REPLY_SKIP" : `More on ${input.slice(-60)}`;
  const since = messages.slice(at + 1);
  const done = since.filter((message) => message.role === "assistant").length;
  const [, calls] = /do:(\[.*\])/s.exec(input.split(THEN)[done] ?? "") ?? [];
  if (calls !== undefined) return { toolCalls: JSON.parse(calls) as ScriptedCall[] };
  const results = since.filter((message) => message.role === "toolResult");
  return results.length > 0 ? results.map((result) => gistOf(textOf(result))).join("; ") : `echo ${input}`;
}

/** Makes the model. `holds` is called with each input, and the answer waits for its promise. */
export function talkingModel(holds?: (input: string) => Promise<void> | undefined): ScriptedModel {
  return scriptedModel(async ({ system, entries }) => {
    const input = entries.filter(isMessage).findLast((message) => message.role === "user");
    await holds?.(input === undefined ? "" : textOf(input));
    return answer(system, entries);
  });
}
