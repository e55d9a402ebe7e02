// Defines the failures of a client: a `GatewayError` says what is wrong and, if possible, what to do.

import type { WireError } from "../frames.ts";

/**
 * The gateway's error codes, and the client's own: gateway unreachable, connection closed, aborted by the
 * caller.
 */
export type ClientCode = WireError["code"] | "UNREACHABLE" | "CLOSED" | "ABORTED";

interface ErrorFacts extends Partial<WireError> {
  readonly hint?: string;
  readonly cause?: unknown;
}

export class GatewayError extends Error {
  readonly code: ClientCode;
  /** The detailed code of a failure of the gateway, such as `session_not_found`. */
  readonly reason: string | undefined;
  /** The next step for the caller, if known. `message` includes it. */
  readonly hint: string | undefined;
  /** Machine-readable facts about the failure, including `code` and `hint`. */
  readonly details: Readonly<Record<string, unknown>>;
  /** True if the same request can succeed later. */
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ClientCode, message: string, more: ErrorFacts = {}) {
    const { details = {}, hint = details.hint, cause, retryable, retryAfterMs } = more;
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GatewayError";
    this.code = code;
    this.reason = typeof details.code === "string" ? details.code : undefined;
    this.hint = typeof hint === "string" ? hint : undefined;
    this.details = details;
    this.retryable = retryable ?? (code === "UNREACHABLE" || code === "CLOSED");
    this.retryAfterMs = retryAfterMs;
  }
}

export function errorOf(error: WireError | undefined): GatewayError {
  if (error === undefined)
    return new GatewayError("UNAVAILABLE", "the gateway returned an error without a reason");
  return new GatewayError(error.code, error.message, error);
}

export function unreachable(url: string, reason: string): GatewayError {
  const hint = "Check that it runs, or start it: npx parley-gateway gateway";
  return new GatewayError("UNREACHABLE", `no gateway at ${url} (${reason}). ${hint}`, { hint });
}

export function aborted(signal: AbortSignal, what: string): GatewayError {
  return new GatewayError("ABORTED", what, { cause: signal.reason });
}
