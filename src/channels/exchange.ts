// Makes one HTTP request to a platform's server, limited in time and size, with a clear result. The calling
// channel interprets the response.
// HX1: a failed request says whether the server may have received it (I5). A request is sent only after the
//      connection is established and, with TLS, the server is verified.
// HX2: each request has its own connection, unless an HTTP agent is given: the server could close a reused
//      connection while the request is in progress.
// One time limit covers the whole request, redirects are not followed, and the size of an answer is limited.
// HX4: an error message contains neither the address nor a header, because they may contain a token.

import type { ClientRequest, IncomingHttpHeaders, Agent as PlainAgent, RequestOptions } from "node:http";
import type { Agent as SecureAgent } from "node:https";
import { optional } from "../core/optional.ts";
import { AddressRefused, type Destination, outgoingRequest, whenConnected } from "../world/outgoing.ts";
import type { Clock } from "../world.ts";

/** Maximum pause that a server can request. */
const RETRY_AFTER_MAX_MS = 3_600_000;

/** An AbortSignal, or the object that a library uses instead. */
interface Stop {
  readonly aborted: boolean;
  addEventListener(type: "abort", heard: () => void): void;
  removeEventListener(type: "abort", heard: () => void): void;
}

interface RequestParts extends Pick<Destination, "purpose" | "configured"> {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body, which is sent with POST. JSON if it is a text. If absent, the request is a GET. */
  readonly body?: string | Buffer;
  /** HTTP agent that reuses connections. If absent, the request has its own connection. */
  readonly agent?: PlainAgent | SecureAgent;
}

export interface Exchange extends RequestParts {
  /** Name of the server in error messages, for example `signal-cli`. */
  readonly server: string;
  /** Time limit from the first attempt to connect to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Size limit of the answer's body. */
  readonly bytesMax: number;
  readonly stop?: Stop;
}

/**
 * The result of a request that got no complete answer. `reached`: the server may have received the request.
 */
export interface Unanswered {
  readonly kind: "failed";
  readonly reached: boolean;
  readonly why: string;
}

export type Exchanged =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly body: Buffer;
      /** Pause before a retry, if the server requests one. */
      readonly retryAfterMs?: number;
    }
  /** The answer exceeds the size limit. */
  | { readonly kind: "too_long"; readonly status: number; readonly reached: true; readonly why: string }
  | Unanswered;

export interface Outgoing {
  readonly kind: "outgoing";
  readonly request: ClientRequest;
  /** Returns whether the server may have received the request by now. */
  reached(): boolean;
}

/**
 * Error message for a request that cannot be created. It replaces the original error, which could contain a
 * secret (HX4).
 */
const UNSENDABLE = "the address or the token contains invalid characters";

const unsent = (why: string): Unanswered => ({ kind: "failed", reached: false, why });

/** Creates a request without sending it. If this fails, returns the reason. */
export function outgoingOf({
  purpose,
  configured,
  url,
  headers,
  body,
  agent,
}: RequestParts): Outgoing | Unanswered {
  const destination = { purpose, configured, url: String(url) };
  const ofBody = { "content-type": "application/json", "content-length": Buffer.byteLength(body ?? "") };
  const options: RequestOptions = {
    method: body === undefined ? "GET" : "POST",
    agent: agent ?? false,
    headers: {
      accept: "*/*",
      // Send a user agent, because some servers reject requests without one.
      "user-agent": "parley",
      ...(body === undefined ? {} : ofBody),
      ...headers,
    },
  };
  let reached = false;
  try {
    const request = outgoingRequest(destination, options);
    whenConnected(request, () => (reached = true));
    return { kind: "outgoing", request, reached: () => reached };
  } catch (error) {
    return unsent(error instanceof AddressRefused ? error.message : UNSENDABLE);
  }
}

/** Error message for a request that was cancelled before its answer. */
export const STOPPED = "it was canceled";

export function lateWords(server: string, timeoutMs: number): string {
  return `${server} gave no answer within ${timeoutMs / 1_000} s`;
}

/** Describes a lost connection, with the error code of the system or of TLS, like ECONNREFUSED. */
export function brokenWords(server: string, reached: boolean, error?: unknown): string {
  if (error instanceof AddressRefused) return error.message;
  const { code } = (error ?? {}) as { code?: unknown };
  const shown = typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : "";
  return `${reached ? `the connection to ${server} broke off` : `${server} could not be reached`}${shown}`;
}

/** Returns the pause from the Retry-After header, which contains seconds or a date. */
export function retryAfterIn(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const text = headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : undefined;
}

/** Makes one request. Never throws. */
export function exchange(asked: Exchange, clock: Clock): Promise<Exchanged> {
  const { server, timeoutMs, bytesMax, stop } = asked;
  const outgoing = outgoingOf(asked);
  if (outgoing.kind === "failed") return Promise.resolve(outgoing);
  const { request, reached } = outgoing;
  return new Promise((resolve) => {
    const end = (exchanged: Exchanged): void => {
      deadline.cancel();
      stop?.removeEventListener("abort", abort);
      if (exchanged.kind !== "answered") request.destroy();
      resolve(exchanged);
    };
    const fail = (why: string): void => end({ kind: "failed", reached: reached(), why });
    const abort = (): void => fail(STOPPED);
    const broken = (error?: unknown): void => fail(brokenWords(server, reached(), error));
    const deadline = clock.after(timeoutMs, () => fail(lateWords(server, timeoutMs)));
    stop?.addEventListener("abort", abort);
    request.on("error", broken);
    request.on("response", (answer) => {
      const { statusCode: status = 0, headers } = answer;
      const chunks: Buffer[] = [];
      let bytes = 0;
      const why = `the answer of ${server} is longer than ${bytesMax} bytes`;
      const tooLong = (): void => end({ kind: "too_long", status, reached: true, why });
      if (Number(headers["content-length"]) > bytesMax) return tooLong();
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) tooLong();
        else chunks.push(chunk);
      });
      answer.on("error", broken);
      answer.on("end", () => {
        if (!answer.complete) return broken();
        const retryAfterMs = retryAfterIn(headers, clock.now());
        end({ kind: "answered", status, body: Buffer.concat(chunks), ...optional({ retryAfterMs }) });
      });
    });
    if (stop?.aborted === true) abort();
    else request.end(asked.body);
  });
}
