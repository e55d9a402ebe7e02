// Writes an answer in one of four streaming formats, in the same way as the provider.

import { optional } from "../../../src/core/optional.ts";
import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";
import type { ServedRequest } from "./requests.ts";
import type { ServedUsage, SpokenStep, StopWord } from "./steps.ts";

export interface Writer {
  write(step: SpokenStep): void;
  /** Ends the stream in the way that the format requires. */
  end(): void;
}

type Send = (chunk: string) => void;

export const WRITERS: Record<ProviderApi, (request: ServedRequest, send: Send) => Writer> = {
  "openai-completions": completionsWriter,
  "openai-responses": responsesWriter,
  "anthropic-messages": anthropicWriter,
  "google-generative-ai": googleWriter,
};

const USAGE: ServedUsage = { input: 100, output: 20, cacheRead: 0, cacheWrite: 0 };

/** The end of a stream, with the same fields for all formats. */
interface Ending {
  usage: ServedUsage;
  stop: StopWord | undefined;
  calls: number;
}

function newEnding(): Ending {
  return { usage: USAGE, stop: undefined, calls: 0 };
}

function stopOf(ending: Ending): StopWord {
  return ending.stop ?? (ending.calls > 0 ? "toolUse" : "stop");
}

function pieces(text: string, chunks: number): string[] {
  const size = Math.max(1, Math.ceil(text.length / chunks));
  const count = Math.ceil(text.length / size);
  return Array.from({ length: count }, (_, at) => text.slice(at * size, (at + 1) * size));
}

function completionsWriter(request: ServedRequest, send: Send): Writer {
  const ending = newEnding();
  const chunk = (more: object): void => {
    const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: request.model };
    send(`data: ${JSON.stringify({ ...base, ...more })}\n\n`);
  };
  const delta = (value: object): void => {
    chunk({ choices: [{ index: 0, delta: value, finish_reason: null }] });
  };
  const reasons = {
    stop: "stop",
    toolUse: "tool_calls",
    length: "length",
    filtered: "content_filter",
    strange: "moonshine",
  };
  delta({ role: "assistant", content: "" });
  return {
    write: (step) => {
      if (step.step === "text") for (const piece of pieces(step.text, step.chunks)) delta({ content: piece });
      if (step.step === "thinking") delta({ reasoning_content: step.text });
      if (step.step === "usage") ending.usage = step.usage;
      if (step.step === "stop") ending.stop = step.reason;
      if (step.step === "call") {
        const index = ending.calls++;
        const id = step.id ?? `call_${request.messages.length}_${index}`;
        delta({
          tool_calls: [{ index, id, type: "function", function: { name: step.name, arguments: "" } }],
        });
        for (const piece of pieces(step.json, 2))
          delta({ tool_calls: [{ index, function: { arguments: piece } }] });
      }
    },
    end: () => {
      const { input, output, cacheRead, cacheWrite } = ending.usage;
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: reasons[stopOf(ending)] }] });
      const prompt = input + cacheRead + cacheWrite;
      const details = { cached_tokens: cacheRead, cache_write_tokens: cacheWrite };
      const usage = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output };
      chunk({ choices: [], usage: { ...usage, prompt_tokens_details: details } });
      send("data: [DONE]\n\n");
    },
  };
}

type SendEvent = (type: string, more: object) => void;

/** Writes the output items of a Responses stream: each is opened, filled and closed. */
function responsesItems(event: SendEvent) {
  const items: object[] = [];
  const add = (
    prefix: string,
    open: object,
    closed: object,
    fill: (at: { output_index: number; item_id: string }) => void,
  ): void => {
    const output_index = items.length;
    const item_id = `${prefix}_${output_index}`;
    event("response.output_item.added", { output_index, item: { ...open, id: item_id } });
    fill({ output_index, item_id });
    const item = { ...open, ...closed, id: item_id };
    items.push(item);
    event("response.output_item.done", { output_index, item });
  };
  return {
    items,
    text: (text: string, chunks: number): void => {
      const open = { type: "message", role: "assistant", status: "in_progress", content: [] };
      const part = { type: "output_text", text, annotations: [] };
      add("msg", open, { status: "completed", content: [part] }, (at) => {
        event("response.content_part.added", { ...at, content_index: 0, part: { ...part, text: "" } });
        for (const delta of pieces(text, chunks)) {
          event("response.output_text.delta", { ...at, content_index: 0, delta });
        }
        event("response.output_text.done", { ...at, content_index: 0, text });
      });
    },
    thinking: (text: string): void => {
      const closed = { summary: [{ type: "summary_text", text }], encrypted_content: "c2VjcmV0" };
      add("rs", { type: "reasoning", summary: [] }, closed, (at) => {
        event("response.reasoning_summary_text.delta", { ...at, summary_index: 0, delta: text });
      });
    },
    /** Writes a tool call. The name `space/name` means a tool in a namespace. */
    call: (call_id: string, called: string, json: string): void => {
      const [name, namespace] = called.split("/").toReversed();
      const tool = { name, ...optional({ namespace }) };
      const open = { type: "function_call", call_id, ...tool, arguments: "", status: "in_progress" };
      add("fc", open, { arguments: json, status: "completed" }, (at) => {
        for (const delta of pieces(json, 2))
          event("response.function_call_arguments.delta", { ...at, delta });
        event("response.function_call_arguments.done", { ...at, arguments: json });
      });
    },
  };
}

