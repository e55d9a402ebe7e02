// Owns the four streaming formats, as their providers send them.

import type { ProviderApi } from "../../src/core/settings.ts";
import type { ServedRequest } from "./model-server-requests.ts";
import type { ServedUsage, SpokenStep, StopWord } from "./model-server-steps.ts";

export interface Writer {
  write(step: SpokenStep): void;
  /** Ends the stream as the format wants it. */
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

/** What every writer remembers: how it will end. */
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

function responsesWriter(request: ServedRequest, send: Send): Writer {
  const ending = newEnding();
  const items: object[] = [];
  let sequence = 0;
  const event = (type: string, more: object): void => {
    send(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`);
  };
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1,
    model: request.model,
    status: "in_progress",
  };
  event("response.created", { response: { ...response, output: [] } });
  const item = (
    open: object,
    closed: object,
    between: (at: { output_index: number; item_id: string }) => void,
  ) => {
    const at = { output_index: items.length, item_id: `item_${items.length}` };
    event("response.output_item.added", {
      output_index: at.output_index,
      item: { ...open, id: idFor(open, at) },
    });
    between({ ...at, item_id: idFor(open, at) });
    const done = { ...closed, id: idFor(open, at) };
    items.push(done);
    event("response.output_item.done", { output_index: at.output_index, item: done });
  };
  const idFor = (open: object, at: { item_id: string }): string =>
    "type" in open && open.type === "function_call" ? `fc_${at.item_id}` : at.item_id;
  const writeText = (text: string, chunks: number): void => {
    const open = { type: "message", role: "assistant", status: "in_progress", content: [] };
    const part = { type: "output_text", text, annotations: [] };
    item(open, { ...open, status: "completed", content: [part] }, (at) => {
      const empty = { type: "output_text", text: "", annotations: [] };
      event("response.content_part.added", { ...at, content_index: 0, part: empty });
      for (const delta of pieces(text, chunks)) {
        event("response.output_text.delta", { ...at, content_index: 0, delta });
      }
      event("response.output_text.done", { ...at, content_index: 0, text });
    });
  };
  const writeThinking = (text: string): void => {
    const open = { type: "reasoning", summary: [] };
    item(
      open,
      { ...open, summary: [{ type: "summary_text", text }], encrypted_content: "c2VjcmV0" },
      (at) => {
        event("response.reasoning_summary_text.delta", { ...at, summary_index: 0, delta: text });
      },
    );
  };
  const writeCall = (step: Extract<SpokenStep, { step: "call" }>): void => {
    const call_id = step.id ?? `call_${request.messages.length}_${ending.calls}`;
    ending.calls += 1;
    const open = { type: "function_call", call_id, name: step.name, arguments: "", status: "in_progress" };
    item(open, { ...open, arguments: step.json, status: "completed" }, (at) => {
      for (const delta of pieces(step.json, 2))
        event("response.function_call_arguments.delta", { ...at, delta });
      event("response.function_call_arguments.done", { ...at, arguments: step.json });
    });
  };
  return {
    write: (step) => {
      if (step.step === "text") writeText(step.text, step.chunks);
      if (step.step === "thinking") writeThinking(step.text);
      if (step.step === "call") writeCall(step);
      if (step.step === "usage") ending.usage = step.usage;
      if (step.step === "stop") ending.stop = step.reason;
    },
    end: () => {
      const { input, output, cacheRead, cacheWrite } = ending.usage;
      const input_tokens = input + cacheRead + cacheWrite;
      const usage = {
        input_tokens,
        input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input_tokens + output,
      };
      const reason = stopOf(ending);
      const incomplete = { length: "max_output_tokens", filtered: "content_filter", strange: "moonshine" };
      const whole = { ...response, output: items, usage };
      if (reason === "stop" || reason === "toolUse") {
        event("response.completed", { response: { ...whole, status: "completed" } });
      } else {
        const details = { reason: incomplete[reason] };
        event("response.incomplete", {
          response: { ...whole, status: "incomplete", incomplete_details: details },
        });
      }
    },
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
    const { input, cacheRead, cacheWrite } = ending.usage;
    const message = { id: "msg_1", type: "message", role: "assistant", model: request.model, content: [] };
    const usage = {
      input_tokens: input,
      output_tokens: 1,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheWrite,
    };
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
      const { input, output, cacheRead, cacheWrite } = ending.usage;
      const usage = {
        input_tokens: input,
        output_tokens: output,
        cache_read_input_tokens: cacheRead,
        cache_creation_input_tokens: cacheWrite,
      };
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
          // Google sends arguments as JSON values, so broken ones can't occur: they arrive as a string.
          args = step.json;
        }
        parts([
          { functionCall: { name: step.name, args, ...(step.id === undefined ? {} : { id: step.id }) } },
        ]);
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
