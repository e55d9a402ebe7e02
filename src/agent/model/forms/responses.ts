// Reads the events of OpenAI's Responses API as compatible servers send them, and passes them on in OpenAI's
// own form: each item is added before its pieces come, and is done before the response is.

import { fieldsOf, isObject, listOf, textOf } from "../../../core/json.ts";
import { RequestError } from "../call.ts";
import { EventForm } from "./event-form.ts";
import type { Json } from "./plain-stream.ts";
import { plainReason, stoppedAnswer } from "./stop-reasons.ts";

/** The type of the item that the pieces of an event belong to. */
const ITEM_OF: Readonly<Record<string, string>> = {
  "response.output_text.delta": "message",
  "response.refusal.delta": "message",
  "response.function_call_arguments.delta": "function_call",
  "response.function_call_arguments.done": "function_call",
  "response.reasoning_summary_text.delta": "reasoning",
  "response.reasoning_summary_part.done": "reasoning",
  "response.reasoning_text.delta": "reasoning",
};
const CUT = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
const ENDS = ["response.completed", "response.incomplete", "response.done"];

interface Item {
  readonly at: number;
  readonly id: string | undefined;
  readonly callId: string | undefined;
  readonly type: unknown;
  text: string;
  isDone: boolean;
}

export class ResponsesForm extends EventForm {
  readonly #items: Item[] = [];

  take(event: Json): void {
    const { type, item } = event;
    if (ENDS.includes(String(type))) this.#finish(fieldsOf(event.response));
    else if (Array.isArray(event.output)) this.#finish(event);
    else if (type === "response.failed") throw new RequestError(JSON.stringify(event.response ?? event));
    else if (type === "response.created" && isObject(event.response)) this.push(event);
    else if (type === "response.output_item.added" && isObject(item)) this.#add(item, event.output_index);
    else if (type === "response.output_item.done" && isObject(item)) this.#complete(item, event.output_index);
    else this.#takePiece(event, ITEM_OF[String(type)]);
  }

  #takePiece(event: Json, kind: string | undefined): void {
    if (kind === undefined) return;
    const { item_id: id, output_index: index } = event;
    const added = { type: kind, id: textOf(id) ?? "", call_id: "", name: "" };
    const known = this.#itemOf({ id }, index, kind) ?? this.#add(added, index);
    this.hasContent = true;
    if (kind === "message") known.text += textOf(event.delta) ?? "";
    this.push({ ...event, output_index: known.at });
  }

  /** Without the last event of the response, what came may not be all. */
  end(isWhole: boolean): void {
    if (!this.hasEnded && isWhole && this.hasContent) this.#finish({ status: "completed" });
  }

  /** Returns the item of an event. Some servers give it another id in each event, or none. */
  #itemOf(event: Json, index: unknown, type: unknown) {
    const isSame = (one: Item): boolean =>
      (textOf(event.id) !== undefined && one.id === event.id) ||
      (textOf(event.call_id) !== undefined && one.callId === event.call_id);
    const alike = this.#items.filter((one) => one.type === type);
    const open = alike.filter(({ isDone }) => !isDone);
    return alike.find(isSame) ?? open.findLast((one) => index === undefined || one.at === index);
  }

  #add(item: Json, index: unknown): Item {
    const isFree = typeof index === "number" && this.#items.every(({ at }) => at !== index);
    const at = isFree ? index : this.#items.reduce((last, one) => Math.max(last, one.at + 1), 0);
    const known: Item = {
      at,
      id: textOf(item.id),
      callId: textOf(item.call_id),
      type: item.type,
      ...{ text: "", isDone: false },
    };
    this.#items.push(known);
    this.push({ type: "response.output_item.added", output_index: at, item });
    return known;
  }

  #complete(item: Json, index: unknown): void {
    const known = this.#itemOf(item, index, item.type) ?? this.#add(item, index);
    if (known.isDone) return;
    known.isDone = true;
    this.hasContent = true;
    const isTextMissing = item.type === "message" && listOf(item.content).length === 0;
    const content = [{ type: "output_text", text: known.text }];
    const whole = isTextMissing ? { ...item, content } : item;
    this.push({ type: "response.output_item.done", output_index: known.at, item: whole });
  }

  #finish(response: Json): void {
    if (isObject(response.error)) throw new RequestError(JSON.stringify(response));
    const reason = textOf(fieldsOf(response.incomplete_details).reason) ?? "";
    const plain = plainReason(reason);
    if (plain === "stopped") throw stoppedAnswer(reason);
    this.hasEnded = true;
    this.isOver = true;
    // Some servers send an item only here.
    listOf(response.output).forEach((item, index) => {
      if (!isObject(item)) return;
      const isKnown = this.#items.some((one) => one.isDone && one.type === item.type && one.at === index);
      if (!isKnown) this.#complete(item, undefined);
    });
    for (const { at, id, type, text, isDone } of this.#items) {
      if (isDone || type !== "message") continue;
      const item = { type, id: id ?? "", content: [{ type: "output_text", text }] };
      this.push({ type: "response.output_item.done", output_index: at, item });
    }
    const output = listOf(response.output);
    const ended = {
      ...response,
      output,
      ...(plain === "length" ? CUT : { status: "completed", incomplete_details: null }),
    };
    this.push({ type: "response.completed", response: ended });
  }
}
