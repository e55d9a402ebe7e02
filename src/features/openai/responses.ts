// Builds the bodies of responses: the answer, and the events of a stream. Its functions are pure.
// The events of a stream are numbered without gaps, and their pieces add up to the text in the last one.

import { optional } from "../../core/optional.ts";
import { fail } from "../../core/shapes/errors.ts";
import type { ImageBlock, TextBlock } from "../../core/shapes/message.ts";
import { type ClientResult, endCodeOf, endsWithResult, type Run } from "../../core/shapes/run.ts";
import type { ThinkingLevel } from "../../core/shapes/settings/settings.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import {
  dataFrame,
  type EndedRun,
  type Followed,
  type StreamShape,
  tokensOf,
} from "../../gateway/http/run-stream.ts";
import { openAiError } from "./errors.ts";
import type { ListedItem } from "./pages.ts";
import { type AgentRequest, CONVERSATION_PREFIX, modelName, RESPONSE_PREFIX } from "./request.ts";

type Status = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
type Repeated = Pick<
  AgentRequest,
  | "previousRunId"
  | "conversation"
  | "thinking"
  | "instructions"
  | "metadata"
  | "user"
  | "format"
  | "clientTools"
  | "store"
  | "background"
>;

function usageOf({ run }: EndedRun): object {
  const { input, output, details } = tokensOf(run);
  return {
    input_tokens: input,
    input_tokens_details: details,
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}

export function textPart(text: string): object {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function messageItem({ runId }: Followed, status: Status, content: readonly object[]): object {
  return { type: "message", id: `msg_${runId}`, status, role: "assistant", content };
}

function pictureItems({ pictures = [] }: EndedRun): object[] {
  return pictures.map(({ id, mimeType, content }) => ({
    ...{ type: "image_generation_call", id: `ig_${id}`, status: "completed", result: content },
    output_format: mimeType.slice("image/".length),
  }));
}

/** Returns the items of the calls that the client has to answer. */
function callItems({ calls = [] }: EndedRun) {
  return calls.map(({ place, name, arguments: given }) => ({
    ...{ type: "function_call", id: `fc_${place}`, call_id: `call_${place}`, status: "completed" },
    ...{ name, arguments: given },
  }));
}

function toolFields({ clientTools }: Repeated): object {
  const { list = [], must = false, none = false, oneByOne } = clientTools ?? {};
  const choice = must === true ? "required" : none ? "none" : "auto";
  return {
    parallel_tool_calls: oneByOne !== true,
    tool_choice: typeof must === "string" ? { type: "function", name: must } : choice,
    // No provider is asked to hold the arguments to the schema.
    tools: list.map(({ description = null, ...tool }) => {
      return { type: "function", ...tool, description, strict: false };
    }),
  };
}

function statusOf({ cutShort }: EndedRun): "completed" | "incomplete" {
  return cutShort ? "incomplete" : "completed";
}

/** Builds a response in its current state. */
function responseOf(followed: Followed, request: Repeated, status: Status, more: object = {}): object {
  const { runId, agentId, acceptedAt } = followed;
  const { previousRunId, conversation, thinking, instructions, metadata, user, format } = request;
  return {
    id: `${RESPONSE_PREFIX}${runId}`,
    object: "response",
    created_at: Math.floor(acceptedAt / 1000),
    status,
    background: request.background === true,
    error: null,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    instructions: instructions ?? null,
    max_output_tokens: null,
    model: modelName(agentId),
    output: [],
    previous_response_id: previousRunId === undefined ? null : `${RESPONSE_PREFIX}${previousRunId}`,
    conversation: conversation === undefined ? null : { id: conversation },
    reasoning: { effort: thinking === "off" ? "none" : (thinking ?? null), summary: null },
    store: request.store !== false,
    temperature: null,
    text: { format: format ?? { type: "text" } },
    ...toolFields(request),
    top_p: null,
    truncation: "disabled",
    usage: null,
    ...optional({ user }),
    metadata: metadata ?? {},
    ...more,
  };
}

/** Returns the items of an answer. `text`: the redacted text. */
export function outputItems(followed: Followed, ended: EndedRun, text: string): object[] {
  const calls = callItems(ended);
  const said =
    text === "" && calls.length > 0 ? [] : [messageItem(followed, statusOf(ended), [textPart(text)])];
  return [...said, ...calls, ...pictureItems(ended)];
}

/** Builds the answer to a request without streaming. `text`: the redacted text. */
export function endedResponse(followed: Followed, request: Repeated, ended: EndedRun, text: string): object {
  const status = statusOf(ended);
  const output = outputItems(followed, ended, text);
  return responseOf(followed, request, status, { output, usage: usageOf(ended) });
}

/** Builds the events of a stream. */
export function responseStream(followed: Followed, request: AgentRequest, redactor: Redactor): StreamShape {
  let numbered = 0;
  const event = (type: string, facts: object): string => {
    const sequence_number = numbered++;
    return `event: ${type}\n${dataFrame({ type, sequence_number, ...facts })}`;
  };
  const place = { item_id: `msg_${followed.runId}`, output_index: 0, content_index: 0 };
  let hasMessage = false;
  /** Begins the message before its first text. An answer of calls alone has none. */
  const message = (): string => {
    if (hasMessage) return "";
    hasMessage = true;
    const item = messageItem(followed, "in_progress", []);
    return (
      event("response.output_item.added", { output_index: 0, item }) +
      event("response.content_part.added", { ...place, part: textPart("") })
    );
  };
  const messageEnd = (ended: EndedRun, text: string): string => {
    const item = messageItem(followed, statusOf(ended), [textPart(text)]);
    return [
      event("response.output_text.done", { ...place, text, logprobs: [] }),
      event("response.content_part.done", { ...place, part: textPart(text) }),
      event("response.output_item.done", { output_index: 0, item }),
    ].join("");
  };
  const callFrames = (item: ReturnType<typeof callItems>[number], output_index: number): string => {
    const { id: item_id, name, arguments: given } = item;
    const open = { ...item, status: "in_progress", arguments: "" };
    const at = { item_id, output_index };
    return [
      event("response.output_item.added", { output_index, item: open }),
      event("response.function_call_arguments.delta", { ...at, delta: given }),
      event("response.function_call_arguments.done", { ...at, name, arguments: given }),
      event("response.output_item.done", { output_index, item }),
    ].join("");
  };
  return {
    begin() {
      const response = responseOf(followed, request, "in_progress");
      return event("response.created", { response }) + event("response.in_progress", { response });
    },
    piece: (delta) => message() + event("response.output_text.delta", { ...place, delta, logprobs: [] }),
    end(ended, text) {
      const calls = callItems(ended);
      const said = text === "" && calls.length > 0 ? "" : message() + messageEnd(ended, text);
      const first = said === "" ? 0 : 1;
      return [
        said,
        ...calls.map((call, index) => callFrames(call, first + index)),
        ...pictureItems(ended).flatMap((picture, index) => {
          const output_index = first + calls.length + index;
          return [
            event("response.output_item.added", {
              output_index,
              item: { ...picture, status: "in_progress", result: null },
            }),
            event("response.output_item.done", { output_index, item: picture }),
          ];
        }),
        event(`response.${statusOf(ended)}`, { response: endedResponse(followed, request, ended, text) }),
      ].join("");
    },
    fail(failure, hasEnded) {
      const { code, message, param } = openAiError(failure, redactor).body.error;
      if (!hasEnded) return event("error", { code, message, param });
      const error = { code, message };
      return event("response.failed", { response: responseOf(followed, request, "failed", { error }) });
    },
  };
}

/**
 * Builds a response that is fetched later. Its run keeps no metadata and no `previous_response_id`. `asked`:
 * the request, if it is known.
 */
export function storedResponse(
  ended: EndedRun,
  text: string,
  redactor: Redactor,
  asked: Repeated = {},
): object {
  const { run } = ended;
  const { context: instructions, thinking: level, format, clientTools, background } = run.input;
  const thinking = level as ThinkingLevel | undefined;
  const isConversation = run.sessionKey.endsWith(`-${run.sessionId}`);
  const conversation = isConversation ? `${CONVERSATION_PREFIX}${run.sessionId}` : undefined;
  const kept = { instructions, format, clientTools, background, thinking, conversation };
  const repeated = { ...optional(kept), ...asked };
  const code = endCodeOf(run);
  if (run.state === "ok") return endedResponse(run, repeated, ended, text);
  if (run.state === "aborted") return responseOf(run, repeated, "cancelled");
  if (code === undefined) return responseOf(run, repeated, run.state === "queued" ? "queued" : "in_progress");
  const failure = fail(code, run.error ?? `the run ended: ${run.state}`);
  const { message } = openAiError(failure, redactor).body.error;
  return responseOf(run, repeated, "failed", { error: { code, message } });
}

/** Returns the part of a user's message. */
export function inputPart(block: TextBlock | ImageBlock): object {
  if (block.type === "text") return { type: "input_text", text: block.text };
  const { mimeType, data } = block;
  return { type: "input_image", detail: "auto", image_url: `data:${mimeType};base64,${data}` };
}

/** Returns the item of a result. `givesPlace`: the client knows the call by its place. */
export function resultItem({ id, toolCallId, content }: ClientResult, givesPlace: boolean): ListedItem {
  const place = id.replace(":", "_");
  const output = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const call_id = givesPlace ? `call_${place}` : toolCallId;
  return { type: "function_call_output", id: `fco_${place}`, call_id, output, status: "completed" };
}

/** Returns the items that a response began with, the oldest first. */
export function inputItems({ runId, callId, input }: Run): ListedItem[] {
  const { results = [], text, images = [] } = input;
  const outputs = results.map((result) => resultItem(result, callId !== undefined));
  if (endsWithResult(input)) return outputs;
  const said: TextBlock[] = text === "" ? [] : [{ type: "text", text }];
  const content = [...said, ...images].map(inputPart);
  const message = { type: "message", id: `in_${runId}`, status: "completed", role: "user", content };
  return [...outputs, message];
}
