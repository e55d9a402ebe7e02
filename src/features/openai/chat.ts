// Builds the bodies of chat completions: the answer, and the chunks of a stream. Its functions are pure.

import type { Failure } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import {
  dataFrame,
  type EndedRun,
  type Followed,
  type SentPicture,
  type StreamShape,
  tokensOf,
} from "../../gateway/http/run-stream.ts";
import { openAiError } from "./errors.ts";
import { modelName } from "./request.ts";

function finishReason({ cutShort, calls = [] }: EndedRun): "stop" | "length" | "tool_calls" {
  if (calls.length > 0) return "tool_calls";
  return cutShort ? "length" : "stop";
}

function toolCalls({ calls = [] }: EndedRun) {
  return calls.map(({ place, name, arguments: given }) => {
    return { id: `call_${place}`, type: "function", function: { name, arguments: given } };
  });
}

function usageOf(ended: EndedRun): object {
  const { input, output, details } = tokensOf(ended.run);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: details,
  };
}

function headOf({ runId, agentId, acceptedAt }: Followed, object: string) {
  return {
    id: `chatcmpl-${runId}`,
    object,
    created: Math.floor(acceptedAt / 1000),
    model: modelName(agentId),
  };
}

/**
 * Returns the field of a message with the agent's pictures. The API itself has none; several compatible ones
 * have this.
 */
function imagesOf(pictures: readonly SentPicture[] = []): object {
  if (pictures.length === 0) return {};
  const images = pictures.map(({ mimeType, content }, index) => ({
    ...{ index, type: "image_url", image_url: { url: `data:${mimeType};base64,${content}` } },
  }));
  return { images };
}

/** Builds the answer to a request without streaming. `content`: the redacted text. */
export function chatAnswer(followed: Followed, ended: EndedRun, content: string): object {
  const calls = toolCalls(ended);
  const called = calls.length === 0 ? { content } : { content: content || null, tool_calls: calls };
  const message = { role: "assistant", ...called, refusal: null, ...imagesOf(ended.pictures) };
  return {
    ...headOf(followed, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(ended) }],
    usage: usageOf(ended),
  };
}

/** Builds the chunks of a stream. `includeUsage`: the last chunk has the token usage. */
export function chatStream(followed: Followed, includeUsage: boolean, redactor: Redactor): StreamShape {
  const head = headOf(followed, "chat.completion.chunk");
  const usage = includeUsage ? { usage: null } : {};
  const chunk = (delta: object, reason: string | null): string =>
    dataFrame({
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      ...usage,
    });
  const done = "data: [DONE]\n\n";
  return {
    begin: () => chunk({ role: "assistant", content: "", refusal: null }, null),
    piece: (text) => chunk({ content: text }, null),
    end(ended) {
      const images = imagesOf(ended.pictures);
      const shown = "images" in images ? chunk(images, null) : "";
      const last = includeUsage ? dataFrame({ ...head, choices: [], usage: usageOf(ended) }) : "";
      const calls = toolCalls(ended).map((call, index) => ({ index, ...call }));
      const called = calls.length === 0 ? "" : chunk({ tool_calls: calls }, null);
      return shown + called + chunk({}, finishReason(ended)) + last + done;
    },
    fail: (failure: Failure) => dataFrame(openAiError(failure, redactor).body),
  };
}
