// Classifies a failed model request: too large, refused for a part of it, to be retried after a delay, or
// final.
// R1: a request whose text was shown, or whose tool call had begun, is never retried.
// R2: a delay requested by the provider is respected; one above RETRY_AFTER_MAX_MS makes the failure final. A
//     delay of zero ("0", a date in the past) is ignored, and the backoff applies.

import { grownPause } from "../../core/backoff.ts";
import type { HistoryPart } from "../../core/shapes/message.ts";
import type { AnswerHeaders } from "./call.ts";

const BACKOFF_MIN_MS = 500;
const BACKOFF_MAX_MS = 30_000;
const RETRY_AFTER_MAX_MS = 5 * 60_000;

/** Facts about a failed request. */
export interface RequestFailure {
  /** Message for people. */
  readonly error: string;
  /** Text of the provider or its client. Default: `error`. */
  readonly raw?: string;
  /** HTTP status. Absent if there was no response. */
  readonly status?: number;
  readonly headers?: AnswerHeaders;
  /** True if text was passed on or a tool call had begun. */
  readonly begun: boolean;
  /** The part of the conversation that the provider blames, or its length. */
  readonly refusal?: "length" | HistoryPart;
  /** True if the provider's message suggests a temporary problem. */
  readonly passing: boolean;
}

export type Verdict =
  | { readonly kind: "overflow" }
  | { readonly kind: "refused"; readonly part: HistoryPart }
  /** `isPassing`: whether the same request may succeed later. */
  | { readonly kind: "final"; readonly error: string; readonly isPassing?: true }
  | { readonly kind: "retry"; readonly afterMs: number };

/** Providers also answer 429 if an account has no credit. Then waiting doesn't help. */
const SPENT = /insufficient_quota|credit balance|billing|out of budget|usage limit reached/i;
const BROKEN_STREAM = /json|parse|malformed/i;
const BROKEN_LINE = /ECONN|EPIPE|EAI_AGAIN|ENOTFOUND|socket|network|fetch|terminated|closed|reset|connect/i;

/**
 * Decides whether to retry after attempt `tries` of `triesMax`. `random` is uniform in [0, 1); `nowMs` is the
 * wall clock.
 */
export function judge(
  failure: RequestFailure,
  { tries, triesMax }: { readonly tries: number; readonly triesMax: number },
  random: number,
  nowMs: number,
): Verdict {
  if (failure.begun) return { kind: "final", error: failure.error };
  if (failure.refusal === "length") return { kind: "overflow" };
  if (failure.refusal !== undefined) return { kind: "refused", part: failure.refusal };
  const askedMs = askedDelayMs(failure, nowMs);
  if (!isPassing(failure, askedMs !== undefined)) return { kind: "final", error: failure.error };
  if (askedMs !== undefined && askedMs > RETRY_AFTER_MAX_MS) {
    const seconds = Math.ceil(askedMs / 1000);
    return {
      kind: "final",
      error: `the provider asks to wait ${seconds} s before the next try: ${failure.error}`,
      isPassing: true,
    };
  }
  if (tries >= triesMax) {
    return { kind: "final", error: `${failure.error} (given up after ${tries} tries)`, isPassing: true };
  }
  const ceilingMs = grownPause(BACKOFF_MIN_MS, BACKOFF_MAX_MS, tries - 1);
  const backoffMs = Math.round(ceilingMs * (0.5 + random / 2));
  return { kind: "retry", afterMs: askedMs || backoffMs };
}

function isPassing(failure: RequestFailure, hasAskedDelay: boolean): boolean {
  const shouldRetry = failure.headers?.get("x-should-retry");
  if (shouldRetry === "false") return false;
  const raw = failure.raw ?? failure.error;
  if (SPENT.test(raw) && !hasAskedDelay) return false;
  if (shouldRetry === "true") return true;
  const { status } = failure;
  if (status === undefined || (status >= 200 && status < 300)) {
    return failure.passing || BROKEN_STREAM.test(raw) || BROKEN_LINE.test(raw);
  }
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Returns the requested delay: `retry-after-ms`, `retry-after`, or `retryDelay` in a Google error body. */
function askedDelayMs(failure: RequestFailure, nowMs: number): number | undefined {
  const millis = Number.parseFloat(failure.headers?.get("retry-after-ms") ?? "");
  if (millis >= 0) return millis;
  const text = failure.headers?.get("retry-after") ?? "";
  if (/^\s*\d+(\.\d*)?\s*$/.test(text)) return Number.parseFloat(text) * 1000;
  // A date contains the name of a month; without this check almost any number would parse as a year.
  const dateMs = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(dateMs)) return Math.max(0, dateMs - nowMs);
  const inBody = /"retryDelay"\s*:\s*"([\d.]+)s"/.exec((failure.raw ?? failure.error).replaceAll('\\"', '"'));
  return inBody?.[1] === undefined ? undefined : Number.parseFloat(inBody[1]) * 1000;
}
