// Owns one exchange with a platform's server over HTTP: bounded in time and size, and clear about what
// happened. What an answer means is its channel's business.
// HX1: an exchange that failed says whether the server may have got the request (I5): a request leaves once
//      the connection stands (and, with TLS, the server has proven who it is), not before.
// HX2: each has a connection of its own, unless an agent is given: one that was kept could be closed by the
//      other side while the request is under way.
// HX3: one deadline for all of it, no redirect is followed, and no more of an answer is kept than is wanted.
// HX4: neither the address nor a header is in what is said of a failure: a token may be in them.

import type { ClientRequest, IncomingHttpHeaders, Agent as PlainAgent, RequestOptions } from "node:http";
import type { Agent as SecureAgent } from "node:https";
import { optional } from "../core/optional.ts";
import { AddressRefused, type Destination, outgoingRequest } from "../world/outgoing.ts";
import type { Clock } from "../world.ts";

/** The longest pause that a server can ask for. */
const RETRY_AFTER_MAX_MS = 3_600_000;

/** An AbortSignal, or what a library has in its place. */
interface Stop {
  readonly aborted: boolean;
  addEventListener(type: "abort", heard: () => void): void;
  removeEventListener(type: "abort", heard: () => void): void;
}

interface Asked extends Pick<Destination, "purpose" | "configured"> {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, sent by POST. Absent: GET. */
  readonly body?: string;
  /** Keeps connections. Absent: none is kept. */
  readonly agent?: PlainAgent | SecureAgent;
}

export interface Exchange extends Asked {
  /** What the server is called in words, such as `signal-cli`. */
  readonly server: string;
  /** From the first attempt to connect to the last byte. */
  readonly timeoutMs: number;
  /** Of the answer's body. */
  readonly bytesMax: number;
  readonly stop?: Stop;
}

/** There is no answer that could be read to its end. `reached`: the server may have got the request. */
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
      /** How long the server asks to be left alone. */
      readonly retryAfterMs?: number;
    }
  /** The answer is longer than what was wanted. */
  | { readonly kind: "too_long"; readonly status: number; readonly reached: true; readonly why: string }
  | Unanswered;

export interface Outgoing {
  readonly kind: "outgoing";
  readonly request: ClientRequest;
  /** Whether the server may have got it by now. */
  reached(): boolean;
}

/** The words for a request that failed (HX4: the error itself could hold a secret). */
const UNSENDABLE = "the address or the token holds characters that it can't have";

const unsent = (why: string): Unanswered => ({ kind: "failed", reached: false, why });

/** A request, not sent yet, or why it can't be sent. */
export function outgoingOf({ purpose, configured, url, headers, body, agent }: Asked): Outgoing | Unanswered {
  const destination = { purpose, configured, url: String(url) };
  const isSecure = destination.url.startsWith("https:");
  const ofBody = { "content-type": "application/json", "content-length": Buffer.byteLength(body ?? "") };
  const options: RequestOptions = {
    method: body === undefined ? "GET" : "POST",
    agent: agent ?? false,
    headers: {
      accept: "*/*",
      // Some servers answer nobody who has no name.
      "user-agent": "parley",
      ...(body === undefined ? {} : ofBody),
      ...headers,
    },
  };
  let reached = false;
  try {
    const request = outgoingRequest(destination, options);
    request.once("socket", (socket) => {
      if (request.reusedSocket) reached = true;
      else socket.once(isSecure ? "secureConnect" : "connect", () => (reached = true));
    });
    return { kind: "outgoing", request, reached: () => reached };
  } catch (error) {
    return unsent(error instanceof AddressRefused ? error.message : UNSENDABLE);
  }
}

/** What is said of one that was ended before it was answered. */
export const STOPPED = "it was ended from here";

export function lateWords(server: string, timeoutMs: number): string {
  return `${server} gave no answer within ${timeoutMs / 1_000} s`;
}

/** What a broken connection is called, with the code of the system or of TLS, such as ECONNREFUSED. */
export function brokenWords(server: string, reached: boolean, error?: unknown): string {
  if (error instanceof AddressRefused) return error.message;
  const { code } = (error ?? {}) as { code?: unknown };
  const shown = typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : "";
  return `${reached ? `the connection to ${server} broke off` : `${server} could not be reached`}${shown}`;
}

/** How long a server asks to be left alone: seconds, or a date. */
export function retryAfterIn(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const text = headers["retry-after"]?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs;
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : undefined;
}

/** Asks once. What comes of it is a value; nothing is thrown. */
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
    const deadline = clock.at(clock.now() + timeoutMs, () => fail(lateWords(server, timeoutMs)));
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
