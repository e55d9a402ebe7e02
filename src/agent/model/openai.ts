// Implements the format of OpenAI's chat completions, for OpenAI and compatible servers. Requests to other
// servers go through pi-ai (clients.ts).

import type { Message as PiMessage } from "@earendil-works/pi-ai";
import { shortHash } from "@earendil-works/pi-ai/utils/hash";
import { fieldsOf, isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { LongText } from "../../core/text/text-delta.ts";
import { type Answer, amount, type CallPart, priced, type TextPart, type ThinkingPart } from "./answer.ts";
import { addDetails, keptDetails } from "./openai-reasoning.ts";
import type { ServerEvent } from "./sse.ts";
import { type AnswerReader, type Format, keyFor, type ProviderModel, WireError } from "./wire.ts";
import { outputTokens, prepared, toolTexts, whole } from "./wire-messages.ts";

type Json = Record<string, unknown>;
type Content = Exclude<PiMessage["content"], string>;

const CALL_ID_CHARS_MAX = 40;
const CACHE_KEY_CHARS_MAX = 64;

export const openAiFormat: Format = async (own, request, answer) => {
  const { provider } = own;
  const ready = await prepared(own, request, (id) => callId(id, provider.id));
  const { model, messages, system, tools, thinking } = ready;
  const role = model.reasoning ? "developer" : "system";
  const isOpenAi = provider.baseUrl.includes("api.openai.com");
  const hasCalls = messages.some((message) => message.role === "toolResult");
  const key = keyFor(provider);
  return {
    path: "/chat/completions",
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    body: {
      model: model.id,
      messages: [
        ...(system === "" ? [] : [{ role, content: whole(system) }]),
        ...sentMessages(messages, model.input.includes("image")),
      ],
      stream: true,
      ...(isOpenAi ? { prompt_cache_key: cacheKey(request.sessionId) } : {}),
      stream_options: { include_usage: true },
      store: false,
      max_completion_tokens: outputTokens(ready),
      // Levels above `high` are sent as `high`, because not every server knows them.
      ...(thinking === undefined
        ? {}
        : { reasoning_effort: thinking === "xhigh" || thinking === "max" ? "high" : thinking }),
    },
    ...(tools.length > 0 || hasCalls ? { tools: tools.map(toolText) } : {}),
    reader: new OpenAiReader(own, answer),
  };
};

const cacheKey = (sessionId: string): string => Array.from(sessionId).slice(0, CACHE_KEY_CHARS_MAX).join("");

/**
 * Shortens ids of the Responses API. They consist of two ids with a bar in between, which is too long for
 * this API.
 */
function callId(id: string, providerId: string): string {
  const barAt = id.indexOf("|");
  if (barAt < 0) return providerId === "openai" ? id.slice(0, CALL_ID_CHARS_MAX) : id;
  const plain = (part: string): string => part.replace(/[^a-zA-Z0-9_-]/g, "_");
  const call = plain(id.slice(0, barAt));
  const item = plain(id.slice(barAt + 1));
  const both = item === "" ? call : `${call}_${item}`;
  if (both.length <= CALL_ID_CHARS_MAX) return both;
  const hash = shortHash(id).slice(0, 8);
  return `${call.slice(0, Math.max(1, CALL_ID_CHARS_MAX - hash.length - 1))}_${hash}`;
}

const toolText = toolTexts(({ name, description, parameters }) => ({
  type: "function",
  function: { name, description, parameters },
}));

function sentMessages(messages: readonly PiMessage[], takesImages: boolean): Json[] {
  const sent: Json[] = [];
  /** Pictures of tool results, sent after the turn's last result, since a result can contain only text. */
  let pictures: Json[] = [];
  messages.forEach((message, at) => {
    if (message.role === "user") {
      const content = blocksOf(message.content).flatMap(sentBlock);
      if (content.length > 0) sent.push({ role: "user", content });
    }
    if (message.role === "assistant") sent.push(...sentAnswer(message.content));
    if (message.role !== "toolResult") return;
    const images = message.content.filter((block) => block.type === "image");
    const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    const shown = text === "" ? (images.length > 0 ? "(see attached image)" : "(no tool output)") : text;
    sent.push({ role: "tool", content: whole(shown), tool_call_id: message.toolCallId });
    if (takesImages) pictures.push(...images.flatMap(sentBlock));
    if (messages[at + 1]?.role === "toolResult" || pictures.length === 0) return;
    const label = { type: "text", text: "Attached image(s) from tool result:" };
    sent.push({ role: "user", content: [label, ...pictures] });
    pictures = [];
  });
  return sent;
}

const blocksOf = (content: string | Content): Content =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function sentBlock(block: Content[number]): Json[] {
  if (block.type === "image")
    return [{ type: "image_url", image_url: { url: `data:${block.mimeType};base64,${block.data}` } }];
  return block.type === "text" && block.text !== "" ? [{ type: "text", text: whole(block.text) }] : [];
}

const REASONING_FIELDS = ["reasoning_content", "reasoning", "reasoning_text"] as const;
const isReasoningField = (name: unknown): name is string =>
  (REASONING_FIELDS as readonly unknown[]).includes(name);

/** Returns the messages to send. A message without text and calls is left out, because servers refuse it. */
function sentAnswer(content: Extract<PiMessage, { role: "assistant" }>["content"]): Json[] {
  const texts = content.flatMap((block) =>
    block.type === "text" && block.text.trim() !== "" ? [whole(block.text)] : [],
  );
  const thoughts = content.filter((block) => block.type === "thinking");
  const calls = content.filter((block) => block.type === "toolCall");
  if (texts.length === 0 && calls.length === 0) return [];
  const written = thoughts.filter(({ thinking }) => thinking.trim() !== "");
  const details = keptDetails(thoughts.map(({ thinkingSignature }) => thinkingSignature));
  const field = details === undefined ? written[0]?.thinkingSignature : undefined;
  return [
    {
      role: "assistant",
      content: texts.length === 0 ? null : texts.join(""),
      ...(isReasoningField(field) ? { [field]: written.map(({ thinking }) => thinking).join("\n") } : {}),
      ...(calls.length === 0 ? {} : { tool_calls: calls.map(sentCall) }),
      ...optional({ reasoning_details: details }),
    },
  ];
}

function sentCall(call: { id: string; name: string; arguments: unknown }): Json {
  const { id, name } = call;
  return { id, type: "function", function: { name, arguments: JSON.stringify(call.arguments) } };
}

const STOPS: Readonly<Record<string, string>> = {
  stop: "stop",
  end: "stop",
  length: "length",
  function_call: "toolUse",
  tool_calls: "toolUse",
};

class OpenAiReader implements AnswerReader {
  readonly #model: ProviderModel;
  readonly #answer: Answer;
  #text: TextPart | undefined;
  #thinking: ThinkingPart | undefined;
  readonly #details: Json[] = [];
  readonly #callsByIndex = new Map<number, CallPart>();
  readonly #callsById = new Map<string, CallPart>();
  #reason: string | undefined;

  constructor(model: ProviderModel, answer: Answer) {
    this.#model = model;
    this.#answer = answer;
  }

  take({ name, data }: ServerEvent): boolean {
    if (data === "[DONE]") return true;
    const chunk = jsonOf(data);
    if (chunk === undefined) throw new WireError("Error reading response: malformed server-sent event JSON.");
    if (!isObject(chunk)) return false;
    const error = name === "error" ? (chunk.error ?? chunk) : chunk.error;
    if (error) throw new WireError(errorIn(error));
    const choice = Array.isArray(chunk.choices) ? fieldsOf(chunk.choices[0]) : {};
    const usage = chunk.usage ?? choice.usage;
    if (isObject(usage)) this.#answer.usage = usageOf(usage, this.#model);
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "")
      this.#reason = choice.finish_reason;
    if (isObject(choice.delta)) this.#delta(choice.delta);
    return false;
  }

  end(): void {
    if (this.#details.length > 0 && this.#thinking !== undefined)
      this.#thinking.thinkingSignature = JSON.stringify(this.#details);
    if (this.#reason === undefined) throw new WireError("Stream ended without finish_reason");
    this.#answer.stopReason = STOPS[this.#reason];
    if (this.#answer.stopReason === undefined) throw new WireError(`Provider finish_reason: ${this.#reason}`);
  }

  #delta(delta: Json): void {
    const { content, tool_calls: calls, reasoning_details: details } = delta;
    if (typeof content === "string" && content !== "") {
      this.#text ??= this.#answer.open({ type: "text", text: new LongText() });
      this.#answer.addText(this.#text, content);
    }
    // Some servers send the same thinking in two of these fields.
    const field = REASONING_FIELDS.find((one) => typeof delta[one] === "string" && delta[one] !== "");
    if (field !== undefined) this.#answer.addThinking(this.#thought(field), String(delta[field]));
    for (const call of Array.isArray(calls) ? calls : []) {
      if (isObject(call)) this.#call(call);
      if (this.#answer.over() !== undefined) return;
    }
    if (!Array.isArray(details)) return;
    const before = this.#details.length;
    addDetails(this.#details, details);
    if (this.#details.length > before) this.#thought("");
    this.#answer.counts(JSON.stringify(details));
  }

  #thought(signature: string): ThinkingPart {
    const empty = { type: "thinking", thinking: new LongText(), thinkingSignature: signature } as const;
    this.#thinking ??= this.#answer.open<ThinkingPart>({ ...empty });
    return this.#thinking;
  }

  /** Reads a piece of a tool call. The call's id and name may come with any piece. */
  #call(piece: Json): void {
    const index = typeof piece.index === "number" ? piece.index : undefined;
    const id = typeof piece.id === "string" ? piece.id : "";
    const { name, arguments: written } = fieldsOf(piece.function);
    const known =
      (index === undefined ? undefined : this.#callsByIndex.get(index)) ?? this.#callsById.get(id);
    const part = known ?? this.#answer.open<CallPart>({ type: "toolCall", id: "", name: "", written: [] });
    if (index !== undefined) this.#remember(this.#callsByIndex, index, part);
    if (id !== "") this.#remember(this.#callsById, id, part);
    part.id ||= id;
    if (part.name === "" && typeof name === "string" && this.#answer.counts(name)) part.name = name;
    this.#answer.addArguments(part, typeof written === "string" ? written : "");
  }

  /** Counts each new key, because a server could send keys of one call without end. */
  #remember<Key extends string | number>(calls: Map<Key, CallPart>, key: Key, part: CallPart): void {
    if (!calls.has(key)) this.#answer.counts(String(key));
    calls.set(key, part);
  }
}

/** Returns the message of an error in the stream. Routers add the message of the provider behind them. */
function errorIn(error: unknown): string {
  const { message, metadata } = fieldsOf(error);
  const words = typeof message === "string" && message !== "" ? message : JSON.stringify(error);
  const { raw } = fieldsOf(metadata);
  return raw && !words.includes(String(raw)) ? `${words}\n${String(raw)}` : words;
}

/** Reads the usage. Cached tokens are in one of three fields, depending on the server. */
function usageOf(usage: Json, { settings }: ProviderModel) {
  const details = fieldsOf(usage.prompt_tokens_details);
  const cacheRead = amount(details.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens);
  const cacheWrite = amount(details.cache_write_tokens);
  const input = Math.max(0, amount(usage.prompt_tokens) - cacheRead - cacheWrite);
  return priced(settings.cost, { input, output: amount(usage.completion_tokens), cacheRead, cacheWrite });
}
