// Owns the forms in which an answer leaves: the error of a failure, and what an unexpected one tells.
// AN1: an unexpected error is logged whole and answered with a reference only: no stack, no internals.
// AN2: a problem of the store is told in its own words, which name the way out.

import { CODES, type Failure, fail } from "../core/errors.ts";
import type { Redactor } from "../core/redact.ts";
import { StoreProblem } from "../store/problems.ts";
import type { World } from "../world.ts";
import type { ResponseFrame, WireError } from "./protocol.ts";

/** Codes after which the same request may well succeed. */
const RETRYABLE: ReadonlySet<string> = new Set([
  "queue_full",
  "rate_limited",
  "shutting_down",
  "node_unavailable",
  "store_unavailable",
  "internal",
]);

export function wireError(failure: Failure, redactor: Redactor): WireError {
  const { code, error, hint, details } = failure;
  const { retryAfterMs, ...facts } = details ?? {};
  const text = hint === undefined ? error : `${error}. ${hint}`;
  return {
    code: CODES[code].rpc,
    message: redactor.mask(text),
    details: { ...facts, code, ...(hint === undefined ? {} : { hint }) },
    ...(RETRYABLE.has(code) ? { retryable: true } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
  };
}

export function failureFrame(id: string, failure: Failure, redactor: Redactor): ResponseFrame {
  return { type: "res", id, ok: false, error: wireError(failure, redactor) };
}

/** What the store says of its files is for a person to put right, and says how; anything else is a bug. */
export function thrown(world: World, error: unknown, where: string): Failure {
  if (!(error instanceof StoreProblem)) return unexpected(world, error, where);
  world.log.error({ err: error }, `the store failed in ${where}`);
  return fail("store_unavailable", error.message);
}

/** Turns what should not have happened into an answer: the log has the rest, under the same reference. */
function unexpected(world: World, error: unknown, where: string): Failure {
  const reference = world.ids.uuid();
  world.log.error({ err: error, reference }, `unexpected error in ${where}`);
  return fail("internal", `something went wrong in the gateway; its log has the reason under ${reference}`, {
    details: { reference },
  });
}
