// Owns what a program sees of the client: options, requests, events. The README of it is docs/CLIENT.md.

import type { World } from "../../world.ts";
import type { IDEMPOTENCY } from "../idempotency.ts";
import type { MethodName, ParamsOf } from "../params.ts";
import type { EventPayloads, PayloadOf } from "../payloads.ts";
import type { ClientInfo, DeviceProof, EventFrame, EventName, HelloOk } from "../protocol.ts";
import type { GatewayError } from "./error.ts";

/** The part of the world that a client uses. Its gateway has masked all that it receives. */
export type ClientWorld = Omit<World, "redactor">;

export type { Message } from "../../core/message.ts";
export type { MethodName, ParamsOf } from "../params.ts";
export type { EventPayloads, Health, ListedRow, PayloadOf, SessionRow, WaitAnswer } from "../payloads.ts";
export type {
  AgentEvent,
  ChatEvent,
  ClientInfo,
  EventFrame,
  EventName,
  HelloOk,
  SessionsEvent,
  ShutdownEvent,
} from "../protocol.ts";
export type { ClientCode } from "./error.ts";

/** An Ed25519 key that stands for this machine. */
export interface DeviceKey {
  /** SHA-256 of the raw public key, in hex. */
  readonly id: string;
  /** The raw 32 bytes in base64url. */
  readonly publicKey: string;
  /** Proves a claim, in the newest form of the protocol. */
  prove(claim: DeviceClaim): DeviceProof;
}

/** What a client says of itself when it connects, and the challenge that it answers. */
export interface DeviceClaim {
  readonly client: ClientInfo;
  readonly role: string | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly token: string | undefined;
  readonly nonce: string;
  /** ms since 1970. */
  readonly at: number;
}

export interface ConnectOptions {
  /** `ws://host:port`, or the `http://` of the same gateway. */
  readonly url: string;
  readonly token?: string | undefined;
  /** Default: the token's. */
  readonly role?: "operator" | "node" | undefined;
  /** Fewer rights than the token has. Default: all of them. */
  readonly scopes?: readonly string[] | undefined;
  /** Proves with each connection which device this is. A node needs one; others may have one. */
  readonly device?: DeviceKey | undefined;
  /** Of a node: what it can do, and what may be asked of it. */
  readonly caps?: readonly string[] | undefined;
  readonly commands?: readonly string[] | undefined;
  /** How the gateway's lists and its log call this client. */
  readonly client?: Partial<ClientInfo> | undefined;
  /** Opens a broken connection again. Default true. The first one is never tried twice. */
  readonly reconnect?: boolean | undefined;
  /** For opening and greeting together. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Closes the client, whether it has connected yet or not. */
  readonly signal?: AbortSignal | undefined;
  /** Time, ids, randomness and log, for tests. Default: the real ones. */
  readonly world?: ClientWorld | undefined;
}

export type ClientState = "connected" | "reconnecting" | "closed";

export interface RequestOptions {
  /**
   * Stops waiting for the answer, which then is an error with the code ABORTED. What was asked for may be
   * done all the same: a run is stopped by `chat.abort`.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Methods that must not be done twice: without an `idempotencyKey` the client makes one up. */
type KeyedMethod = {
  [M in MethodName]: (typeof IDEMPOTENCY)[M] extends "run" | "required" ? M : never;
}[MethodName];

export type RequestParams<M extends MethodName> = M extends KeyedMethod
  ? Omit<ParamsOf<M>, "idempotencyKey"> & { readonly idempotencyKey?: string | undefined }
  : ParamsOf<M>;

/** Params may be left out where none is required. */
type RequestArguments<M extends MethodName> =
  Record<never, never> extends RequestParams<M>
    ? [params?: RequestParams<M>, options?: RequestOptions]
    : [params: RequestParams<M>, options?: RequestOptions];

/** The end of a run that `agent` was asked for. */
export interface AgentEnd {
  readonly runId: string;
  readonly status: "ok" | "error";
  /** Of an error: what went wrong. */
  readonly summary: string;
  /** The finer code of an error, such as `run_timeout`. */
  readonly code?: string;
  /** `text`: what the agent answered; absent if it kept silent. */
  readonly result?: { readonly text?: string };
}

export interface AgentCall {
  /** The idempotency key. It is the run's id too, unless another caller had used it: `accepted` tells. */
  readonly runId: string;
  /** The run is on disk. */
  readonly accepted: Promise<PayloadOf<"agent">>;
  /** The run has ended. Settles after `accepted`, and fails when that does. */
  readonly done: Promise<AgentEnd>;
}

/** What did not reach the reader of `events()`. The transcripts have it all: `chat.history`. */
export interface Missed {
  /** `slow-reader`: the buffer was full. `reconnect`: the connection was broken; nobody knows how many. */
  readonly reason: "slow-reader" | "reconnect";
  /** Events that were dropped, by name. Empty after a reconnect. */
  readonly events: Readonly<Partial<Record<EventName, number>>>;
  /** Sessions that they were about, as far as a list of bounded length holds them. */
  readonly sessionKeys: readonly string[];
}

type EventOf<E extends EventName> = {
  readonly event: E;
  readonly payload: EventPayloads[E];
};

/** An event of the gateway, or the client's own `missed`. */
export type GatewayEvent<E extends EventName = EventName> =
  | { [N in E]: EventOf<N> }[E]
  | { readonly event: "missed"; readonly payload: Missed };

export interface EventOptions<E extends EventName = EventName> {
  /** Only of this session. Takes what people write: `main`, or a key. */
  readonly sessionKey?: string | undefined;
  /** Only of this run. */
  readonly runId?: string | undefined;
  /** Only of these names. `missed` is always told. */
  readonly names?: readonly E[] | undefined;
  /** Ends the events. */
  readonly signal?: AbortSignal | undefined;
  /** Events that may wait for the reader. Above it the oldest go, and `missed` says so. Default 1000. */
  readonly bufferMax?: number | undefined;
}

export interface GatewayClient {
  /** Of the connection as it is now. */
  readonly hello: HelloOk;
  readonly state: ClientState;
  /** A method with params and payload that the compiler knows. */
  request<M extends MethodName>(method: M, ...rest: RequestArguments<M>): Promise<PayloadOf<M>>;
  /** Any method by name, with the params as they are. */
  call<T = unknown>(method: string, params?: object, options?: RequestOptions): Promise<T>;
  /** Runs an agent: its acceptance and its end. */
  agent(params: RequestParams<"agent">, options?: RequestOptions): AgentCall;
  /** Returns the function that takes the listener off again. */
  on<E extends EventName>(event: E, listener: (payload: EventPayloads[E]) => void): () => void;
  onEvent(listener: (frame: EventFrame) => void): () => void;
  /** Told at once of every change; after `connected` what was missed is in the history. */
  onState(listener: (state: ClientState, error?: GatewayError) => void): () => void;
  /**
   * Events from this call on, until `signal`, `break` or `close`. Fails when the connection is lost for good.
   * A reader that is too slow gets `missed` in place of the oldest.
   */
  events<E extends EventName = EventName>(options?: EventOptions<E>): AsyncIterableIterator<GatewayEvent<E>>;
  close(): void;
}
