// Reads the events of OpenAI's chat completions as the many compatible servers send them, and passes them on
// in OpenAI's own form.

import { fieldsOf, isObject, jsonOf, listOf, textOf } from "../../../core/json.ts";
import { RequestError } from "../call.ts";
import type { Json, PlainForm } from "./plain-stream.ts";
import { plainReason, stoppedAnswer } from "./stop-reasons.ts";

const THINKING_FIELDS = ["reasoning_content", "reasoning", "reasoning_text", "thinking"] as const;

interface ToolCall {
  id: string;
  name: string;
  written: string;
  /** The last piece of `written`. A look at the text itself copies it, for each of its many pieces. */
  last: string;
  /** The end of `written`, which was not passed on yet. */
  waiting: string;
  isAnnounced: boolean;
  signature?: string;
}

export class ChatForm implements PlainForm {
  hasEnded = false;
  readonly isOver = false;
  hasContent = false;
  readonly #signed: (id: string, signature: string) => void;
  readonly #calls: ToolCall[] = [];
  readonly #byIndex = new Map<number, ToolCall>();
  readonly #byId = new Map<string, ToolCall>();
  #reason = "";
  #text = "";
  /** True once a piece has come as `delta`. Then a whole `message` only repeats it. */
  #hasDeltas = false;
  #thinking = "";
  #thinkingField = "";
  #details: unknown[] = [];
  #usage: Json | undefined;
  #isClosed = false;
  #ids: Json = {};

  /** `signed`: gets the thought signature of a tool call. */
  constructor(signed: (id: string, signature: string) => void) {
    this.#signed = signed;
  }

