// Collects one answer of a model while it streams in: its blocks, its tokens, and its stop reason. After each
// read, new text and new thinking go to their listeners, at a cost that does not grow with the answer. `over`
// is called after each piece and returns an error if the answer has exceeded a limit. If a tool call's
// arguments are not a JSON object, the call keeps the text of the arguments, and is marked.

import { isObject, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { type AssistantMessage, type Usage, ZERO_USAGE } from "../../core/shapes/message.ts";
import type { LongText, TextDelta } from "../../core/text/text-delta.ts";
import { type ModelRequest, UNREADABLE_ARGUMENTS } from "./model.ts";

export interface TextPart {
  readonly type: "text";
  readonly text: LongText;
  textSignature?: string | undefined;
}
export interface ThinkingPart {
  readonly type: "thinking";
  readonly thinking: LongText;
  thinkingSignature?: string | undefined;
  redacted?: boolean | undefined;
}
export interface CallPart {
  readonly type: "toolCall";
  id: string;
  name: string;
  /** The pieces of the arguments. They are parsed once, at the end. */
  readonly written: string[];
  /** The arguments, if the provider sent them in one piece. */
  whole?: Readonly<Record<string, unknown>> | undefined;
  thoughtSignature?: string | undefined;
}
export type Part = TextPart | ThinkingPart | CallPart;

/** Bytes that may arrive anyway, beyond the answer's limit, for example as comments or one large event. */
const RAW_BYTES_ANYWAY = 1024 * 1024;
/** Bytes that may arrive in addition for each byte of content: events are longer than the text in them. */
const RAW_BYTES_PER_BYTE = 1024;
/** Bytes that a part counts in addition to its content, because an empty part also takes memory. */
const PART_BYTES = 64;

/** A text with this many waiting characters is passed on at once, so that its readers never take long. */
const PART_CHARS = 32 * 1024;

type OnDelta = (delta: TextDelta) => void;

/** Collects the text of all parts of one type, joined with newlines, and passes it on to the listener. */
class Passed<P extends Part> {
  readonly #on: OnDelta;
  #length = 0;
  #waiting = "";
  #part: P | undefined;

  constructor(on: OnDelta) {
    this.#on = on;
  }

  add(part: P, delta: string): void {
    const isNext = this.#part !== undefined && this.#part !== part;
    this.#part = part;
    this.#waiting += isNext ? `\n${delta}` : delta;
  }

  get isDue(): boolean {
    return this.#waiting.length >= PART_CHARS;
  }

  show(): void {
    const text = this.#waiting;
    if (text === "") return;
    const offset = this.#length;
    this.#length += text.length;
    this.#waiting = "";
    this.#on({ offset, text });
  }
}

export class Answer {
  readonly parts: Part[] = [];
  usage: Usage = ZERO_USAGE;
  /** `stop | length | toolUse | error`; undefined until the provider has sent it. */
  stopReason: string | undefined;
  /** True if text was published or a tool call has begun. */
  begun = false;
  readonly #limits: ModelRequest["limits"];
  readonly #text: Passed<TextPart>;
  readonly #thinking: Passed<ThinkingPart> | undefined;
  #bytes = 0;
  /** Received bytes that the content does not account for. */
  #idleBytes = 0;
  #calls = 0;

  constructor(limits: ModelRequest["limits"], onText: OnDelta, onThinking?: OnDelta) {
    this.#limits = limits;
    this.#text = new Passed(onText);
    if (onThinking !== undefined) this.#thinking = new Passed(onThinking);
  }

  /** Returns whether any text, thinking, signature or tool call has arrived. */
  get hasContent(): boolean {
    return this.#bytes > 0;
  }

  /** Counts received bytes. Only content makes up for them, so no stream is endless. */
  heard(bytes: number): void {
    this.#idleBytes += bytes;
  }

  /** Returns an error if the answer has exceeded a limit. */
  over(): string | undefined {
    const { maxAnswerBytes, maxAnswerToolCalls } = this.#limits;
    const bytes = this.#bytes + this.parts.length * PART_BYTES;
    if (bytes > maxAnswerBytes || this.#idleBytes > maxAnswerBytes + RAW_BYTES_ANYWAY)
      return limitText(`${maxAnswerBytes} bytes`, "maxAnswerBytes");
    if (this.#calls <= maxAnswerToolCalls) return undefined;
    return limitText(`${maxAnswerToolCalls} tool calls`, "maxAnswerToolCalls");
  }

  open<P extends Part>(part: P): P {
    this.parts.push(part);
    if (part.type === "thinking") this.counts(part.thinkingSignature ?? "");
    if (part.type === "toolCall") {
      this.counts(part.id + part.name + (part.whole === undefined ? "" : JSON.stringify(part.whole)));
      this.#calls += 1;
      this.begun = true;
    }
    return part;
  }

  addText(part: TextPart, delta: string): void {
    if (!this.counts(delta)) return;
    part.text.append(delta);
    this.begun = true;
    this.#text.add(part, delta);
    if (this.#text.isDue) this.show();
  }

  /**
   * Passes the text and the thinking that were added since the last call to their listeners. Clients call it
   * after each read. A long text does not wait for it.
   */
  show(): void {
    this.#thinking?.show();
    this.#text.show();
  }

  addThinking(part: ThinkingPart, delta: string): void {
    if (!this.counts(delta)) return;
    part.thinking.append(delta);
    this.#thinking?.add(part, delta);
    if (this.#thinking?.isDue) this.show();
  }

  addArguments(part: CallPart, delta: string): void {
    if (this.counts(delta)) part.written.push(delta);
  }

  /** Returns the blocks of the given types. Default: all blocks. */
  content(types: readonly Part["type"][] = ["text", "thinking", "toolCall"]): AssistantMessage["content"] {
    const parts = this.parts.filter(({ type }) => types.includes(type));
    return parts.flatMap((part) => {
      const isEmpty = part.type === "text" && part.text.length === 0 && part.textSignature === undefined;
      return isEmpty ? [] : [blockOf(part)];
    });
  }

  /** Counts a piece of the answer. Returns false if the piece is empty. */
  counts(delta: string): boolean {
    const bytes = Buffer.byteLength(delta);
    this.#bytes += bytes;
    this.#idleBytes = Math.max(0, this.#idleBytes - bytes * RAW_BYTES_PER_BYTE);
    return delta !== "";
  }
}

function limitText(what: string, setting: string): string {
  return (
    `the model's answer has more than ${what} (agents.defaults.${setting}, or the agent's own). ` +
    "The text received so far is kept. Ask for less at once, or raise that setting"
  );
}

function blockOf(part: Part): AssistantMessage["content"][number] {
  if (part.type === "text") {
    const { text, textSignature } = part;
    return { type: "text", text: text.text, ...optional({ textSignature }) };
  }
  if (part.type === "thinking") {
    const { thinking, thinkingSignature, redacted } = part;
    return {
      type: "thinking",
      thinking: thinking.text,
      ...optional({ thinkingSignature, redacted }),
    };
  }
  const { id, name, thoughtSignature } = part;
  return {
    type: "toolCall",
    id,
    name,
    arguments: argumentsOf(part),
    ...optional({ thoughtSignature }),
  };
}

function argumentsOf({ written, whole }: CallPart): Readonly<Record<string, unknown>> {
  const raw = written.join("");
  if (raw.trim() === "") return whole ?? {};
  const read = jsonOf(raw);
  // Some models write their JSON as a text in JSON.
  const inner = typeof read === "string" && read !== "" ? jsonOf(read) : read;
  if (isObject(inner)) return inner;
  const isEmpty = read === null || read === "" || (Array.isArray(read) && read.length === 0);
  return isEmpty ? {} : { [UNREADABLE_ARGUMENTS]: raw };
}

/** Reads a number of tokens. Local servers may report anything: an invalid value counts as 0. */
function amount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** Returns the usage with 0 in place of invalid amounts. */
export function plainUsage(usage: Usage): Usage {
  const input = amount(usage.input);
  const output = amount(usage.output);
  const cacheRead = amount(usage.cacheRead);
  const cacheWrite = amount(usage.cacheWrite);
  const { cost } = usage;
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: amount(usage.totalTokens) || input + output + cacheRead + cacheWrite,
    cost: {
      input: amount(cost.input),
      output: amount(cost.output),
      cacheRead: amount(cost.cacheRead),
      cacheWrite: amount(cost.cacheWrite),
      total: amount(cost.total),
    },
  };
}
