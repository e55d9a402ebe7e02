// Streams of both formats, valid and invalid.

import type { WireApi } from "./clients-kit.ts";

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c1", model: "test-model", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const finish = (reason: unknown, more: object = {}): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: reason }], ...more })}\n\n`;

const DONE = "data: [DONE]\n\n";
const USAGE = { prompt_tokens: 120, completion_tokens: 30, prompt_tokens_details: { cached_tokens: 20 } };
const args = (index: number, piece: string, more: object = {}): string =>
  chunk({ tool_calls: [{ index, function: { arguments: piece }, ...more }] });
const WORDS = 'Grüße 🙈, ‘quoted’ \\ and "more"\n';

const OPENAI: Record<string, string> = {
  text:
    chunk({ role: "assistant", content: "" }) + chunk({ content: WORDS }).repeat(20) + finish("stop") + DONE,
  "usage behind the end": `${chunk({ content: "a" })}${finish("stop")}data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n${DONE}`,
  "usage inside the choice":
    chunk({ content: "a" }) + data({ choices: [{ delta: {}, finish_reason: "stop", usage: USAGE }] }) + DONE,
  "usage of DeepSeek and of Kimi":
    chunk(
      { content: "a" },
      { usage: { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 } },
    ) +
    finish("stop", { usage: { prompt_tokens: 12, completion_tokens: 2, cached_tokens: 3 } }) +
    DONE,
  "cut by length": chunk({ content: "a" }) + finish("length") + DONE,
  "no final mark": chunk({ content: "a" }) + finish("stop"),
  "no reason at the end": chunk({ content: "half" }) + DONE,
  "nothing at all": "",
  "a filter": chunk({ content: "so " }) + finish("content_filter") + DONE,
  "a strange reason": chunk({ content: "so " }) + finish("moonshine") + DONE,
  "an error before the text": 'data: {"error":{"message":"Overloaded","code":503}}\n\n',
  "an error in the text": `${chunk({ content: "so " })}data: {"error":{"message":"upstream broke","metadata":{"raw":"why"}}}\n\n`,
  "an event called error": 'event: error\ndata: {"message":"rate limit"}\n\n',
  "invalid JSON": `${chunk({ content: "so " })}data: {"choices": nonsense\n\n`,
  "JSON that is no object": `data: 5\n\ndata: null\n\n${chunk({ content: "a" })}${finish("stop")}${DONE}`,
  comments: `: open\n\n${chunk({ content: "a" })}: ping\n\n${chunk({ content: "b" })}${finish("stop")}${DONE}`,
  "CRLF and CR": (chunk({ content: "a" }) + chunk({ content: "b" }) + finish("stop") + DONE).replaceAll(
    "\n",
    "\r\n",
  ),
  "CR alone": (chunk({ content: "a" }) + chunk({ content: "b" }) + finish("stop") + DONE).replaceAll(
    "\n",
    "\r",
  ),
  "no blank behind the colon": (chunk({ content: "a" }) + finish("stop") + DONE).replaceAll(
    "data: ",
    "data:",
  ),
  "data on several lines": `data: {"choices":[{"index":0,\ndata: "delta":{"content":"a"}}]}\n\n${finish("stop")}${DONE}`,
  "other fields": `id: 1\nretry: 5\n${chunk({ content: "a" })}${finish("stop")}${DONE}`,
  thinking:
    chunk({ reasoning_content: "let " }) +
    chunk({ reasoning_content: "me", reasoning: "me" }) +
    chunk({ content: "yes" }) +
    finish("stop") +
    DONE,
  "thinking with details":
    chunk({ reasoning: "let ", reasoning_details: [{ type: "reasoning.text", text: "let ", index: 0 }] }) +
    chunk({
      reasoning: "me",
      reasoning_details: [{ type: "reasoning.text", text: "me", signature: "sig" }],
    }) +
    chunk({ reasoning_details: [{ type: "reasoning.encrypted", data: "x", id: "e" }, { type: "odd" }, 5] }) +
    chunk({ content: "yes" }) +
    finish("stop") +
    DONE,
  calls:
    chunk({ content: "I look." }) +
    args(0, "", { id: "id_a", function: { name: "echo", arguments: "" } }) +
    args(0, '{"te') +
    args(0, 'xt":"a"}') +
    args(1, '{"text":', { id: "id_b", function: { name: "echo", arguments: '{"text":' } }) +
    args(1, '"b"}') +
    finish("tool_calls", { usage: USAGE }) +
    DONE,
  "calls whose id and name come late":
    chunk({ tool_calls: [{ index: 0, function: { arguments: "{" } }] }) +
    chunk({ tool_calls: [{ index: 0, id: "late", function: { name: "echo", arguments: "}" } }] }) +
    finish("tool_calls") +
    DONE,
  "calls without an index":
    chunk({ tool_calls: [{ id: "a", function: { name: "echo", arguments: "{}" } }] }) +
    chunk({ tool_calls: [{ id: "b", function: { name: "echo", arguments: '{"text":"x"}' } }] }) +
    finish("tool_calls") +
    DONE,
  "calls in turns":
    args(0, '{"a', { id: "a", function: { name: "echo", arguments: '{"a' } }) +
    args(1, '{"b', { id: "b", function: { name: "echo", arguments: '{"b' } }) +
    args(0, '":1}') +
    args(1, '":2}') +
    finish("tool_calls") +
    DONE,
  "arguments that are no object":
    args(0, '{"text": "unfin', { id: "a", function: { name: "echo", arguments: '{"text": "unfin' } }) +
    args(1, "[1]", { id: "b", function: { name: "echo", arguments: "[1]" } }) +
    finish("tool_calls") +
    DONE,
  "a call without arguments":
    args(0, "", { id: "a", function: { name: "echo" } }) + finish("tool_calls") + DONE,
};

