// Owns the client of the gateway's protocol: requests, events, and reconnecting. Each request ends with its
// answer or with a `GatewayError`. A request is sent again only if repeating it is harmless.
// CL2: a broken connection is reopened, after growing pauses. Pending requests that only read, that wait, or
//      that have an idempotency key are sent again; a wait is sent with its remaining time.
// A listener that throws does not affect the others.
// CL4: pending requests and buffered events are limited.

import { optional } from "../../core/optional.ts";
import type { Timer } from "../../world.ts";
import type { EventFrame, HelloOk, ResponseFrame } from "../frames.ts";
import { idempotencyOf } from "../idempotency.ts";
import type { MethodName, PayloadOf } from "../methods.ts";
import { PENDING_REQUESTS_MAX, WAIT_DEFAULT_MS } from "../protocol.ts";
import { aborted, errorOf, GatewayError } from "./error.ts";
import { type ClientSocket, openSocket, type SocketParts } from "./socket.ts";
import type {
  AgentCall,
  AgentEnd,
  ClientState,
  ClientWorld,
  GatewayClient,
  RequestOptions,
  RequestParams,
} from "./types.ts";

const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 10_000;
const EARLY_MAX = 100;

interface Pending {
  readonly method: string;
  readonly params: object | undefined;
  /** Only for `agent.wait`: the time at which the wait ends. A reconnect does not change it. */
  readonly waitsUntil: number | undefined;
  /** Handles an answer. Returns true if it is the last answer to the request. */
  answer(frame: ResponseFrame): boolean;
  reject(error: GatewayError): void;
}

function closedError(): GatewayError {
  return new GatewayError("CLOSED", "the client was closed");
}

function gaveUp(signal: AbortSignal, method: string): GatewayError {
  return aborted(signal, `waiting for "${method}" was aborted; the gateway may still execute it`);
}

/** Creates a promise whose rejection does not have to be handled. */
function quiet<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: GatewayError) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** `wanted` is true if the program itself closed the client. */
type StateListener = (state: ClientState, error: GatewayError | undefined, wanted: boolean) => void;

/** The client without event streams. `with-events.ts` adds them, because not every program needs them. */
export class ReconnectingClient implements Omit<GatewayClient, "events"> {
  readonly #parts: SocketParts;
  readonly #reconnect: boolean;
  readonly #pending = new Map<string, Pending>();
  readonly #listeners = new Set<(frame: EventFrame, chars: number) => void>();
  /**
   * Events that arrived before the first listener was added or the first request was sent. Undefined once
   * they were passed on.
   */
  #early: [frame: EventFrame, chars: number][] | undefined = [];
  readonly #stateListeners = new Set<StateListener>();
  #socket: ClientSocket;
  #state: ClientState = "connected";
  #failures = 0;
  #retry: Timer | undefined;
  #requests = 0;

  constructor(parts: SocketParts, socket: ClientSocket, reconnect: boolean) {
    this.#parts = parts;
    this.#socket = socket;
    this.#reconnect = reconnect;
    this.#attach(socket);
  }

  get hello(): HelloOk {
    return this.#socket.hello;
  }

  get state(): ClientState {
    return this.#state;
  }

