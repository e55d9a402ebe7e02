// Owns the public types of the client: options, requests, events. Its manual is docs/CLIENT.md.

import type { World } from "../../world.ts";
import type { EventName, EventOf, EventPayloads } from "../events.ts";
import type { ClientInfo, DeviceProof, EventFrame, HelloOk } from "../frames.ts";
import type { MethodName, ParamsOf, PayloadOf } from "../methods.ts";
import type { GatewayError } from "./error.ts";

/**
 * The parts of the world that a client uses. It needs no redactor, because the gateway redacts all that it
 * sends. The page loads these parts, so they are as small as possible.
 */
export type ClientWorld = Pick<World, "ids" | "random" | "log"> & {
  readonly clock: Omit<World["clock"], "at">;
};

export type { Message } from "../../core/shapes/message.ts";
export type { AgentEvent, ChatEvent, EventName, EventPayloads } from "../events.ts";
export type { ClientInfo, EventFrame, HelloOk } from "../frames.ts";
export type { Health } from "../methods/operations.ts";
export type { ListedRow, SessionRow } from "../methods/sessions.ts";
export type { WaitAnswer } from "../methods/talk.ts";
export type { MethodName, ParamsOf, PayloadOf } from "../methods.ts";
export type { ClientCode } from "./error.ts";

/** An Ed25519 key that identifies this machine. */
export interface DeviceKey {
  /** SHA-256 of the raw public key, in hex. */
  readonly id: string;
  /** The raw public key (32 bytes), in base64url. */
  readonly publicKey: string;
  /** Signs a claim, in the newest format of the protocol. */
  prove(claim: DeviceClaim): DeviceProof;
}

/** The content that a device signs: the client's claims in `connect`, and the server's challenge. */
export interface DeviceClaim {
  readonly client: ClientInfo;
  readonly role: string | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly token: string | undefined;
  readonly nonce: string;
  /** Time of the signature, in ms since 1970. */
  readonly at: number;
}

export interface ConnectOptions {
  /** `ws://host:port` of the gateway, or its `http://` address. */
  readonly url: string;
  readonly token?: string | undefined;
  /** Default: the role of the token. */
  readonly role?: "operator" | "node" | undefined;
  /** Requests fewer rights than the token has. Default: all rights of the token. */
  readonly scopes?: readonly string[] | undefined;
  /** Proves the identity of the device on each connection. Required for a node, optional for others. */
  readonly device?: DeviceKey | undefined;
  /** Capabilities, such as `thinking-deltas`. The client itself adds `text-deltas`. */
  readonly caps?: readonly string[] | undefined;
  /** Only for nodes: the commands that the node accepts. */
  readonly commands?: readonly string[] | undefined;
  /** Name of this client in the gateway's lists and log. */
  readonly client?: Partial<ClientInfo> | undefined;
  /** Reopens a broken connection. Default true. A failed first connection is never retried. */
  readonly reconnect?: boolean | undefined;
  /** Time limit in ms for opening the connection and for the greeting together. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Aborting this signal closes the client, even while the client connects. */
  readonly signal?: AbortSignal | undefined;
  /** Time, ids, randomness and log, for tests. Default: the real ones. */
  readonly world?: ClientWorld | undefined;
}

export type ClientState = "connected" | "reconnecting" | "closed";

export interface RequestOptions {
  /**
   * Aborting this signal ends the wait for the answer: the request fails with the code ABORTED. The gateway
   * may still execute the request; `chat.abort` stops a run.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The params of a method. The client generates a missing `idempotencyKey`. */
export type RequestParams<M extends MethodName> = M extends MethodName
  ? ParamsOf<M> extends { readonly idempotencyKey: string }
    ? Omit<ParamsOf<M>, "idempotencyKey"> & { readonly idempotencyKey?: string | undefined }
    : ParamsOf<M>
  : never;

/** Makes params optional for methods that require none. */
type RequestArguments<M extends MethodName> =
  Record<never, never> extends RequestParams<M>
    ? [params?: RequestParams<M>, options?: RequestOptions]
    : [params: RequestParams<M>, options?: RequestOptions];

/** The result of a run that `agent` started. */
export interface AgentEnd {
  readonly runId: string;
  readonly status: "ok" | "error";
  /** For a failed run: the error message. */
  readonly summary: string;
  /** The detailed code of an error, such as `run_timeout`. */
  readonly code?: string;
  /** `text` is the agent's answer. Absent if the agent did not reply. */
  readonly result?: { readonly text?: string };
}

export interface AgentCall {
  /**
   * The idempotency key, which is also the id of the run. If another caller has used this key before, the run
   * has another id, which `accepted` returns.
   */
  readonly runId: string;
  /** Resolves when the run is stored on disk. */
  readonly accepted: Promise<PayloadOf<"agent">>;
  /** Resolves when the run has ended, after `accepted`. Rejects if `accepted` rejects. */
  readonly done: Promise<AgentEnd>;
}

/** Reports events that the reader of `events()` did not get. `chat.history` has their messages. */
export interface Missed {
  /** `slow-reader`: the buffer was full. `reconnect`: the connection was lost, and the number is unknown. */
  readonly reason: "slow-reader" | "reconnect";
  /** Number of dropped events by name. Empty after a reconnect. */
  readonly events: Readonly<Partial<Record<EventName, number>>>;
  /** Sessions of the dropped events. The length of the list is limited. */
  readonly sessionKeys: readonly string[];
}

/** An event of the gateway, or the client's own `missed`. */
export type GatewayEvent<E extends EventName = EventName> =
  | EventOf<E>
  | { readonly event: "missed"; readonly payload: Missed };

export interface EventOptions<E extends EventName = EventName> {
  /** Yields only events of this session: `main`, or any spelling of a key. */
  readonly sessionKey?: string | undefined;
  /** Yields only events of this run. */
  readonly runId?: string | undefined;
  /** Yields only events with these names, and `missed`, which is always included. */
  readonly names?: readonly E[] | undefined;
  /** Aborting this signal ends the stream. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum number of buffered events. If there are more, the oldest are dropped, and `missed` reports them.
   * Default 1000.
   */
  readonly bufferMax?: number | undefined;
}

export interface GatewayClient {
  /** The greeting of the current connection. */
  readonly hello: HelloOk;
  readonly state: ClientState;
  /** Calls a method with typed params and answer. */
  request<M extends MethodName>(method: M, ...rest: RequestArguments<M>): Promise<PayloadOf<M>>;
  /** Calls any method by name, without type checks. */
  call<T = unknown>(method: string, params?: object, options?: RequestOptions): Promise<T>;
  /** Runs an agent. Returns one promise for the acceptance of the run and one for its end. */
  agent(params: RequestParams<"agent">, options?: RequestOptions): AgentCall;
  /** Adds a listener for an event. Returns a function that removes it. */
  on<E extends EventName>(event: E, listener: (payload: EventPayloads[E]) => void): () => void;
  onEvent(listener: (frame: EventFrame) => void): () => void;
  /**
   * Adds a listener that is called at each change of the state. After `connected`, read missed events from
   * the history.
   */
  onState(listener: (state: ClientState, error?: GatewayError) => void): () => void;
  /**
   * Streams events from this call on, until `signal`, `break` or `close`. Throws when the client gives up the
   * connection. A reader that is too slow gets `missed` instead of the oldest events.
   */
  events<E extends EventName = EventName>(options?: EventOptions<E>): AsyncIterableIterator<GatewayEvent<E>>;
  close(): void;
}
