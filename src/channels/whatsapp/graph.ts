// Owns one request to the Graph API of the platform, or to where it keeps media.
// WG1: a request costs bounded time and memory, whatever answers: one deadline for all of it, no redirect,
//      and no more of an answer than is wanted.
// WG2: whether the request may have arrived is always known: before the connection stands, it has not.
//      Each has a connection of its own: one that was kept could be closed from the other side unseen.
// WG3: no token is in what is said of a failure.

import type { IncomingMessage, RequestOptions } from "node:http";
import { plainHttp, secureHttp } from "../../world/http.ts";
import type { World } from "../../world.ts";

/** The longest pause that the platform can ask for. */
const RETRY_AFTER_MAX_MS = 3_600_000;

export interface GraphRequest {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly token: string;
  readonly body?: object;
  /** Of the answer. */
  readonly bytesMax: number;
  /** From the first attempt to connect to the last byte that is read. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type GraphAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly bytes: Uint8Array;
      readonly retryAfterMs?: number;
    }
  /** It is longer than what was wanted. */
  | { readonly kind: "too_large"; readonly status: number }
  /** It has certainly not arrived. */
  | { readonly kind: "unreached"; readonly error: string }
  /** It may have arrived. */
  | { readonly kind: "lost"; readonly error: string };

function retryAfter(answer: IncomingMessage): { retryAfterMs?: number } {
  const text = answer.headers["retry-after"]?.trim() ?? "";
  if (!/^\d{1,9}$/.test(text)) return {};
  return { retryAfterMs: Math.min(Number(text) * 1_000, RETRY_AFTER_MAX_MS) };
}

/** Reads an answer to its end, or to where it is too large. */
function readAnswer(answer: IncomingMessage, bytesMax: number, done: (read: GraphAnswer) => void): void {
  const status = answer.statusCode ?? 0;
  const pieces: Buffer[] = [];
  let bytes = 0;
  if (Number(answer.headers["content-length"]) > bytesMax) {
    done({ kind: "too_large", status });
    return;
  }
  answer.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > bytesMax) done({ kind: "too_large", status });
    else pieces.push(piece);
  });
  answer.once("end", () =>
    done({ kind: "answered", status, bytes: Buffer.concat(pieces), ...retryAfter(answer) }),
  );
  const broken = (): void => done({ kind: "lost", error: "the answer broke off" });
  answer.on("error", broken);
  answer.once("close", broken);
}

/** Asks once. What comes of it is a value; nothing is thrown. */
export async function askGraph(request: GraphRequest, { clock }: World): Promise<GraphAnswer> {
  const { method, url, token, body, bytesMax, timeoutMs, signal } = request;
  const isSecure = url.protocol === "https:";
  const { request: open } = isSecure ? secureHttp() : plainHttp();
  const text = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const options: RequestOptions = {
    method,
    agent: false,
    headers: {
      authorization: `Bearer ${token}`,
      accept: "*/*",
      // The platform's store of media answers nobody who has no name.
      "user-agent": "parley",
      ...(text === undefined ? {} : { "content-type": "application/json", "content-length": text.length }),
    },
  };
  return new Promise((resolve) => {
    let connected = false;
    const failed = (error: string): GraphAnswer => ({ kind: connected ? "lost" : "unreached", error });
    const end = (answer: GraphAnswer): void => {
      deadline.cancel();
      signal?.removeEventListener("abort", giveUp);
      outgoing?.destroy();
      resolve(answer);
    };
    const giveUp = (): void => end(failed("the request was given up"));
    const late = (): void => end(failed(`${url.host} gave no answer within ${timeoutMs / 1_000} s`));
    const deadline = clock.at(clock.now() + timeoutMs, late);
    let outgoing: ReturnType<typeof open> | undefined;
    try {
      outgoing = open(url, options, (answer) => readAnswer(answer, bytesMax, end));
    } catch {
      // A token with a line end in it, for one.
      end(failed("the access token holds characters that no token has"));
      return;
    }
    outgoing.once("socket", (socket) =>
      socket.once(isSecure ? "secureConnect" : "connect", () => {
        connected = true;
      }),
    );
    outgoing.on("error", (error: NodeJS.ErrnoException) =>
      end(failed(`${url.host} could not be reached (${error.code ?? "the connection broke"})`)),
    );
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted === true) giveUp();
    else outgoing.end(text);
  });
}
