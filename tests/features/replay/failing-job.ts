// A model that spawns a job. The job answers without text, which takes 700 tokens, and then fails.

import { isCompaction, type Message, textOf } from "../../../src/core/shapes/message.ts";
import { type ScriptedModel, scriptedModel } from "../../kit/scripted-model.ts";
import { spawning } from "../../kit/talking-model.ts";

export function failingJobModel(): ScriptedModel {
  let calls = 0;
  return scriptedModel(({ entries }) => {
    const first = entries.find((entry) => !isCompaction(entry));
    if (first !== undefined && textOf(first as Message) === "some work") {
      calls += 1;
      return calls === 1 ? { text: "", totalTokens: 700 } : { error: "the model failed" };
    }
    return entries.length === 1 ? { toolCalls: [spawning("some work")], totalTokens: 10 } : "Done";
  });
}
