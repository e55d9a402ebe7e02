// Owns the public types of the client: options, requests, events. Its manual is docs/CLIENT.md.

import type { World } from "../../world.ts";
import type { EventOf, EventPayloads } from "../events.ts";
import type { ClientInfo, DeviceProof, EventFrame, HelloOk } from "../frames.ts";
import type { IDEMPOTENCY } from "../idempotency.ts";
import type { MethodName, ParamsOf, PayloadOf } from "../methods.ts";
import type { EventName } from "../protocol.ts";
import type { GatewayError } from "./error.ts";

/** The part of the world that a client uses. Its gateway has already redacted all that it sends. */
export type ClientWorld = Omit<World, "redactor">;

export type { Message } from "../../core/shapes/message.ts";
export type { AgentEvent, ChatEvent, EventPayloads } from "../events.ts";
export type { ClientInfo, EventFrame, HelloOk } from "../frames.ts";
export type { Health } from "../methods/operations.ts";
export type { ListedRow, SessionRow } from "../methods/sessions.ts";
export type { WaitAnswer } from "../methods/talk.ts";
export type { MethodName, ParamsOf, PayloadOf } from "../methods.ts";
export type { EventName } from "../protocol.ts";
export type { ClientCode } from "./error.ts";

/** An Ed25519 key that identifies this machine. */
export interface DeviceKey {
  /** SHA-256 of the raw public key, in hex. */
  readonly id: string;
  /** The raw 32 bytes in base64url. */
  readonly publicKey: string;
  /** Signs a claim, in the newest form of the protocol. */
  prove(claim: DeviceClaim): DeviceProof;
}

/** A client's claims in its `connect`, and the challenge that it answers. */
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
  /** Proves the device's identity on each connection. Required for a node, optional for others. */
  readonly device?: DeviceKey | undefined;
  /** For nodes: capabilities, and the accepted commands. */
  readonly caps?: readonly string[] | undefined;
  readonly commands?: readonly string[] | undefined;
  /** This client's name in the gateway's lists and log. */
  readonly client?: Partial<ClientInfo> | undefined;
  /** Reopens a broken connection. Default true. The first connection is never retried. */
  readonly reconnect?: boolean | undefined;
  /** Time limit for opening and greeting together. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Closes the client, connected or not. */
  readonly signal?: AbortSignal | undefined;
  /** Time, ids, randomness and log, for tests. Default: the real ones. */
  readonly world?: ClientWorld | undefined;
}

export type ClientState = "connected" | "reconnecting" | "closed";

export interface RequestOptions {
  /**
   * Stops waiting for the answer; the request then fails with the code ABORTED. The gateway may still do the
   * work: `chat.abort` stops a run.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Methods that must not be done twice: without an `idempotencyKey` the client generates one. */
type KeyedMethod = {
  [M in MethodName]: (typeof IDEMPOTENCY)[M] extends "run" | "required" ? M : never;
}[MethodName];

export type RequestParams<M extends MethodName> = M extends KeyedMethod
  ? Omit<ParamsOf<M>, "idempotencyKey"> & { readonly idempotencyKey?: string | undefined }
  : ParamsOf<M>;

/** Params may be left out if none is required. */
type RequestArguments<M extends MethodName> =
  Record<never, never> extends RequestParams<M>
    ? [params?: RequestParams<M>, options?: RequestOptions]
    : [params: RequestParams<M>, options?: RequestOptions];

/** The end of a run that `agent` started. */
export interface AgentEnd {
  readonly runId: string;
  readonly status: "ok" | "error";
  /** For errors: the message. */
  readonly summary: string;
  /** The finer code of an error, such as `run_timeout`. */
  readonly code?: string;
  /** `text`: the agent's answer; absent if it did not reply. */
  readonly result?: { readonly text?: string };
}

export interface AgentCall {
  /** The idempotency key. It is the run's id, too, unless another caller had used it: see `accepted`. */
  readonly runId: string;
  /** The run is on disk. */
  readonly accepted: Promise<PayloadOf<"agent">>;
  /** The run has ended. Settles after `accepted`, and fails if that does. */
  readonly done: Promise<AgentEnd>;
}

/** The events that the reader of `events()` did not get. The transcripts have them all: `chat.history`. */
export interface Missed {
  /** `slow-reader`: the buffer was full. `reconnect`: the connection was broken; the number is unknown. */
  readonly reason: "slow-reader" | "reconnect";
  /** Events that were dropped, by name. Empty after a reconnect. */
  readonly events: Readonly<Partial<Record<EventName, number>>>;
  /** Their sessions, in a list of bounded length. */
  readonly sessionKeys: readonly string[];
}

/** An event of the gateway, or the client's own `missed`. */
export type GatewayEvent<E extends EventName = EventName> =
  | EventOf<E>
  | { readonly event: "missed"; readonly payload: Missed };

export interface EventOptions<E extends EventName = EventName> {
  /** Only events of this session. Accepts any spelling: `main`, or a key. */
  readonly sessionKey?: string | undefined;
  /** Only events of this run. */
  readonly runId?: string | undefined;
  /** Only events with these names. `missed` is always included. */
  readonly names?: readonly E[] | undefined;
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined;
  /** Buffered events. Above it the oldest are dropped, and `missed` reports them. Default 1000. */
  readonly bufferMax?: number | undefined;
}

export interface GatewayClient {
  /** The greeting of the current connection. */
  readonly hello: HelloOk;
  readonly state: ClientState;
  /** Calls a method with typed params and payload. */
  request<M extends MethodName>(method: M, ...rest: RequestArguments<M>): Promise<PayloadOf<M>>;
  /** Calls any method by name, with untyped params. */
  call<T = unknown>(method: string, params?: object, options?: RequestOptions): Promise<T>;
  /** Runs an agent: returns its acceptance and its end. */
  agent(params: RequestParams<"agent">, options?: RequestOptions): AgentCall;
  /** Returns a function that removes the listener. */
  on<E extends EventName>(event: E, listener: (payload: EventPayloads[E]) => void): () => void;
  onEvent(listener: (frame: EventFrame) => void): () => void;
  /** Called at once with every change; after `connected`, missed events are in the history. */
  onState(listener: (state: ClientState, error?: GatewayError) => void): () => void;
  /**
   * Streams events from this call on, until `signal`, `break` or `close`. Fails when the connection is lost
   * for good. A reader that is too slow gets `missed` in place of the oldest.
   */
  events<E extends EventName = EventName>(options?: EventOptions<E>): AsyncIterableIterator<GatewayEvent<E>>;
  close(): void;
}
