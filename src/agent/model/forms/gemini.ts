// Reads the chunks of Google's Gemini API as it and compatible servers send them, and passes them on with the
// reasons that the client library knows.

import { fieldsOf, isObject, jsonOf, listOf, textOf } from "../../../core/json.ts";
import { RequestError } from "../call.ts";
import type { Json, PlainForm } from "./plain-stream.ts";
import { plainReason } from "./stop-reasons.ts";

export class GeminiForm implements PlainForm {
  hasEnded = false;
  readonly isOver = false;
  hasContent = false;
  #out: Json[] = [];

  take(event: Json): void {
    const [first] = listOf(event.candidates);
    const blocked = textOf(fieldsOf(event.promptFeedback).blockReason);
    if (first === undefined && blocked !== undefined)
      throw new RequestError(`the provider refused the request: ${blocked}`);
    if (!isObject(first)) {
      this.#out.push(event);
      return;
    }
    const content = fieldsOf(first.content);
    const parts = listOf(content.parts).filter(isObject).map(plainPart);
    this.hasContent ||= parts.some(({ text }) => text !== "");
    const reason = textOf(first.finishReason);
    const plain = reason === undefined ? undefined : plainReason(reason);
    const candidate: Json = { ...first, content: { ...content, parts } };
    if (plain !== undefined) {
      candidate.finishReason = plain === "length" ? "MAX_TOKENS" : "STOP";
      this.hasEnded = true;
    }
    if (plain !== "stopped") this.#out.push({ ...event, candidates: [candidate] });
    else {
      this.#out.push({ ...event, candidates: [{ content: candidate.content }] });
      throw new RequestError(textOf(first.finishMessage) ?? `the provider stopped the answer: ${reason}`);
    }
  }

  end(isWhole: boolean): void {
    if (this.hasEnded || !isWhole || !this.hasContent) return;
    this.hasEnded = true;
    this.#out.push({ candidates: [{ content: { parts: [] }, finishReason: "STOP" }] });
  }

  flush(): readonly Json[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }
}

/** Returns the part with the arguments of a call as an object. */
function plainPart(part: Json): Json {
  const { functionCall } = part;
  if (!isObject(functionCall)) return part;
  const { args } = functionCall;
  const read = typeof args === "string" ? jsonOf(args) : args;
  return { ...part, functionCall: { ...functionCall, args: isObject(read) ? read : {} } };
}
