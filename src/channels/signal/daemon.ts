// Owns the calls of a signal-cli daemon over HTTP: bounded in time and size, and clear about what happened.
// SD1: a call that failed says whether the daemon may have got it: it leaves once the connection stands (and,
//      with TLS, the daemon has proven who it is), not before.
// SD2: each call has a connection of its own: one that was kept could be closed by the other side while the
//      call is under way.

import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { jsonOf } from "../../core/json.ts";
import { plainHttp, secureHttp } from "../../world/http.ts";
import type { Clock } from "../../world.ts";
import { type Fields, fieldsOf } from "../fields.ts";

/** What became of a call. */
export type Answer =
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: Fields }
  /** `reached`: the daemon may have got the call. */
  | { readonly kind: "failed"; readonly reached: boolean; readonly why: string };

export interface CallLimits {
  /** From the first attempt to connect to the last byte. */
  readonly timeoutMs: number;
  /** Of the answer. */
  readonly bytesMax: number;
  readonly signal?: AbortSignal;
}

/** Where an answer is, once its head is there; or why there is none. */
export type Opened =
  | { readonly kind: "open"; readonly answer: IncomingMessage; close(): void }
  | { readonly kind: "failed"; readonly reached: boolean; readonly why: string };

export interface Daemon {
  call(method: string, params: Fields, limits: CallLimits): Promise<Answer>;
  /** A GET whose answer is read by whoever asked, and closed when the signal fires. */
  open(
    path: string,
    headers: Readonly<Record<string, string>>,
    limits: { readonly headMs: number; readonly signal: AbortSignal },
  ): Promise<Opened>;
}

/** A code of the system or of TLS, such as ECONNREFUSED. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : "";
}

interface Sent {
  readonly request: ClientRequest;
  reached(): boolean;
}

/** Sends a request; `reached` tells whether the other side may have got it by now. */
async function send(url: string, options: RequestOptions, body: string | undefined): Promise<Sent> {
  const isSecure = url.startsWith("https:");
  const { request } = isSecure ? secureHttp() : plainHttp();
  let reached = false;
  const outgoing = request(url, { ...options, agent: false });
  outgoing.once("socket", (socket) => {
    socket.once(isSecure ? "secureConnect" : "connect", () => {
      reached = true;
    });
  });
  outgoing.end(body);
  return { request: outgoing, reached: () => reached };
}

function whyBroken(error: unknown, reached: boolean): string {
  const how = reached ? "the connection to signal-cli broke off" : "signal-cli could not be reached";
  return `${how}${codeOf(error)}`;
}

interface Exchanged {
  readonly status: number;
  readonly text: string;
}

/** One request and its whole answer. */
async function exchange(
  url: string,
  body: string,
  { timeoutMs, bytesMax, signal }: CallLimits,
  clock: Clock,
): Promise<Exchanged | Extract<Answer, { kind: "failed" }>> {
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "user-agent": "parley",
  };
  if (signal?.aborted === true) return { kind: "failed", reached: false, why: "it was ended from here" };
  const { request, reached } = await send(url, { method: "POST", headers }, body);
  return new Promise((resolve) => {
    const end = (what: Exchanged | Extract<Answer, { kind: "failed" }>): void => {
      deadline.cancel();
      signal?.removeEventListener("abort", abort);
      request.destroy();
      resolve(what);
    };
    const fail = (why: string): void => end({ kind: "failed", reached: reached(), why });
    const abort = (): void => fail("it was ended from here");
    const deadline = clock.at(clock.now() + timeoutMs, () => {
      fail(`signal-cli gave no answer within ${timeoutMs / 1_000} s`);
    });
    signal?.addEventListener("abort", abort);
    request.on("error", (error) => fail(whyBroken(error, reached())));
    request.on("response", (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) fail(`signal-cli's answer is longer than ${bytesMax} bytes`);
        else chunks.push(chunk);
      });
      answer.on("error", (error) => fail(whyBroken(error, true)));
      answer.on("end", () => {
        end({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") });
      });
    });
  });
}

/** What an answer's text says: a result or an error of JSON-RPC. */
function readAnswer({ status, text }: Exchanged): Answer {
  const said = fieldsOf(jsonOf(text));
  if ("result" in said) return { kind: "result", value: said.result };
  const { code, message, data } = fieldsOf(said.error);
  if (typeof code === "number") {
    return { kind: "error", code, message: typeof message === "string" ? message : "", data: fieldsOf(data) };
  }
  // What is refused before it was looked at (no such path, no access) has done nothing.
  const reached = !(status >= 400 && status < 500);
  return { kind: "failed", reached, why: `what answers there is no signal-cli daemon (HTTP ${status})` };
}

/** The daemon at this address, without a `/` at its end. */
export function daemonAt(url: string, clock: Clock): Daemon {
  let calls = 0;
  return {
    async call(method, params, limits) {
      calls += 1;
      const body = JSON.stringify({ jsonrpc: "2.0", id: `parley-${calls}`, method, params });
      const done = await exchange(`${url}/api/v1/rpc`, body, limits, clock);
      return "kind" in done ? done : readAnswer(done);
    },
    async open(path, headers, { headMs, signal }) {
      if (signal.aborted) return { kind: "failed", reached: false, why: "it was ended from here" };
      const options = { method: "GET", headers: { ...headers, "user-agent": "parley" } };
      const { request, reached } = await send(`${url}${path}`, options, undefined);
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
        const deadline = clock.at(clock.now() + headMs, () => {
          fail(`signal-cli gave no answer within ${headMs / 1_000} s`);
        });
        // Stays: what breaks later is told by the answer's own end.
        request.on("error", (error) => fail(whyBroken(error, reached())));
        request.once("close", () => fail("the connection to signal-cli was closed"));
        request.once("response", (answer) => {
          deadline.cancel();
          resolve({ kind: "open", answer, close });
        });
      });
    },
  };
}