const event = (type: string, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const start = (usage: object = { input_tokens: 100, output_tokens: 1, cache_read_input_tokens: 5 }): string =>
  event("message_start", { message: { id: "m1", model: "test-model", usage } });
const open = (index: number, content_block: object): string =>
  event("content_block_start", { index, content_block });
const delta = (index: number, value: object): string => event("content_block_delta", { index, delta: value });
const text = (index: number, ...pieces: string[]): string =>
  open(index, { type: "text", text: "" }) +
  pieces.map((piece) => delta(index, { type: "text_delta", text: piece })).join("") +
  event("content_block_stop", { index });
const call = (index: number, ...pieces: string[]): string =>
  open(index, { type: "tool_use", id: `toolu_${index}`, name: "echo", input: {} }) +
  pieces.map((partial_json) => delta(index, { type: "input_json_delta", partial_json })).join("") +
  event("content_block_stop", { index });
const end = (stop_reason: unknown, usage: object = { output_tokens: 20 }, more: object = {}): string =>
  event("message_delta", { delta: { stop_reason, ...more }, usage }) + event("message_stop");

const ANTHROPIC: Record<string, string> = {
  text: start() + event("ping") + text(0, ...Array.from({ length: 20 }, () => WORDS)) + end("end_turn"),
  "two texts": start() + text(0, "one") + text(1, "two") + end("end_turn"),
  usage:
    start({
      input_tokens: 7,
      cache_creation_input_tokens: 9,
      cache_creation: { ephemeral_1h_input_tokens: 4 },
    }) +
    text(0, "a") +
    end("end_turn", { input_tokens: 8, output_tokens: 3, cache_read_input_tokens: 2 }),
  "usage that is no number":
    start({ input_tokens: null }) + text(0, "a") + end("end_turn", { output_tokens: null }),
  "no usage at the end":
    start() +
    text(0, "a") +
    event("message_delta", { delta: { stop_reason: "end_turn" } }) +
    event("message_stop"),
  "cut by length": start() + text(0, "a") + end("max_tokens"),
  "a pause": start() + text(0, "a") + end("pause_turn"),
  "a refusal": start() + text(0, "so ") + end("refusal", {}, { stop_details: { explanation: "not this" } }),
  "a filter": start() + text(0, "so ") + end("sensitive"),
  "a strange reason": start() + text(0, "so ") + end("moonshine"),
  "no end": start() + text(0, "half"),
  "no reason at the end": start() + text(0, "half") + event("message_stop"),
  "nothing at all": "",
  "an error before the text":
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
  "an error in the text":
    start() +
    text(0, "so ") +
    event("error", { error: { type: "api_error", message: "Internal server error" } }),
  "invalid JSON": `${start()}${text(0, "so ")}event: content_block_start\ndata: {"type": nonsense\n\n`,
  "events of other kinds": `${start()}event: later\ndata: what\n\n${text(0, "a")}${end("end_turn")}`,
  comments: `: open\n\n${start()}: ping\n\n${text(0, "a")}${end("end_turn")}`,
  "CRLF and CR": (start() + text(0, "a", "b") + end("end_turn")).replaceAll("\n", "\r\n"),
  "CR alone": (start() + text(0, "a", "b") + end("end_turn")).replaceAll("\n", "\r"),
  "no empty line at the end": (start() + text(0, "a") + end("end_turn")).trimEnd(),
  thinking:
    start() +
    open(0, { type: "thinking", thinking: "", signature: "" }) +
    delta(0, { type: "thinking_delta", thinking: "let me" }) +
    delta(0, { type: "signature_delta", signature: "c2ln" }) +
    event("content_block_stop", { index: 0 }) +
    text(1, "yes") +
    end("end_turn"),
  "hidden thinking":
    start() +
    open(0, { type: "redacted_thinking", data: "c2VjcmV0" }) +
    event("content_block_stop", { index: 0 }) +
    text(1, "yes") +
    end("end_turn"),
  calls:
    start() +
    text(0, "I look.") +
    call(1, '{"te', 'xt":"a"}') +
    call(2, "", '{"text":"b"}') +
    end("tool_use"),
  "a call without arguments": start() + call(0) + end("tool_use"),
  "arguments that are no object": start() + call(0, '{"text": "unfin') + call(1, "[1]") + end("tool_use"),
  "pieces of a block that was never opened":
    start() + delta(4, { type: "text_delta", text: "lost" }) + text(0, "a") + end("end_turn"),
  "pieces of another kind":
    start() +
    open(0, { type: "text", text: "" }) +
    delta(0, { type: "input_json_delta", partial_json: "{" }) +
    delta(0, { type: "text_delta", text: "a" }) +
    end("end_turn"),
};

/** Complete response bodies, by API and name. */
export const STREAMS: Record<WireApi, Record<string, string>> = {
  "openai-completions": OPENAI,
  "anthropic-messages": ANTHROPIC,
};
