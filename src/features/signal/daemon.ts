// Calls a signal-cli daemon over HTTP, and opens its event stream.
// SD1: a failed call says whether the daemon may have received it (HX1 of exchange.ts).

import type { IncomingMessage } from "node:http";
import {
  brokenWords,
  exchange,
  lateWords,
  outgoingOf,
  STOPPED,
  type Unanswered,
} from "../../channels/exchange.ts";
import { type Fields, fieldsOf, jsonOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { Clock } from "../../world.ts";

/** Name of the daemon in error messages. */
const SERVER = "signal-cli";

/** Result of a call. */
export type Answer =
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: Fields }
  | Unanswered;

export interface CallLimits {
  readonly timeoutMs: number;
  readonly bytesMax: number;
  readonly signal?: AbortSignal;
}

/** A response whose head has arrived, or the reason why none has arrived. */
export type Opened = { readonly kind: "open"; readonly answer: IncomingMessage; close(): void } | Unanswered;

export interface Daemon {
  call(method: string, params: Fields, limits: CallLimits): Promise<Answer>;
  /** Sends a GET request. The caller reads the body. Aborting the signal closes the response. */
  open(
    path: string,
    headers: Readonly<Record<string, string>>,
    limits: { readonly headMs: number; readonly signal: AbortSignal },
  ): Promise<Opened>;
}

/** Parses a response: a JSON-RPC result or error. */
function readAnswer(status: number, body: Buffer): Answer {
  const said = fieldsOf(jsonOf(body));
  if ("result" in said) return { kind: "result", value: said.result };
  const { code, message, data } = fieldsOf(said.error);
  if (typeof code === "number") {
    return { kind: "error", code, message: typeof message === "string" ? message : "", data: fieldsOf(data) };
  }
  // A 4xx status (unknown path, no access) means that the daemon did not execute the call.
  const reached = !(status >= 400 && status < 500);
  return { kind: "failed", reached, why: `the server there is not a signal-cli daemon (HTTP ${status})` };
}

/** Returns the client of the daemon at this address (without a trailing `/`). */
export function daemonAt(url: string, clock: Clock): Daemon {
  let calls = 0;
  const to = { purpose: "channel", configured: url } as const;
  return {
    async call(method, params, { timeoutMs, bytesMax, signal }) {
      calls += 1;
      const body = JSON.stringify({ jsonrpc: "2.0", id: `parley-${calls}`, method, params });
      const asked = { ...to, server: SERVER, url: `${url}/api/v1/rpc`, body, timeoutMs, bytesMax };
      const done = await exchange({ ...asked, ...optional({ stop: signal }) }, clock);
      if (done.kind === "answered") return readAnswer(done.status, done.body);
      return { kind: "failed", reached: done.reached, why: done.why };
    },
    async open(path, headers, { headMs, signal }) {
      if (signal.aborted) return { kind: "failed", reached: false, why: STOPPED };
      const outgoing = outgoingOf({ ...to, url: `${url}${path}`, headers });
      if (outgoing.kind === "failed") return outgoing;
      const { request, reached } = outgoing;
      const close = (): void => {
        signal.removeEventListener("abort", close);
        request.destroy();
      };
      signal.addEventListener("abort", close);
      return new Promise((resolve) => {
        const fail = (why: string): void => {
          deadline.cancel();
          close();
          resolve({ kind: "failed", reached: reached(), why });
        };
        const broken = (error?: unknown): void => fail(brokenWords(SERVER, reached(), error));
        const deadline = clock.after(headMs, () => fail(lateWords(SERVER, headMs)));
        // Never remove this error listener: without it, a later error would crash the process. It also ends
        // the response if the connection breaks.
        request.on("error", broken);
        request.once("close", () => broken());
        request.once("response", (answer) => {
          deadline.cancel();
          resolve({ kind: "open", answer, close });
        });
        request.end();
      });
    },
  };
}
