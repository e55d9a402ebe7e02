// The steps of a model server's script.

import type { ProviderApi } from "../../../src/core/shapes/settings/settings.ts";

export interface ServedUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** The steps that all four formats can express. */
export type SpokenStep =
  | { readonly step: "text"; readonly text: string; readonly chunks: number }
  | { readonly step: "thinking"; readonly text: string }
  | { readonly step: "call"; readonly name: string; readonly id: string | undefined; readonly json: string }
  | { readonly step: "usage"; readonly usage: ServedUsage }
  | { readonly step: "stop"; readonly reason: StopWord };

export type Step =
  | SpokenStep
  | { readonly step: "drop" | "hang" | "cut" | "malformed" }
  | { readonly step: "pause"; readonly until: Promise<unknown> }
  | { readonly step: "mark"; readonly reached: () => void };

/**
 * The reason why an answer ends. `filtered`: the provider's content filter. `strange`: a reason that no
 * client knows.
 */
export type StopWord = "stop" | "toolUse" | "length" | "filtered" | "strange";

/** An HTTP error instead of a stream. */
export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown | ((api: ProviderApi) => unknown);
}

/** Says `text` in `chunks` pieces. */
export function text(text: string, chunks = 3): Step {
  return { step: "text", text, chunks };
}

export function thinking(text: string): Step {
  return { step: "thinking", text };
}

/** Calls a tool. A string in `args` is sent unchanged, valid JSON or not. */
export function call(name: string, args: Record<string, unknown> | string = {}, id?: string): Step {
  return { step: "call", name, id, json: typeof args === "string" ? args : JSON.stringify(args) };
}

/** Reports token counts in the format of the provider. Default: 100 in, 20 out. */
export function usage(counts: Partial<ServedUsage>): Step {
  return { step: "usage", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, ...counts } };
}

/** Ends the answer with this reason instead of the usual one. */
export function stop(reason: StopWord): Step {
  return { step: "stop", reason };
}

/** Breaks the connection at this step. */
export function drop(): Step {
  return { step: "drop" };
}

/** Ends the HTTP response at this step, without the end marker of the streaming format. */
export function cut(): Step {
  return { step: "cut" };
}

/** Sends nothing more until the client disconnects. */
export function hang(): Step {
  return { step: "hang" };
}

/** Waits at this step until `until` settles. */
export function pause(until: Promise<unknown>): Step {
  return { step: "pause", until };
}

/** Calls `reached` when everything before this step has been sent. */
export function mark(reached: () => void): Step {
  return { step: "mark", reached };
}

/** Sends an event whose data is invalid JSON. */
export function malformed(): Step {
  return { step: "malformed" };
}

/** Answers with an HTTP error in the provider's format. */
export function httpError(
  status: number,
  message: string,
  headers: Record<string, string> = {},
  type = "api_error",
): HttpError {
  const body = (api: ProviderApi): unknown => {
    switch (api) {
      case "anthropic-messages":
        return { type: "error", error: { type, message }, request_id: "req_test" };
      case "google-generative-ai":
        return { error: { code: status, message, status: type.toUpperCase(), ...googleDetails(headers) } };
      default:
        return { error: { message, type, code: type, param: null } };
    }
  };
  return { status, headers, body };
}

/** Google sends the time until a retry in the body. */
function googleDetails(headers: Record<string, string>): object {
  const seconds = headers["retry-after"];
  if (seconds === undefined) return {};
  const type = "type.googleapis.com/google.rpc.RetryInfo";
  return { details: [{ "@type": type, retryDelay: `${seconds}s` }] };
}

/** Answers with status 429. `seconds`: the time after which the client may retry. */
export function rateLimited(seconds?: number): HttpError {
  const headers: Record<string, string> = seconds === undefined ? {} : { "retry-after": String(seconds) };
  return httpError(429, "Rate limit reached for requests", headers, "rate_limit_error");
}

export function serverError(): HttpError {
  return httpError(500, "The server had an error while processing your request", {}, "server_error");
}

export function overloaded(): HttpError {
  return httpError(529, "Overloaded", {}, "overloaded_error");
}
