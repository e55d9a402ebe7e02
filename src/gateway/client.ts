// Owns the client of the gateway's protocol: for the command line, for tests, for programs that embed it.
// CL1: a request ends with its answer or with a `GatewayError`; none is left hanging, and none is sent twice
//      unless that
//      can't do anything twice.
// CL2: a broken connection is opened again with growing pauses; reads, waits and requests with an idempotency
//      key go on.
// CL3: a listener that throws harms no other.

import { realWorld, type Timer, type World } from "../world.ts";
import { type ClientSocket, errorOf, GatewayError, openSocket, type SocketParts } from "./client-socket.ts";
import { isMethod, METHODS, type MethodName, type ParamsOf } from "./params.ts";
import type { PayloadOf } from "./payloads.ts";
import type { AgentEvent, ChatEvent, ClientInfo, EventFrame, HelloOk, ResponseFrame } from "./protocol.ts";

export { GatewayError } from "./client-socket.ts";

export interface ConnectOptions {
  /** `ws://host:port`. */
  readonly url: string;
  readonly token?: string;
  /** Default: the token's. */
  readonly role?: "operator" | "node";
  /** Fewer rights than the token has. Default: all of them. */
  readonly scopes?: readonly string[];
  readonly client?: Partial<ClientInfo>;
  /** Opens a broken connection again. Default true. The first one is never tried twice. */
  readonly reconnect?: boolean;
  /** For opening and greeting together. Default 10,000. */
  readonly connectTimeoutMs?: number;
  readonly world?: World;
}

export type ClientState = "connected" | "reconnecting" | "closed";

/** The end of a run that `agent` was asked for. */
export interface AgentEnd {
  readonly runId: string;
  readonly status: "ok" | "error";
  readonly summary: string;
  readonly code?: string;
  readonly result?: { readonly text?: string };
}

export interface AgentCall {
  /** The run is on disk. */
  readonly accepted: Promise<{ readonly runId: string; readonly acceptedAt: number }>;
  /** The run has ended. Settles after `accepted`, and fails when that does. */
  readonly done: Promise<AgentEnd>;
}

export interface EventPayloads {
  chat: ChatEvent;
  agent: AgentEvent;
}

export interface GatewayClient {
  /** Of the connection as it is now. */
  readonly hello: HelloOk;
  readonly state: ClientState;
  /** A method with params, and mostly a payload, that the compiler knows. */
  request<M extends MethodName>(method: M, params: ParamsOf<M>): Promise<PayloadOf<M>>;
  /** Any method by name. */
  call<T = unknown>(method: string, params?: object): Promise<T>;
  agent(params: ParamsOf<"agent">): AgentCall;
  /** Returns the function that takes the listener off again. */
  on<E extends keyof EventPayloads>(event: E, listener: (payload: EventPayloads[E]) => void): () => void;
  onEvent(listener: (frame: EventFrame) => void): () => void;
  /** Told at once of every change; after `connected` what was missed is in the history. */
  onState(listener: (state: ClientState, error?: GatewayError) => void): () => void;
  /** Events from now on, until `signal` or the end of the client. */
  events(signal?: AbortSignal): AsyncIterable<EventFrame>;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 10_000;
/** Events that an iterator may be behind before it fails. */
const ITERATOR_MAX = 10_000;

interface Pending {
  readonly method: string;
  readonly params: object | undefined;
  /** True: this answer is the last one. */
  answer(frame: ResponseFrame): boolean;
  reject(error: GatewayError): void;
}

/** Whether asking again does no harm: it reads, or its key makes the gateway give the same answer. */
function mayRepeat({ method, params }: Pending): boolean {
  if (params !== undefined && Reflect.get(params, "idempotencyKey") !== undefined) return true;
  return isMethod(method) && METHODS[method].idempotency === "none";
}

class Client implements GatewayClient {
  readonly #parts: SocketParts;
  readonly #reconnect: boolean;
  readonly #pending = new Map<string, Pending>();
  readonly #listeners = new Set<(frame: EventFrame) => void>();
  readonly #stateListeners = new Set<(state: ClientState, error?: GatewayError) => void>();
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

  request<M extends MethodName>(method: M, params: ParamsOf<M>): Promise<PayloadOf<M>> {
    return this.call<PayloadOf<M>>(method, params as object);
  }

  call<T = unknown>(method: string, params?: object): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const answer = (frame: ResponseFrame): boolean => {
      if (frame.ok) resolve(frame.payload as T);
      else reject(errorOf(frame.error));
      return true;
    };
    this.#ask({ method, params, answer, reject });
    return promise;
  }

  agent(params: ParamsOf<"agent">): AgentCall {
    const accepted = Promise.withResolvers<{ runId: string; acceptedAt: number }>();
    const done = Promise.withResolvers<AgentEnd>();
    // Whoever waits for only one of the two must not be punished for the other.
    accepted.promise.catch(() => {});
    done.promise.catch(() => {});
    const reject = (error: GatewayError): void => {
      accepted.reject(error);
      done.reject(error);
    };
    const answer = (frame: ResponseFrame): boolean => {
      if (!frame.ok) {
        reject(errorOf(frame.error));
        return true;
      }
      const payload = frame.payload as { runId: string; acceptedAt: number; status: string };
      if (payload.status === "accepted") {
        accepted.resolve(payload);
        return false;
      }
      done.resolve(frame.payload as AgentEnd);
      return true;
    };
    this.#ask({ method: "agent", params, answer, reject });
    return { accepted: accepted.promise, done: done.promise };
  }

