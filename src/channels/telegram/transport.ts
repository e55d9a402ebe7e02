// Owns one exchange with a Bot API server over HTTP: bounded in time and size, and clear about what happened.
// TT1: an exchange that failed says whether the server may have got the request: a request leaves once the
//      connection stands (and, with TLS, the server has proven who it is), not before.
// TT2: what does something goes over a connection of its own: one that was kept could be closed by the other
//      side while the request is under way. Only reading, which may be repeated, keeps its connection.
// TT3: no address is in what comes back: a bot's address holds its token.

import type { ClientRequest, Agent as PlainAgent, RequestOptions } from "node:http";
import type { Agent as SecureAgent } from "node:https";
import { plainHttp, secureHttp } from "../../world/http.ts";
import type { Clock } from "../../world.ts";

/** An AbortSignal, or what a library has in its place. */
interface Stop {
  readonly aborted: boolean;
  addEventListener(type: "abort", heard: () => void): void;
  removeEventListener(type: "abort", heard: () => void): void;
}

interface Exchange {
  readonly url: string;
  /** JSON, sent by POST. Absent: GET. */
  readonly body?: string;
  /** From the first attempt to connect to the last byte. */
  readonly timeoutMs: number;
  /** Of the answer's body. */
  readonly bytesMax: number;
  readonly stop?: Stop;
  /** Over the connection that is kept for reading. */
  readonly isKept?: boolean;
}

export type Exchanged =
  | { readonly kind: "answered"; readonly status: number; readonly body: Buffer }
  /** `reached`: the server may have got the request. */
  | { readonly kind: "failed"; readonly reached: boolean; readonly why: string };

export interface Transport {
  exchange(exchange: Exchange): Promise<Exchanged>;
  close(): void;
}

/** To the server at this address. */
export function openTransport(apiRoot: string, clock: Clock): Transport {
  const isSecure = apiRoot.startsWith("https:");
  const { Agent } = isSecure ? secureHttp() : plainHttp();
  const agents = { kept: new Agent({ keepAlive: true }), fresh: new Agent({ keepAlive: false }) };
  return {
    exchange: (exchange) => {
      const agent = exchange.isKept === true ? agents.kept : agents.fresh;
      return run(exchange, { agent, isSecure, clock });
    },
    close: () => {
      agents.kept.destroy();
      agents.fresh.destroy();
    },
  };
}

interface Way {
  readonly agent: PlainAgent | SecureAgent;
  readonly isSecure: boolean;
  readonly clock: Clock;
}

function optionsOf({ body }: Exchange, agent: Way["agent"]): RequestOptions {
  const headers = { "user-agent": "parley", accept: "*/*" };
  if (body === undefined) return { method: "GET", agent, headers };
  const ofBody = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return { method: "POST", agent, headers: { ...headers, ...ofBody } };
}

/** A code of the system or of TLS, such as ECONNREFUSED. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^[A-Z0-9_]{1,60}$/.test(code) ? ` (${code})` : "";
}

/** The request, not sent yet. Undefined: the address is not valid (TT3: the error would tell it). */
function requestOf(exchange: Exchange, { agent, isSecure }: Way): ClientRequest | undefined {
  try {
    return (isSecure ? secureHttp() : plainHttp()).request(exchange.url, optionsOf(exchange, agent));
  } catch {
    return undefined;
  }
}

function run(exchange: Exchange, way: Way): Promise<Exchanged> {
  const { body, timeoutMs, bytesMax, stop } = exchange;
  const { isSecure, clock } = way;
  const outgoing = requestOf(exchange, way);
  if (outgoing === undefined) {
    return Promise.resolve({ kind: "failed", reached: false, why: "the server's address is not valid" });
  }
  return new Promise((resolve) => {
    let reached = false;
    const end = (exchanged: Exchanged): void => {
      deadline.cancel();
      stop?.removeEventListener("abort", abort);
      if (exchanged.kind === "failed") outgoing.destroy();
      resolve(exchanged);
    };
    const fail = (why: string): void => end({ kind: "failed", reached, why });
    const abort = (): void => fail("it was ended from here");
    const deadline = clock.at(clock.now() + timeoutMs, () => fail(`no answer within ${timeoutMs / 1_000} s`));
    stop?.addEventListener("abort", abort);
    outgoing.once("socket", (socket) => {
      if (outgoing.reusedSocket) reached = true;
      else socket.once(isSecure ? "secureConnect" : "connect", () => (reached = true));
    });
    outgoing.on("error", (error) => {
      const broke = reached ? "the connection broke off" : "the server could not be reached";
      fail(`${broke}${codeOf(error)}`);
    });
    outgoing.on("response", (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) fail(`the answer is longer than ${bytesMax} bytes`);
        else chunks.push(chunk);
      });
      answer.on("error", (error) => fail(`the connection broke off${codeOf(error)}`));
      answer.on("end", () =>
        answer.complete
          ? end({ kind: "answered", status: answer.statusCode ?? 0, body: Buffer.concat(chunks) })
          : fail("the connection broke off"),
      );
    });
    if (stop?.aborted === true) abort();
    else outgoing.end(body);
  });
}
