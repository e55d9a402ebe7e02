// Sends a POST and reads the answer piece by piece. Uses Node's HTTP client and its shared agent, which keeps
// connections for reuse and uses a proxy that is named in the environment. Node's fetch would take 12 MB, and
// its web streams half of the time for a small piece.
// OS1: redirects are not followed; the reader gets the redirect's own status and headers.
// OS2: at most a few pieces are buffered; then the server has to wait.
// OS3: a reader may stop early. The connection is reused if the rest of the answer is short and arrives soon.

import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import {
  ConnectTimeout,
  type Destination,
  type FetchLimits,
  outgoingRequest,
  whenConnected,
} from "./outgoing.ts";
import type { Clock, Timer } from "./plain.ts";

const WAITING_BYTES_MAX = 256 * 1024;
/** Collected pieces are returned at once when they have this many bytes. */
const COLLECTED_BYTES = 16 * 1024;
/** Limits in time and bytes for the rest of an answer whose reader has stopped. */
const END_WAIT_MS = 1_000;
const END_BYTES_MAX = 64 * 1024;

const LEFT = new Error("the reader has stopped");

export interface Post extends Destination {
  readonly purpose: "model";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly limits: FetchLimits;
}

/** The headers of an answer. `get` returns null or undefined for a missing header. */
export interface AnswerHeaders {
  get(name: string): string | null | undefined;
}

export interface StreamedAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /**
   * Returns the next bytes, or undefined at the end. Rejects if the connection broke or the signal was
   * aborted. `collectMs`: collects small pieces for this time, or until the answer ends. Default 0: returns
   * the first bytes at once.
   */
  read(collectMs?: number): Promise<Uint8Array | undefined>;
  /** Stops reading. */
  leave(): void;
}

/** Sends the request and resolves at the first bytes of its answer. */
export async function outgoingPost(post: Post, signal: AbortSignal, clock: Clock): Promise<StreamedAnswer> {
  signal.throwIfAborted();
  const { headers, body, limits } = post;
  const options = {
    method: "POST",
    headers: { ...headers, "accept-encoding": "identity" },
    // Limits the silence of the socket until it is connected, also while a proxy opens the way. The time of
    // TLS through a proxy has no limit but the caller's.
    timeout: limits.connectTimeoutSeconds * 1_000,
  };
  const request = outgoingRequest(post, options);
  const exchange = new Exchange(request, signal, clock);
  request.end(body);
  return exchange.begun.promise;
}

/** Returns the headers with one value for each name. */
function headersOf(given: IncomingHttpHeaders): AnswerHeaders {
  return new Map(Object.entries(given).map(([name, value]) => [name, [value ?? []].flat().join(", ")]));
}

class Exchange implements StreamedAnswer {
  readonly begun = Promise.withResolvers<StreamedAnswer>();
  status = 0;
  headers: AnswerHeaders = new Map();
  readonly #request: ClientRequest;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #onAbort = (): void => this.#stop(this.#signal.reason);
  #response: IncomingMessage | undefined;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #waiting: PromiseWithResolvers<Uint8Array | undefined> | undefined;
  /** Set while the reader collects pieces. */
  #collecting: Timer | undefined;
  /** The end of the answer; undefined while it continues. */
  #end: { readonly error?: unknown } | undefined;
  #left: Timer | undefined;

  constructor(request: ClientRequest, signal: AbortSignal, clock: Clock) {
    this.#request = request;
    this.#signal = signal;
    this.#clock = clock;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    const onSilence = (): void => this.#stop(new ConnectTimeout("no connection in time"));
    request.once("timeout", onSilence);
    whenConnected(request, () => request.off("timeout", onSilence));
    request.once("response", (response) => this.#begin(response));
    request.on("error", (error) => this.#over({ error }));
    // No response and no error: the server has changed the protocol.
    request.once("close", () => {
      if (this.#response === undefined) this.#over({ error: new Error("socket hang up") });
    });
  }

  read(collectMs = 0): Promise<Uint8Array | undefined> {
    const waiting = Promise.withResolvers<Uint8Array | undefined>();
    this.#waiting = waiting;
    if (collectMs > 0 && this.#end === undefined && this.#bytes < COLLECTED_BYTES)
      this.#collecting = this.#clock.after(collectMs, () => this.#collected());
    this.#give();
    return waiting.promise;
  }

  leave(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    if (this.#end !== undefined) return;
    this.#pieces = [];
    this.#bytes = 0;
    this.#left = this.#clock.after(END_WAIT_MS, () => this.#stop(LEFT));
    this.#response?.resume();
  }

  #begin(response: IncomingMessage): void {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = headersOf(response.headers);
    response.on("data", (chunk: Buffer) => this.#take(response, chunk));
    response.once("end", () => this.#over({}));
    // Node says "aborted" here, which a reader could take for its own abort.
    response.on("error", (cause) => this.#over({ error: new Error("socket hang up", { cause }) }));
    this.begun.resolve(this);
  }

  #take(response: IncomingMessage, chunk: Uint8Array): void {
    this.#bytes += chunk.byteLength;
    if (this.#left !== undefined) {
      if (this.#bytes > END_BYTES_MAX) this.#stop(LEFT);
      return;
    }
    this.#pieces.push(chunk);
    if (this.#bytes >= COLLECTED_BYTES) this.#collected();
    else this.#give();
    if (this.#bytes > WAITING_BYTES_MAX) response.pause();
  }

  #stop(reason: unknown): void {
    this.#over({ error: reason });
    this.#request.destroy();
  }

  #over(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#left?.cancel();
    if ("error" in end) this.begun.reject(end.error);
    this.#collected();
  }

  #collected(): void {
    this.#collecting?.cancel();
    this.#collecting = undefined;
    this.#give();
  }

  /** Answers the reader if it waits and data or the end has arrived. */
  #give(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || this.#collecting !== undefined) return;
    if (this.#bytes === 0 && this.#end === undefined) return;
    this.#waiting = undefined;
    const [first, ...others] = this.#pieces;
    if (first !== undefined) {
      waiting.resolve(others.length === 0 ? first : Buffer.concat(this.#pieces, this.#bytes));
      this.#pieces = [];
      this.#bytes = 0;
      if (this.#response?.isPaused() === true) this.#response.resume();
    } else if (this.#end !== undefined && "error" in this.#end) waiting.reject(this.#end.error);
    else waiting.resolve(undefined);
  }
}