function responsesWriter(request: ServedRequest, send: Send): Writer {
  const ending = newEnding();
  let sequence = 0;
  const event: SendEvent = (type, more) => {
    send(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`);
  };
  const base = { id: "resp_1", object: "response", created_at: 1, model: request.model };
  event("response.created", { response: { ...base, status: "in_progress", output: [] } });
  const output = responsesItems(event);
  return {
    write: (step) => {
      if (step.step === "text") output.text(step.text, step.chunks);
      if (step.step === "thinking") output.thinking(step.text);
      if (step.step === "usage") ending.usage = step.usage;
      if (step.step === "stop") ending.stop = step.reason;
      if (step.step === "call") {
        const id = step.id ?? `call_${request.messages.length}_${ending.calls}`;
        ending.calls += 1;
        output.call(id, step.name, step.json);
      }
    },
    end: () => {
      const reason = stopOf(ending);
      const incomplete = { length: "max_output_tokens", filtered: "content_filter", strange: "moonshine" };
      const whole = { ...base, output: output.items, usage: responsesUsage(ending.usage) };
      if (reason === "stop" || reason === "toolUse") {
        event("response.completed", { response: { ...whole, status: "completed" } });
      } else {
        const why = { incomplete_details: { reason: incomplete[reason] } };
        event("response.incomplete", { response: { ...whole, status: "incomplete", ...why } });
      }
    },
  };
}

function responsesUsage({ input, output, cacheRead, cacheWrite }: ServedUsage): object {
  const input_tokens = input + cacheRead + cacheWrite;
  return {
    input_tokens,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input_tokens + output,
  };
}

function anthropicUsage(usage: ServedUsage, output_tokens: number): object {
  return {
    input_tokens: usage.input,
    output_tokens,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
  };
}

function anthropicWriter(request: ServedRequest, send: Send): Writer {
  const ending = newEnding();
  let started = false;
  let index = 0;
  const event = (type: string, more: object): void => {
    send(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  };
  const start = (): void => {
    if (started) return;
    started = true;
    const message = { id: "msg_1", type: "message", role: "assistant", model: request.model, content: [] };
    const usage = anthropicUsage(ending.usage, 1);
    event("message_start", { message: { ...message, stop_reason: null, stop_sequence: null, usage } });
    event("ping", {});
  };
  const block = (content_block: object, deltas: readonly object[]): void => {
    start();
    event("content_block_start", { index, content_block });
    for (const delta of deltas) event("content_block_delta", { index, delta });
    event("content_block_stop", { index });
    index += 1;
  };
  const reasons = {
    stop: "end_turn",
    toolUse: "tool_use",
    length: "max_tokens",
    filtered: "refusal",
    strange: "moonshine",
  };
  return {
    write: (step) => {
      if (step.step === "usage") ending.usage = step.usage;
      if (step.step === "stop") ending.stop = step.reason;
      if (step.step === "text") {
        const deltas = pieces(step.text, step.chunks).map((text) => ({ type: "text_delta", text }));
        block({ type: "text", text: "" }, deltas);
      }
      if (step.step === "thinking") {
        const thought = { type: "thinking_delta", thinking: step.text };
        const signature = { type: "signature_delta", signature: "c2lnbmF0dXJl" };
        block({ type: "thinking", thinking: "", signature: "" }, [thought, signature]);
      }
      if (step.step === "call") {
        const id = step.id ?? `toolu_${request.messages.length}_${ending.calls}`;
        ending.calls += 1;
        const deltas = pieces(step.json, 2).map((partial_json) => ({
          type: "input_json_delta",
          partial_json,
        }));
        block({ type: "tool_use", id, name: step.name, input: {} }, deltas);
      }
    },
    end: () => {
      start();
      const usage = anthropicUsage(ending.usage, ending.usage.output);
      event("message_delta", { delta: { stop_reason: reasons[stopOf(ending)], stop_sequence: null }, usage });
      event("message_stop", {});
    },
  };
}

function googleWriter(request: ServedRequest, send: Send): Writer {
  const ending = newEnding();
  const chunk = (more: object): void => {
    send(
      `data: ${JSON.stringify({ modelVersion: request.model, responseId: "response-1", ...more })}\r\n\r\n`,
    );
  };
  const parts = (made: object[]): void =>
    chunk({ candidates: [{ content: { role: "model", parts: made }, index: 0 }] });
  const reasons = {
    stop: "STOP",
    toolUse: "STOP",
    length: "MAX_TOKENS",
    filtered: "SAFETY",
    strange: "MOONSHINE",
  };
  return {
    write: (step) => {
      if (step.step === "usage") ending.usage = step.usage;
      if (step.step === "stop") ending.stop = step.reason;
      if (step.step === "text") for (const text of pieces(step.text, step.chunks)) parts([{ text }]);
      if (step.step === "thinking") parts([{ text: step.text, thought: true }]);
      if (step.step === "call") {
        ending.calls += 1;
        let args: unknown;
        try {
          args = JSON.parse(step.json);
        } catch {
          // Google sends arguments as JSON values, so invalid JSON can only be sent as a string.
          args = step.json;
        }
        parts([{ functionCall: { name: step.name, args, ...optional({ id: step.id }) } }]);
      }
    },
    end: () => {
      const { input, output, cacheRead, cacheWrite } = ending.usage;
      const promptTokenCount = input + cacheRead + cacheWrite;
      chunk({
        candidates: [
          {
            content: { role: "model", parts: [{ text: "" }] },
            finishReason: reasons[stopOf(ending)],
            index: 0,
          },
        ],
        usageMetadata: {
          promptTokenCount,
          candidatesTokenCount: output,
          cachedContentTokenCount: cacheRead,
          totalTokenCount: promptTokenCount + output,
        },
      });
    },
  };
}
