// Reads the many words with which servers say why an answer ended.

import { RequestError } from "../call.ts";

export type PlainReason = "stop" | "length" | "stopped";

const LENGTH = /length|max_?(output_?|new_?|completion_?)?tokens|context_window|token_limit/i;
const FILTERED = /filter|safety|sensitive|recitation|blocklist|prohibited|spii|refusal|guardrail/i;
const BROKEN = /error|fail|abort|insufficient|malformed/i;

/** Returns the kind of a reason. An unknown one means that the answer is complete. */
export function plainReason(reason: string): PlainReason {
  if (FILTERED.test(reason) || BROKEN.test(reason)) return "stopped";
  return LENGTH.test(reason) ? "length" : "stop";
}

/** Returns the failure of an answer that the provider has stopped. `words`: those of the provider, if any. */
export function stoppedAnswer(reason: string | undefined, words?: string): RequestError {
  return new RequestError(words ?? `the provider stopped the answer: ${reason}`);
}