  on<E extends keyof EventPayloads>(event: E, listener: (payload: EventPayloads[E]) => void): () => void {
    return this.onEvent((frame) => {
      if (frame.event === event) listener(frame.payload as EventPayloads[E]);
    });
  }

  onEvent(listener: (frame: EventFrame) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onState(listener: (state: ClientState, error?: GatewayError) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  events(signal?: AbortSignal): AsyncIterable<EventFrame> {
    const queue: EventFrame[] = [];
    const bell = { ring: () => {} };
    const off = this.onEvent((frame) => {
      // One more than it may hold: enough for the reader to be told.
      if (queue.length <= ITERATOR_MAX) queue.push(frame);
      bell.ring();
    });
    return this.#drain(queue, bell, off, signal);
  }

  async *#drain(
    queue: EventFrame[],
    bell: { ring: () => void },
    off: () => void,
    signal: AbortSignal | undefined,
  ): AsyncIterable<EventFrame> {
    const ring = (): void => bell.ring();
    const offState = this.onState(ring);
    signal?.addEventListener("abort", ring);
    try {
      while (this.#state !== "closed" && signal?.aborted !== true) {
        if (queue.length > ITERATOR_MAX)
          throw new GatewayError("CLOSED", "the reader of events is too far behind");
        const frame = queue.shift();
        if (frame !== undefined) {
          yield frame;
          continue;
        }
        await new Promise<void>((resolve) => {
          bell.ring = resolve;
        });
      }
    } finally {
      off();
      offState();
      signal?.removeEventListener("abort", ring);
    }
  }

  close(): void {
    this.#shut(new GatewayError("CLOSED", "the client was closed"));
  }

  #ask(pending: Pending): void {
    if (this.#state === "closed") {
      pending.reject(new GatewayError("CLOSED", "the client was closed"));
      return;
    }
    const id = `${++this.#requests}`;
    this.#pending.set(id, pending);
    if (this.#state === "connected") this.#send(id, pending);
  }

  #send(id: string, { method, params }: Pending): void {
    this.#socket.send({ type: "req", id, method, ...(params === undefined ? {} : { params }) });
  }

  #attach(socket: ClientSocket): void {
    socket.listen(
      (frame) => this.#onFrame(frame),
      (error) => {
        if (this.#socket === socket) this.#onEnd(error);
      },
    );
  }

  #onFrame(frame: ResponseFrame | EventFrame): void {
    if (frame.type === "event") {
      this.#tell(this.#listeners, (listener) => listener(frame));
      return;
    }
    const pending = this.#pending.get(frame.id);
    if (pending?.answer(frame) === true) this.#pending.delete(frame.id);
  }

  #tell<L>(listeners: ReadonlySet<L>, tell: (listener: L) => void): void {
    for (const listener of [...listeners]) {
      try {
        tell(listener);
      } catch (error) {
        this.#parts.world.log.error({ err: error }, "a listener of the gateway client failed");
      }
    }
  }

  #move(state: ClientState, error?: GatewayError): void {
    this.#state = state;
    this.#tell(this.#stateListeners, (listener) => listener(state, error));
  }

  #onEnd(error: GatewayError): void {
    if (this.#state === "closed") return;
    if (!this.#reconnect) {
      this.#shut(error);
      return;
    }
    for (const [id, pending] of this.#pending) {
      if (mayRepeat(pending)) continue;
      this.#pending.delete(id);
      const what = `the connection broke before "${pending.method}" was answered`;
      pending.reject(new GatewayError("CLOSED", `${what}; it may or may not have been done`));
    }
    this.#move("reconnecting", error);
    this.#later();
  }

  #later(leastMs = 0): void {
    const { clock, random } = this.#parts.world;
    const pauseMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.#failures) * (0.5 + random() / 2);
    this.#failures++;
    // Between two sockets nothing else keeps a program alive that waits for an answer.
    this.#retry = clock.at(clock.now() + Math.max(leastMs, pauseMs), () => void this.#again(), "alive");
  }

  async #again(): Promise<void> {
    try {
      const socket = await openSocket(this.#parts);
      if (this.#isClosed()) return socket.close();
      this.#socket = socket;
      this.#failures = 0;
      // Before anybody is told: what a listener asks for is sent when it asks.
      for (const [id, pending] of this.#pending) this.#send(id, pending);
      this.#move("connected");
      this.#attach(socket);
    } catch (error) {
      if (this.#isClosed()) return;
      const known = error instanceof GatewayError ? error : new GatewayError("CLOSED", String(error));
      // A gateway that is there and says no won't say yes to the same words.
      if (!known.retryable && known.code !== "RATE_LIMITED") return this.#shut(known);
      this.#later(known.retryAfterMs);
    }
  }

  /** State as it is now: it may have changed while something was awaited. */
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #shut(error: GatewayError): void {
    if (this.#state === "closed") return;
    this.#retry?.cancel();
    this.#move("closed", error);
    this.#socket.close();
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}

/**
 * Connects to a gateway. Rejects with a `GatewayError`: nobody there, a wrong token, no common protocol
 * version.
 */
export async function connect(options: ConnectOptions): Promise<GatewayClient> {
  const { url, token, role, scopes, client, reconnect = true } = options;
  const world = options.world ?? realWorld({ level: "silent" });
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
  const parts: SocketParts = { url, token, role, scopes, client, connectTimeoutMs, world };
  return new Client(parts, await openSocket(parts), reconnect);
}
