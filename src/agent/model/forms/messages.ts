// Reads the events of Anthropic's Messages API as compatible servers send them, and passes them on in
// Anthropic's own form: each block is opened before its pieces come, and the message has a beginning and an
// end.

import { fieldsOf, isObject, listOf, textOf } from "../../../core/json.ts";
import { EventForm } from "./event-form.ts";
import type { Json } from "./plain-stream.ts";
import { plainReason, stoppedAnswer } from "./stop-reasons.ts";

interface Block {
  readonly at: number;
  readonly type: string;
  /** Arguments that came with the start of the block. They count if no pieces follow. */
  whole?: string | undefined;
}

/** The type of the block that a piece belongs to, and the type of the piece, by the piece's field. */
const PIECES: Readonly<Record<string, readonly [block: string, piece: string]>> = {
  text: ["text", "text_delta"],
  thinking: ["thinking", "thinking_delta"],
  signature: ["thinking", "signature_delta"],
  partial_json: ["tool_use", "input_json_delta"],
};

export class MessagesForm extends EventForm {
  #hasBegun = false;
  readonly #blocks = new Map<unknown, Block>();
  #lastBlock: Block | undefined;
  #count = 0;
  #hasCalls = false;
  #hasReason = false;

  take(event: Json): void {
    switch (event.type) {
      case "message_start":
        this.#begin(fieldsOf(event.message));
        break;
      case "message":
        this.#begin(event);
        listOf(event.content).forEach((block, index) => {
          this.#open(index, fieldsOf(block));
          this.#close(this.#blocks.get(index), index);
        });
        this.#stop(event, event);
        break;
      case "content_block_start":
        this.#open(event.index, fieldsOf(event.content_block));
        break;
      case "content_block_delta":
        this.#addPiece(event.index, fieldsOf(event.delta));
        break;
      case "content_block_stop":
        this.#close(this.#blocks.get(event.index), event.index);
        break;
      case "message_delta":
        this.#stop(fieldsOf(event.delta), event);
        break;
      case "message_stop":
        this.isOver = true;
        this.hasEnded ||= this.hasContent;
    }
  }

  end(isWhole: boolean): void {
    if (!this.hasEnded && !(isWhole && this.hasContent)) return;
    this.#begin({});
    for (const [index, block] of this.#blocks) this.#close(block, index);
    if (!this.#hasReason) this.#stop({ stop_reason: this.#hasCalls ? "tool_use" : "end_turn" }, {});
    this.push({ type: "message_stop" });
  }

  #begin(message: Json): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.push({ type: "message_start", message: { ...message, usage: fieldsOf(message.usage) } });
  }

  #open(index: unknown, block: Json): void {
    this.#begin({});
    const { text, thinking, signature, input, ...plain } = block;
    const type = textOf(block.type) ?? "";
    this.#lastBlock = { at: this.#count, type };
    this.#count += 1;
    this.#blocks.set(index, this.#lastBlock);
    this.#hasCalls ||= type === "tool_use";
    this.hasContent ||= type === "tool_use" || type === "redacted_thinking";
    const empty = type === "text" ? { text: "" } : type === "thinking" ? { thinking: "" } : { input: {} };
    this.push({
      type: "content_block_start",
      index: this.#lastBlock.at,
      content_block: { ...plain, ...empty },
    });
    // A block may already contain its text or arguments.
    const written = isObject(input) && Object.keys(input).length > 0 ? JSON.stringify(input) : textOf(input);
    this.#addPiece(index, { text, thinking, signature });
    if (type === "tool_use") this.#lastBlock.whole = written;
  }

  #addPiece(index: unknown, delta: Json): void {
    for (const [field, [type, piece]] of Object.entries(PIECES)) {
      const words = isObject(delta[field]) ? JSON.stringify(delta[field]) : textOf(delta[field]);
      if (words === undefined) continue;
      this.hasContent = true;
      const started = this.#blocks.get(index) ?? this.#blocks.get(undefined);
      const known = started ?? (index === undefined ? this.#lastBlock : undefined);
      if (known?.type !== type) this.#open(index, { type, id: `call_${this.#count}` });
      const block = known?.type === type ? known : this.#lastBlock;
      const at = block?.at ?? 0;
      if (block !== undefined) delete block.whole;
      const last = this.last;
      const before = last?.type === "content_block_delta" && last.index === at ? fieldsOf(last.delta) : {};
      if (before.type === piece) before[field] = `${String(before[field])}${words}`;
      else this.push({ type: "content_block_delta", index: at, delta: { type: piece, [field]: words } });
    }
  }

  #close(block: Block | undefined, index: unknown): void {
    if (block === undefined) return;
    const { whole } = block;
    if (whole !== undefined) this.#addPiece(index, { partial_json: whole });
    this.#blocks.delete(index);
    this.push({ type: "content_block_stop", index: block.at });
  }

  #stop(delta: Json, { usage }: Json): void {
    const reason = textOf(delta.stop_reason);
    const plain = reason === undefined ? undefined : plainReason(reason);
    if (plain === "stopped") throw stoppedAnswer(reason, textOf(fieldsOf(delta.stop_details).explanation));
    this.#begin({});
    this.hasEnded ||= reason !== undefined;
    this.#hasReason ||= reason !== undefined;
    const stop_reason = plain === "length" ? "max_tokens" : this.#hasCalls ? "tool_use" : "end_turn";
    const ended = reason === undefined ? {} : { ...delta, stop_reason };
    this.push({ type: "message_delta", delta: ended, usage });
  }
}