  take(event: Json): void {
    const [first] = listOf(event.choices);
    // Ollama's own format has the message outside a list of choices.
    const choice = isObject(first) ? first : event;
    if (choice.error) throw new RequestError(JSON.stringify(choice));
    this.#ids = { id: event.id, model: event.model };
    const usage = event.usage ?? choice.usage;
    if (isObject(usage)) this.#usage = usage;
    if (isObject(choice.delta)) {
      this.#piece(choice.delta);
      this.#hasDeltas ||= this.hasContent;
    } else if (isObject(choice.message) && !this.#hasDeltas) this.#piece(choice.message);
    else if (typeof choice.text === "string") this.#add(choice.text);
    const reason =
      textOf(choice.finish_reason) ?? (event.done === true ? textOf(event.done_reason) : undefined);
    if (reason === undefined || reason.toLowerCase() === "null") return;
    this.#reason = reason;
    this.hasEnded = true;
  }

  end(isWhole: boolean): void {
    if (!this.hasEnded && !(isWhole && this.hasContent)) return;
    const plain = plainReason(this.#reason);
    if (plain === "stopped") throw stoppedAnswer(this.#reason);
    this.#reason = plain === "length" ? "length" : this.#calls.length > 0 ? "tool_calls" : "stop";
    this.hasEnded = true;
    this.#isClosed = true;
  }

  flush(): readonly Json[] {
    const calls = this.#calls.flatMap((call, index) => this.#passOn(call, index));
    const delta: Json = {
      ...(this.#thinking === "" ? {} : { [this.#thinkingField]: this.#thinking }),
      ...(this.#details.length === 0 ? {} : { reasoning_details: this.#details }),
      ...(this.#text === "" ? {} : { content: this.#text }),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    };
    const events: Json[] = [];
    if (Object.keys(delta).length > 0)
      events.push({ ...this.#ids, choices: [{ index: 0, delta, finish_reason: null }] });
    if (this.#isClosed)
      events.push({ ...this.#ids, choices: [{ index: 0, delta: {}, finish_reason: this.#reason }] });
    if (this.#usage !== undefined) events.push({ ...this.#ids, choices: [], usage: this.#usage });
    this.#isClosed = false;
    this.#text = "";
    this.#thinking = "";
    this.#details = [];
    this.#usage = undefined;
    return events;
  }

  #add(text: string): void {
    if (text !== "") this.hasContent = true;
    this.#text += text;
  }

  #think(text: string, field: string): void {
    if (text === "") return;
    this.hasContent = true;
    // The first field counts for the whole answer, because the thinking is sent back in it.
    this.#thinkingField ||= field === "thinking" ? "reasoning_content" : field;
    this.#thinking += text;
  }

  #piece(delta: Json): void {
    const { content, refusal, tool_calls, function_call, reasoning_details } = delta;
    // Some servers send the same thinking in two fields.
    const field = THINKING_FIELDS.find((name) => textIn(delta[name]) !== "");
    if (field !== undefined) this.#think(textIn(delta[field]), field);
    // The content is a text, a part, or a list of parts, of which some may be thinking.
    for (const part of [content].flat()) {
      if (isObject(part) && part.type === "thinking") this.#think(textIn(part.thinking), "reasoning_content");
      else this.#add(textIn(part));
    }
    this.#add(textIn(refusal));
    this.#details.push(...listOf(reasoning_details));
    if (listOf(reasoning_details).length > 0) this.hasContent = true;
    for (const call of [tool_calls, function_call].flat()) if (isObject(call)) this.#call(call);
  }

  #call(piece: Json): void {
    const { index, id, extra_content } = piece;
    const made = fieldsOf(piece.function ?? piece.custom ?? piece);
    const name = textOf(made.name) ?? "";
    const written = argumentsIn(made.arguments ?? made.input);
    const call = this.#callFor(index, textOf(id) ?? "", name, written);
    if (call === undefined) return;
    this.hasContent = true;
    call.name ||= name;
    if (typeof index === "number") this.#byIndex.set(index, call);
    if (typeof id === "string" && id !== "") {
      call.id ||= id;
      this.#byId.set(id, call);
    }
    const signature = textOf(fieldsOf(fieldsOf(extra_content).google).thought_signature);
    if (signature !== undefined) call.signature = signature;
    if (isPlaceholder(call) && written.startsWith("{")) call.written = call.waiting = "";
    call.written += written;
    if (written.trim() !== "") call.last = written;
    call.waiting += written;
  }

  /** Returns the call that a piece belongs to, or undefined if the piece only repeats what is known. */
  #callFor(index: unknown, id: string, name: string, written: string): ToolCall | undefined {
    const place = typeof index === "number" ? this.#byIndex.get(index) : undefined;
    // Some servers give each piece a new id.
    const isTail = () => name === "" && place !== undefined && place.written !== "" && !hasWhole(place);
    const known = this.#byId.get(id) ?? (id === "" || place?.id === "" || isTail() ? place : undefined);
    const isHead = name !== "" || id !== "";
    const call = known ?? (isHead ? undefined : this.#calls.at(-1));
    const isLike = (one: ToolCall): boolean =>
      written !== "" && written.length === one.written.length && (name === "" || name === one.name);
    const repeats = (one: ToolCall): boolean => isLike(one) && written === one.written && isWhole(written);
    if (call === undefined) {
      const isNameless = id === "" && index === undefined;
      return isNameless && this.#calls.some(repeats) ? undefined : this.#open();
    }
    if (repeats(call)) return undefined;
    if (name === "" || call.name === "") return call;
    // A complete call has ended, so a piece with a name begins the next one.
    const hasEnded = written !== "" && !isPlaceholder(call) && hasWhole(call);
    return name !== call.name || hasEnded ? this.#open() : call;
  }

  #open(): ToolCall {
    const call: ToolCall = { id: "", name: "", written: "", last: "", waiting: "", isAnnounced: false };
    this.#calls.push(call);
    return call;
  }

  /** Returns the new piece of a call. Its first piece waits for the name. */
  #passOn(call: ToolCall, index: number): Json[] {
    if (!this.#isClosed && (call.name === "" || isPlaceholder(call))) return [];
    const { waiting } = call;
    if (call.isAnnounced && waiting === "") return [];
    call.waiting = "";
    if (call.isAnnounced) return [{ index, function: { arguments: waiting } }];
    call.isAnnounced = true;
    // Two calls with one id would become one.
    const isTaken = this.#calls.slice(0, index).some(({ id }) => id === call.id);
    const id = call.id === "" || isTaken ? `${call.id || "call"}_${index}` : call.id;
    if (call.signature !== undefined) this.#signed(id, call.signature);
    return [{ index, id, type: "function", function: { name: call.name, arguments: waiting } }];
  }
}

/** An empty object may stand before the real arguments. */
const isPlaceholder = ({ written }: ToolCall): boolean => written.length < 8 && written.trim() === "{}";

const isWhole = (written: string): boolean =>
  written.trimEnd().endsWith("}") && jsonOf(written) !== undefined;

const hasWhole = ({ last, written }: ToolCall): boolean => last.trimEnd().endsWith("}") && isWhole(written);

/** Returns arguments as text. Some servers send them as an object. */
function argumentsIn(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

/** Returns the text of a value that may be a text, a part with a text, or a list of these. */
function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textIn).join("");
  const { text, content, thinking } = fieldsOf(value);
  return [text, content, thinking].find((part) => typeof part === "string") ?? "";
}
