// Reads the chunks of Google's Gemini API as it and compatible servers send them, and passes them on with the
// reasons that the client library knows.

import { fieldsOf, isObject, jsonOf, listOf, textOf } from "../../../core/json.ts";
import { RequestError } from "../call.ts";
import { EventForm } from "./event-form.ts";
import type { Json } from "./plain-stream.ts";
import { plainReason, stoppedAnswer } from "./stop-reasons.ts";

export class GeminiForm extends EventForm {
  take(event: Json): void {
    const [first] = listOf(event.candidates);
    const blocked = textOf(fieldsOf(event.promptFeedback).blockReason);
    if (first === undefined && blocked !== undefined)
      throw new RequestError(`the provider refused the request: ${blocked}`);
    if (!isObject(first)) {
      this.push(event);
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
    if (plain !== "stopped") this.push({ ...event, candidates: [candidate] });
    else {
      this.push({ ...event, candidates: [{ content: candidate.content }] });
      throw stoppedAnswer(reason, textOf(first.finishMessage));
    }
  }

  end(isWhole: boolean): void {
    if (this.hasEnded || !isWhole || !this.hasContent) return;
    this.hasEnded = true;
    this.push({ candidates: [{ content: { parts: [] }, finishReason: "STOP" }] });
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
