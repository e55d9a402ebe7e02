// Sends a POST and reads the answer piece by piece, with the same connections and rules as fetch. Does not
// use fetch's requests, responses and web streams, because these would take half of the time for a small
// piece.
// OS1: redirects are not followed; the reader gets the redirect's own status and headers.
// OS2: at most a few pieces are buffered; then the server has to wait.
// OS3: a reader may stop early. The connection is reused if the rest of the answer is short and arrives soon.

import { reachOf } from "../core/rules/outgoing.ts";
import { AddressRefused, type Dispatcher, dispatcherFor, type FetchLimits } from "./outgoing.ts";
import type { Clock, Timer } from "./plain.ts";

type Handler = Parameters<Dispatcher["dispatch"]>[1];
type Controller = Parameters<NonNullable<Handler["onRequestStart"]>>[0];
type AnswerHeaders = Parameters<NonNullable<Handler["onResponseStart"]>>[2];

const WAITING_BYTES_MAX = 256 * 1024;
/** Collected pieces are returned at once when they have this many bytes. */
const COLLECTED_BYTES = 16 * 1024;
/** Limits in time and bytes for the rest of an answer whose reader has stopped. */
const END_WAIT_MS = 1_000;
const END_BYTES_MAX = 64 * 1024;

const LEFT = new Error("the reader has stopped");

export interface Post {
  readonly purpose: "model";
  readonly url: string;
  /** The configured address that permits this request. */
  readonly configured: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly limits: FetchLimits;
}

export interface StreamedAnswer {
  readonly status: number;
  readonly headers: Headers;
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
export function outgoingPost(post: Post, signal: AbortSignal, clock: Clock): Promise<StreamedAnswer> {
  const { purpose, url, configured, headers, body, limits } = post;
  const reach = reachOf(purpose, url, configured);
  if (reach.kind === "refused") return Promise.reject(new AddressRefused(reach.why));
  const { origin, pathname, search } = new URL(url);
  const exchange = new Exchange(signal, clock);
  const sent = { ...headers, "accept-encoding": "identity" };
  const request = { origin, path: pathname + search, method: "POST", headers: sent, body } as const;
  dispatcherFor(limits).dispatch(request, exchange);
  return exchange.begun.promise;
}

class Exchange implements StreamedAnswer, Handler {
  readonly begun = Promise.withResolvers<StreamedAnswer>();
  status = 0;
  headers = new Headers();
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #onAbort = (): void => this.#stop(this.#signal.reason);
  #controller: Controller | undefined;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #waiting: PromiseWithResolvers<Uint8Array | undefined> | undefined;
  /** Set while the reader collects pieces. */
  #collecting: Timer | undefined;
  /** The end of the answer; undefined while it continues. */
  #end: { readonly error?: unknown } | undefined;
  #left: Timer | undefined;

  constructor(signal: AbortSignal, clock: Clock) {
    this.#signal = signal;
    this.#clock = clock;
    signal.addEventListener("abort", this.#onAbort, { once: true });
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
    this.#controller?.resume();
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(this.#signal.reason);
  }

  onResponseStart(_controller: Controller, status: number, headers: AnswerHeaders): void {
    // Skips an informational response (1xx), which precedes the answer.
    if (status < 200) return;
    this.status = status;
    for (const [name, value] of Object.entries(headers))
      for (const one of [value ?? []].flat()) this.headers.append(name, one);
    this.begun.resolve(this);
  }

  onResponseData(controller: Controller, chunk: Uint8Array): void {
    this.#bytes += chunk.byteLength;
    if (this.#left !== undefined) {
      if (this.#bytes > END_BYTES_MAX) this.#stop(LEFT);
      return;
    }
    this.#pieces.push(chunk);
    if (this.#bytes >= COLLECTED_BYTES) this.#collected();
    else this.#give();
    if (this.#bytes > WAITING_BYTES_MAX) controller.pause();
  }

  onResponseEnd(): void {
    this.#over({});
  }

  onResponseError(_controller: Controller, error: unknown): void {
    this.#over({ error });
  }

  #stop(reason: unknown): void {
    this.#controller?.abort(reason as Error);
    this.#over({ error: reason });
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
      if (this.#controller?.paused === true) this.#controller.resume();
    } else if (this.#end !== undefined && "error" in this.#end) waiting.reject(this.#end.error);
    else waiting.resolve(undefined);
  }
}