  get #world(): ClientWorld {
    return this.#parts.world;
  }

  request<M extends MethodName>(
    method: M,
    params?: RequestParams<M>,
    options?: RequestOptions,
  ): Promise<PayloadOf<M>> {
    return this.call<PayloadOf<M>>(method, this.#addKey(method, params), options);
  }

  call<T = unknown>(method: string, params?: object, options: RequestOptions = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const answer = (frame: ResponseFrame): boolean => {
        if (frame.ok) resolve(frame.payload as T);
        else reject(errorOf(frame.error));
        return true;
      };
      this.#ask({ method, params, answer, reject }, options.signal);
    });
  }

  agent(params: RequestParams<"agent">, options: RequestOptions = {}): AgentCall {
    const keyed = { ...params, idempotencyKey: params.idempotencyKey ?? this.#world.ids.orderedUuid() };
    // A program may await only one of the two promises. The other must not cause an unhandled rejection.
    const accepted = quiet<PayloadOf<"agent">>();
    const done = quiet<AgentEnd>();
    const reject = (error: GatewayError): void => {
      accepted.reject(error);
      done.reject(error);
    };
    const answer = (frame: ResponseFrame): boolean => {
      if (!frame.ok) {
        reject(errorOf(frame.error));
        return true;
      }
      const payload = frame.payload as PayloadOf<"agent"> | AgentEnd;
      if (payload.status === "accepted") {
        accepted.resolve(payload);
        return false;
      }
      done.resolve(payload);
      return true;
    };
    this.#ask({ method: "agent", params: keyed, answer, reject }, options.signal);
    return { runId: keyed.idempotencyKey, accepted: accepted.promise, done: done.promise };
  }

  on: GatewayClient["on"] = (event, listener) =>
    this.onEvent((frame) => {
      if (frame.event === event) listener(frame.payload as Parameters<typeof listener>[0]);
    });

  onEvent(listener: (frame: EventFrame, chars: number) => void): () => void {
    if (this.#listeners.size === 0) void Promise.resolve().then(() => this.#tellEarly());
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tellEarly(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const event of early) this.#tell(this.#listeners, (listener) => listener(...event));
  }

  onState(listener: StateListener): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  close(): void {
    this.#shut(closedError(), true);
  }

  /** Adds an idempotency key to the params of a method that must not be executed twice. */
  #addKey(method: MethodName, params: object = {}): object {
    const idempotency = idempotencyOf(method);
    const needed = idempotency === "run" || idempotency === "required";
    if (!needed || Reflect.get(params, "idempotencyKey") !== undefined) return params;
    return { ...params, idempotencyKey: this.#world.ids.orderedUuid() };
  }

  /** Returns whether a request can be repeated without harm: it only reads, or it has an idempotency key. */
  #mayRepeat({ method, params }: Pending): boolean {
    if (params !== undefined && Reflect.get(params, "idempotencyKey") !== undefined) return true;
    return idempotencyOf(method) === "none";
  }

  /** Returns the reason why no request can be sent now, if there is one. */
  #refusal(method: string, signal: AbortSignal | undefined): GatewayError | undefined {
    if (this.#state === "closed") return closedError();
    if (signal?.aborted === true) return gaveUp(signal, method);
    if (this.#pending.size < PENDING_REQUESTS_MAX) return undefined;
    const hint = "Wait for answers before you send more requests.";
    const text = `the connection has more than ${PENDING_REQUESTS_MAX} unanswered requests. ${hint}`;
    return new GatewayError("RATE_LIMITED", text, { hint, retryable: true });
  }

  #ask(asked: Omit<Pending, "waitsUntil">, signal: AbortSignal | undefined): void {
    this.#tellEarly();
    const refused = this.#refusal(asked.method, signal);
    if (refused !== undefined) {
      asked.reject(refused);
      return;
    }
    const id = `${++this.#requests}`;
    const onAbort = (): void => {
      this.#pending.delete(id);
      if (signal !== undefined) asked.reject(gaveUp(signal, asked.method));
    };
    const offSignal = (): void => signal?.removeEventListener("abort", onAbort);
    signal?.addEventListener("abort", onAbort);
    const pending: Pending = {
      ...asked,
      waitsUntil: this.#waitsUntil(asked),
      answer(frame) {
        const last = asked.answer(frame);
        if (last) offSignal();
        return last;
      },
      reject(error) {
        offSignal();
        asked.reject(error);
      },
    };
    this.#pending.set(id, pending);
    if (this.#state === "connected") this.#send(id, pending);
  }

  #waitsUntil({ method, params }: Pick<Pending, "method" | "params">): number | undefined {
    if (method !== "agent.wait") return undefined;
    const timeoutMs: unknown = params === undefined ? undefined : Reflect.get(params, "timeoutMs");
    const given = typeof timeoutMs === "number" ? timeoutMs : WAIT_DEFAULT_MS;
    return this.#world.clock.monotonic() + given;
  }

  #send(id: string, { method, params }: Pending): void {
    this.#socket.send({ type: "req", id, method, ...optional({ params }) });
  }

  #attach(socket: ClientSocket): void {
    socket.listen(
      (frame, chars) => this.#onFrame(frame, chars),
      (error) => {
        if (this.#socket === socket) this.#onEnd(error);
      },
    );
  }

  #onFrame(frame: ResponseFrame | EventFrame, chars: number): void {
    if (frame.type === "event") {
      if (this.#early === undefined) this.#tell(this.#listeners, (listener) => listener(frame, chars));
      else if (this.#early.length < EARLY_MAX) this.#early.push([frame, chars]);
      return;
    }
    const pending = this.#pending.get(frame.id);
    if (pending === undefined) return;
    // If the gateway is stopping, the request is sent again after the reconnect.
    const isStopping = !frame.ok && frame.error?.details?.code === "shutting_down";
    if (this.#reconnect && isStopping && this.#mayRepeat(pending)) return;
    if (pending.answer(frame)) this.#pending.delete(frame.id);
  }

  #tell<L>(listeners: ReadonlySet<L>, tell: (listener: L) => void): void {
    for (const listener of [...listeners]) {
      try {
        tell(listener);
      } catch (error) {
        this.#world.log.error({ err: error }, "a listener of the gateway client failed");
      }
    }
  }

  #move(state: ClientState, error?: GatewayError, wanted = false): void {
    this.#state = state;
    this.#tell(this.#stateListeners, (listener) => listener(state, error, wanted));
  }

  #onEnd(error: GatewayError): void {
    if (this.#state === "closed") return;
    if (!this.#reconnect) {
      this.#shut(error);
      return;
    }
    for (const [id, pending] of this.#pending) {
      if (this.#mayRepeat(pending)) continue;
      this.#pending.delete(id);
      const what = `the connection was lost before "${pending.method}" was answered`;
      pending.reject(new GatewayError("CLOSED", `${what}; the gateway may have executed it`));
    }
    this.#move("reconnecting", error);
    // A listener may have closed the client.
    if (!this.#isClosed()) this.#later();
  }

  #later(leastMs = 0): void {
    const { clock, random } = this.#world;
    const pauseMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.#failures) * (0.5 + random() / 2);
    this.#failures++;
    // Between two connections, only this timer keeps a waiting program alive.
    this.#retry = clock.after(Math.max(leastMs, pauseMs), () => void this.#again(), "alive");
  }

  async #again(): Promise<void> {
    try {
      const socket = await openSocket(this.#parts);
      if (this.#isClosed()) return socket.close();
      this.#socket = socket;
      this.#failures = 0;
      // Send pending requests before the listeners run, so that a listener's new request does not overtake
      // them.
      for (const [id, pending] of this.#pending) {
        const { params, waitsUntil } = pending;
        const leftMs = waitsUntil === undefined ? undefined : waitsUntil - this.#world.clock.monotonic();
        const rest = leftMs === undefined ? params : { ...params, timeoutMs: Math.ceil(Math.max(0, leftMs)) };
        this.#send(id, { ...pending, params: rest });
      }
      this.#move("connected");
      this.#attach(socket);
    } catch (error) {
      if (this.#isClosed()) return;
      const known = error instanceof GatewayError ? error : new GatewayError("CLOSED", String(error));
      // A running gateway that has refused this connection would refuse it again.
      if (!known.retryable && known.code !== "RATE_LIMITED") return this.#shut(known);
      this.#later(known.retryAfterMs);
    }
  }

  /** Reads the current state, which may have changed during an await. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #shut(error: GatewayError, wanted = false): void {
    if (this.#state === "closed") return;
    this.#retry?.cancel();
    this.#move("closed", error, wanted);
    this.#socket.close();
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}
