// Owns what a client's failures look like.
// CE1: whatever goes wrong is a `GatewayError` that says what it was and, where something can be done, what.

import type { WireError } from "../protocol.ts";

/**
 * The gateway's error codes, and what a client itself can meet: nobody there, a connection that ended, the
 * caller's own signal.
 */
export type ClientCode = WireError["code"] | "UNREACHABLE" | "CLOSED" | "ABORTED";

interface ErrorFacts extends Partial<WireError> {
  readonly hint?: string;
  readonly cause?: unknown;
}

export class GatewayError extends Error {
  readonly code: ClientCode;
  /** The finer code of a failure of the gateway, such as `session_not_found`. */
  readonly reason: string | undefined;
  /** What to do about it, where the gateway or the client knows. It is part of `message`, too. */
  readonly hint: string | undefined;
  /** Machine-readable facts of the failure; `code` and `hint` are among them. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Whether the same request may well succeed later. */
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
    return new GatewayError("UNAVAILABLE", "the gateway gave an error without a reason");
  return new GatewayError(error.code, error.message, error);
}

export function unreachable(url: string, reason: string): GatewayError {
  const hint = 'Is it running? "parley gateway" starts it.';
  return new GatewayError("UNREACHABLE", `no gateway at ${url} (${reason}). ${hint}`, { hint });
}

export function aborted(signal: AbortSignal, what: string): GatewayError {
  return new GatewayError("ABORTED", what, { cause: signal.reason });
}
