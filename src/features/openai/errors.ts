// Converts a failure to OpenAI's error shape.
// The field for OpenAI's error code contains Parley's own code.

import { CODES, type Failure } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { wireError } from "../../gateway/answer.ts";

interface OpenAiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string;
  };
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/** `retry`: whether the same request may succeed later without running anything twice. */
export function openAiError(failure: Failure, redactor: Redactor): { body: OpenAiError; retry: boolean } {
  const { message, retryable } = wireError(failure, redactor);
  const status = CODES[failure.code].http;
  const param = failure.details?.param;
  const error = {
    message,
    type: TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error"),
    param: typeof param === "string" ? param : null,
    code: failure.code === "agent_not_found" ? "model_not_found" : failure.code,
  };
  return { body: { error }, retry: retryable === true && failure.details?.accepted !== true };
}
