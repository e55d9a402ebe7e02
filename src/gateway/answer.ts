// Turns failures and unexpected errors into the errors that callers get.
// An unexpected error is logged in full; the caller gets a reference only: no stack, no internals.
// A problem of the store keeps its own message, which explains how to fix it.

import type { WireError } from "../contract/frames.ts";
import { optional } from "../core/optional.ts";
import { CODES, type Failure, fail } from "../core/shapes/errors.ts";
import type { Redactor } from "../core/text/redact/redact.ts";
import { StoreProblem } from "../store/problems.ts";
import type { World } from "../world.ts";

/** Codes after which the same request may succeed later. */
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
    details: { ...redactor.all({ ...facts, ...optional({ hint }) }), code },
    ...(RETRYABLE.has(code) ? { retryable: true } : {}),
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
  };
}

/**
 * Converts a thrown error to a failure. A `StoreProblem` is for an operator to fix; any other error is a bug.
 */
export function thrown(world: World, error: unknown, where: string): Failure {
  if (!(error instanceof StoreProblem)) {
    const reference = world.ids.uuid();
    world.log.error({ err: error, reference }, `unexpected error in ${where}`);
    return fail(
      "internal",
      `an unexpected error occurred in the gateway; its log has the reason under ${reference}`,
      {
        details: { reference },
      },
    );
  }
  world.log.error({ err: error }, `the store failed in ${where}`);
  return fail("store_unavailable", error.message);
}
