// Reads an answer of Anthropic's Messages API: events that open blocks, add to them, and end the message.

import { fieldsOf, isObject, jsonOf } from "../../core/json.ts";
import { LongText } from "../../core/text/text-delta.ts";
import {
  type Answer,
  amount,
  type CallPart,
  type Part,
  priced,
  type TextPart,
  type ThinkingPart,
  type Tokens,
} from "./answer.ts";
import type { AnthropicCompat } from "./provider-shapes.ts";
import type { ServerEvent } from "./sse.ts";
import { type AnswerReader, type ProviderModel, WireError } from "./wire.ts";

type Json = Record<string, unknown>;

const words = (value: unknown): string => (typeof value === "string" ? value : "");

const STOPS: Readonly<Record<string, string>> = {
  end_turn: "stop",
  pause_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "toolUse",
};

/** Names of the events that are read; others are ignored. A name may be missing. */
const NAMES = new Set([
  "",
  "error",
  "message_start",
  "message_delta",
  "message_stop",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
]);

const NO_TOKENS: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 };

export class AnthropicReader implements AnswerReader {
  readonly #model: ProviderModel;
  readonly #answer: Answer;
  readonly #fallbacks: AnthropicCompat["allowedFallbackModels"];
  readonly #parts = new Map<unknown, Part>();
  #tokens = NO_TOKENS;
  #rates: ProviderModel["settings"]["cost"];
  #reason: string | undefined;
  #refusal = "";
  #hasStarted = false;
  #hasEnded = false;

  constructor(model: ProviderModel, answer: Answer, compat: AnthropicCompat) {
    this.#model = model;
    this.#answer = answer;
    this.#fallbacks = compat.allowedFallbackModels;
    this.#rates = model.settings.cost;
  }

  take({ name, data }: ServerEvent): boolean {
    if (name === "error") throw new WireError(data);
    if (!NAMES.has(name)) return false;
    const event = jsonOf(data);
    if (event === undefined)
      throw new WireError(`Could not parse Anthropic SSE event ${name}: malformed JSON`);
    if (!isObject(event)) return false;
    switch (event.type) {
      case "content_block_delta":
        this.#delta(event.index, fieldsOf(event.delta));
        return false;
      case "content_block_start":
        this.#open(event.index, fieldsOf(event.content_block));
        return false;
      case "content_block_stop":
        this.#parts.delete(event.index);
        return false;
      case "message_start":
        this.#start(fieldsOf(event.message));
        return false;
      case "message_delta":
        this.#stopped(fieldsOf(event.delta));
        this.#count(event.usage);
        return false;
      case "message_stop":
        this.#hasEnded = true;
        return true;
      case "error":
        throw new WireError(data);
      default:
        return false;
    }
  }

  end(): void {
    if (this.#hasStarted && !this.#hasEnded)
      throw new WireError("Anthropic stream ended before message_stop");
    if (this.#reason === undefined) throw new WireError("Anthropic stream ended without a stop reason");
    if (this.#refusal !== "") throw new WireError(this.#refusal);
  }

  #start(message: Json): void {
    this.#hasStarted = true;
    const { model } = message;
    const fallback = this.#fallbacks?.find(
      (one) => one.provider === this.#model.provider.id && one.model === model,
    );
    this.#rates = fallback?.cost ?? this.#model.settings.cost;
    this.#count(message.usage);
  }

  /** Reads token counts. Later counts omit unchanged values. */
  #count(counts: unknown): void {
    const usage = fieldsOf(counts);
    const now = (value: unknown, before: number): number =>
      value === undefined || value === null ? before : amount(value);
    const { input, output, cacheRead, cacheWrite, cacheWriteLong = 0 } = this.#tokens;
    const long = fieldsOf(usage.cache_creation).ephemeral_1h_input_tokens;
    this.#tokens = {
      input: now(usage.input_tokens, input),
      output: now(usage.output_tokens, output),
      cacheRead: now(usage.cache_read_input_tokens, cacheRead),
      cacheWrite: now(usage.cache_creation_input_tokens, cacheWrite),
      cacheWriteLong: now(long, cacheWriteLong),
    };
    this.#answer.usage = priced(this.#rates, this.#tokens);
  }

  #open(index: unknown, block: Json): void {
    const part = partOf(block);
    if (block.type === "fallback" && this.#answer.parts.length > 0)
      throw new WireError("Anthropic performed an unsupported mid-output model fallback");
    if (part === undefined) return;
    this.#parts.set(index, this.#answer.open(part));
    // A block may already contain its text.
    if (block.type === "text") this.#answer.addText(part as TextPart, words(block.text));
    if (block.type === "thinking") this.#answer.addThinking(part as ThinkingPart, words(block.thinking));
  }

  #delta(index: unknown, delta: Json): void {
    const part = this.#parts.get(index);
    if (part === undefined) return;
    if (part.type === "text" && delta.type === "text_delta") this.#answer.addText(part, words(delta.text));
    if (part.type === "toolCall" && delta.type === "input_json_delta")
      this.#answer.addArguments(part, words(delta.partial_json));
    if (part.type !== "thinking") return;
    if (delta.type === "thinking_delta") this.#answer.addThinking(part, words(delta.thinking));
    if (delta.type !== "signature_delta") return;
    const signature = words(delta.signature);
    this.#answer.counts(signature);
    part.thinkingSignature = `${part.thinkingSignature ?? ""}${signature}`;
  }

  #stopped(delta: Json): void {
    const reason = words(delta.stop_reason);
    if (reason === "") return;
    this.#reason = reason;
    this.#answer.stopReason = STOPS[reason];
    if (this.#answer.stopReason !== undefined) return;
    if (reason === "refusal") {
      const said = words(fieldsOf(delta.stop_details).explanation);
      this.#refusal = said === "" ? "The model refused to complete the request" : said;
    } else if (reason === "sensitive") this.#refusal = "The provider stopped the answer as sensitive content";
    else throw new WireError(`Unhandled stop reason: ${reason}`);
  }
}

function partOf(block: Json): Part | undefined {
  switch (block.type) {
    case "text":
      return { type: "text", text: new LongText() };
    case "thinking":
      return { type: "thinking", thinking: new LongText(), thinkingSignature: words(block.signature) };
    case "redacted_thinking": {
      const shown = { type: "thinking", thinking: new LongText("[Reasoning redacted]") } as const;
      return { ...shown, thinkingSignature: words(block.data), redacted: true };
    }
    case "tool_use": {
      const { id, name, input } = block;
      const given = isObject(input) ? { whole: input } : {};
      return { type: "toolCall", id: words(id), name: words(name), written: [], ...given } as CallPart;
    }
    default:
      return undefined;
  }
}
