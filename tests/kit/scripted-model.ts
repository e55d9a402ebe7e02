// A model in this process whose answers a test writes.

import { ABORTED, untilAborted } from "../../src/agent/loop/abort.ts";
import type {
  FailureCode,
  ModelOutcome,
  ModelPort,
  ModelRequest,
  WrittenMessage,
} from "../../src/agent/model/model.ts";
import { optional } from "../../src/core/optional.ts";
import { type HistoryPart, ZERO_USAGE } from "../../src/core/shapes/message.ts";

export interface ScriptedCall {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly id?: string;
}

/** An answer: text, tool calls (optionally with text before them), or a failure. */
export type ScriptedAnswer =
  | string
  | {
      readonly text?: string;
      readonly toolCalls?: readonly ScriptedCall[];
      readonly stopReason?: string;
      /** With the stop reason `error`. */
      readonly errorMessage?: string;
      readonly totalTokens?: number;
    }
  | { readonly error: string; readonly code?: FailureCode }
  | { readonly overflow: string }
  | { readonly refused: HistoryPart };

export interface ScriptedModel extends ModelPort {
  readonly requests: ModelRequest[];
}

/**
 * Makes a model that answers with the results of `script`. If the result is a promise that never settles, the
 * call hangs until it is aborted.
 */
export function scriptedModel(
  script: (request: ModelRequest, call: number) => ScriptedAnswer | Promise<ScriptedAnswer>,
): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async call(request, onText, signal): Promise<ModelOutcome> {
      requests.push({ ...request, entries: [...request.entries] });
      const call = requests.length - 1;
      const answer = await untilAborted(Promise.resolve(script(request, call)), signal);
      if (answer === ABORTED || signal.aborted) return { kind: "aborted" };
      if (typeof answer === "object" && "error" in answer) return { kind: "failed", ...answer };
      if (typeof answer === "object" && "overflow" in answer)
        return { kind: "overflow", error: answer.overflow };
      if (typeof answer === "object" && "refused" in answer)
        return { kind: "refused", part: answer.refused, error: `refused: ${answer.refused}` };
      const said = typeof answer === "string" ? { text: answer } : answer;
      if (said.text !== undefined && said.text !== "") onText({ offset: 0, text: said.text });
      return { kind: "message", message: written(request, call, said) };
    },
  };
}

function written(
  request: ModelRequest,
  call: number,
  said: Exclude<ScriptedAnswer, string | { error: string } | { overflow: string } | { refused: HistoryPart }>,
): WrittenMessage {
  const calls = (said.toolCalls ?? []).map((one, at) => ({
    type: "toolCall" as const,
    id: one.id ?? `call_${call}_${at}`,
    name: one.name,
    arguments: one.arguments ?? {},
  }));
  const text = said.text === undefined ? [] : [{ type: "text" as const, text: said.text }];
  const total = said.totalTokens ?? 15;
  return {
    role: "assistant",
    content: [...text, ...calls],
    timestamp: request.entries.at(-1)?.timestamp ?? 0,
    api: "scripted",
    provider: "scripted",
    model: request.model.settings.id,
    usage: { ...ZERO_USAGE, input: total - 5, output: 5, totalTokens: total },
    stopReason: said.stopReason ?? (calls.length > 0 ? "toolUse" : "stop"),
    ...optional({ errorMessage: said.errorMessage }),
  };
}
