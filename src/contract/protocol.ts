// Defines the protocol: frames, versions, limits, error codes, event payloads. A client needs to read only
// this file; `methods.ts` lists the methods with their params.
// A frame is one JSON object in one text message; unknown frame types and binary messages are refused.
// Names are those of the OpenClaw gateway protocol, version 3; fields are added, none is renamed.

import type { RpcCode } from "../core/shapes/errors.ts";
import type { CronChange } from "../core/shapes/event.ts";
import type { Usage } from "../core/shapes/message.ts";
import type { ModelRetry } from "../core/shapes/model-retry.ts";
import type { EndedRunState, FlowStep, ReceiptState } from "../core/shapes/run.ts";

/** Supported versions, best last. They differ in nothing that Parley uses. */
export const PROTOCOL_VERSIONS = [3, 4] as const;

/** Bytes of one message from a connected peer. */
export const MAX_PAYLOAD_BYTES = 25 * 1024 * 1024;
/** Bytes of one message from a node. */
export const MAX_PAYLOAD_OF_NODE_BYTES = 4 * 1024 * 1024;
/** Total bytes that a peer may send before it has connected. */
export const MAX_PAYLOAD_BEFORE_CONNECT_BYTES = 64 * 1024;
/** Time for the `connect` request, from the opening of the socket. */
export const CONNECT_TIMEOUT_MS = 10_000;
/** Concurrent requests of one connection; more are refused with RATE_LIMITED. */
export const PENDING_REQUESTS_MAX = 512;
/** Default timeout of `agent.wait`. */
export const WAIT_DEFAULT_MS = 30_000;
/** Name of the file in the store directory that has the generated token. */
export const TOKEN_FILE = "gateway-token";

/** Returns the address of a gateway's socket, from its `ws://…` or the page's `http://…`. */
export function socketAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  // A link to the page has the token after "#"; a socket's address may not have this part.
  url.hash = "";
  const address = url.href.replace(/^http/, "ws").replace(/\/$/, "");
  return /^wss?:/.test(address) ? address : undefined;
}

/** The close reason for a node when another connection with its key replaces it. */
export const NODE_REPLACED = "another connection with this device's key took its place";

/** WebSocket close codes. */
export const CLOSE = {
  goingAway: 1001,
  protocol: 1002,
  unsupported: 1003,
  policy: 1008,
  tooBig: 1009,
  tryAgain: 1013,
} as const;

export interface RequestFrame {
  readonly type: "req";
  readonly id: string;
  readonly method: string;
  readonly params?: unknown;
}

export interface WireError {
  readonly code: RpcCode;
  readonly message: string;
  /** `code` is the finer code of `core/shapes/errors.ts`; the rest are facts of that failure. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** The same request may succeed later. */
  readonly retryable?: boolean;
  /** The earliest time for a retry. */
  readonly retryAfterMs?: number;
}

export interface ResponseFrame {
  readonly type: "res";
  readonly id: string;
  readonly ok: boolean;
  readonly payload?: unknown;
  readonly error?: WireError;
}

export interface EventFrame {
  readonly type: "event";
  readonly event: string;
  readonly payload?: unknown;
  /** Rises by one with each event of a connection; absent on `connect.challenge`. */
  readonly seq?: number;
  readonly stateVersion?: StateVersion;
}

export interface StateVersion {
  readonly presence: number;
  readonly health: number;
}

/** A client's description of itself; every string is accepted. */
export interface ClientInfo {
  readonly id: string;
  readonly version: string;
  readonly platform: string;
  readonly mode: string;
  readonly displayName?: string;
  readonly instanceId?: string;
}

/** Proof of a device key: an Ed25519 signature over the challenge (`device.ts` defines the signed text). */
export interface DeviceProof {
  /** SHA-256 of the raw public key, in hex. */
  readonly id: string;
  /** The raw 32 bytes in base64url, or PEM. */
  readonly publicKey: string;
  readonly signature: string;
  readonly signedAt: number;
  readonly nonce?: string;
}

export interface ConnectParams {
  readonly minProtocol: number;
  readonly maxProtocol: number;
  readonly client: ClientInfo;
  /** Default: the token's. */
  readonly role?: string;
  /** Requested scopes. Default: all of the token's. A client never gets more than the token has. */
  readonly scopes?: readonly string[];
  readonly auth?: { readonly token?: string; readonly deviceToken?: string; readonly password?: string };
  readonly device?: DeviceProof;
  /** Features that the client understands: `text-deltas`. Of a node: its capabilities, in its own terms. */
  readonly caps?: readonly string[];
  /** For nodes: the commands that the node accepts. */
  readonly commands?: readonly string[];
}

export interface HelloOk {
  readonly type: "hello-ok";
  readonly protocol: number;
  readonly server: { readonly version: string; readonly host: string; readonly connId: string };
  readonly features: { readonly methods: readonly string[]; readonly events: readonly string[] };
  readonly snapshot: {
    readonly presence: readonly PresenceEntry[];
    readonly health: unknown;
    readonly stateVersion: StateVersion;
    readonly uptimeMs: number;
    readonly configPath?: string;
    readonly stateDir?: string;
    readonly sessionDefaults: {
      readonly defaultAgentId: string;
      readonly mainKey: string;
      readonly mainSessionKey: string;
      readonly scope: string;
    };
  };
  readonly policy: {
    readonly maxPayload: number;
    readonly maxBufferedBytes: number;
    readonly tickIntervalMs: number;
  };
  /** The rights of this connection; `deviceToken` only when a device signed the challenge. */
  readonly auth: { readonly deviceToken?: string; readonly role: string; readonly scopes: readonly string[] };
}

export interface PresenceEntry {
  readonly connId: string;
  readonly clientId: string;
  readonly version: string;
  readonly platform: string;
  readonly mode: string;
  readonly host?: string;
  readonly instanceId?: string;
  readonly ts: number;
}

/** A client with this capability gets the new part of a text, not the whole text so far. */
export const TEXT_DELTAS = "text-deltas";

/** Events that a connection may get, after `connect.challenge`. */
export const EVENTS = [
  "chat",
  "agent",
  "sessions",
  "deliveries",
  "message.receipt",
  "cron",
  "node.pair.requested",
  "node.pair.resolved",
  "node.invoke.request",
  "node.invoke.cancel",
  "presence",
  "health",
  "tick",
  "shutdown",
] as const;
export type EventName = (typeof EVENTS)[number];

/** The events that a node gets; `node.invoke.*` is for nodes only. */
export const NODE_EVENTS: readonly EventName[] = [
  "node.invoke.request",
  "node.invoke.cancel",
  "tick",
  "shutdown",
];

/** A message as a chat event carries it. */
export interface ChatMessage {
  readonly role: "assistant";
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly timestamp: number;
}

export interface ChatEvent {
  readonly runId: string;
  readonly sessionKey: string;
  /** Rises within a run, also when a resumed run starts its text again. */
  readonly seq: number;
  readonly state: "delta" | "final" | "aborted" | "error";
  /**
   * The whole text; in a delta the text so far, which replaces the client's text. Absent in the final event
   * of a silent run.
   */
  readonly message?: ChatMessage;
  /** For clients with `text-deltas`, replaces `message` in a delta: the text from `offset` on. */
  readonly delta?: string;
  /** The start of `delta`, in UTF-16 units. */
  readonly offset?: number;
  readonly errorMessage?: string;
  /** The finer code of an error, as in `core/shapes/errors.ts`. */
  readonly code?: string;
  readonly usage?: Usage;
  readonly stopReason?: string;
}

interface AgentEventBase {
  readonly runId: string;
  readonly sessionKey: string;
  readonly seq: number;
  readonly ts: number;
}

export interface LifecycleData {
  readonly phase: "start" | "end" | "error";
  readonly chainId: string;
  readonly flowStep?: FlowStep;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly state?: EndedRunState;
  readonly code?: string;
  readonly error?: string;
}

export interface ToolData {
  readonly phase: "start" | "result";
  readonly toolCallId: string;
  readonly name: string;
  readonly args?: unknown;
  readonly isError?: boolean;
  readonly result?: string;
}

export interface FlowData {
  readonly flowId: string;
  /** `refused`: a send or spawn that was refused; `flowId` is the call's id, `reason` the code. */
  readonly step: FlowStep | "ended" | "refused";
  readonly from: string;
  readonly to: string;
  readonly turn: number;
  readonly turnsMax: number;
  readonly text: string;
  readonly reason?: string;
}

export type AgentEvent = AgentEventBase &
  (
    | { readonly stream: "lifecycle"; readonly data: LifecycleData }
    | { readonly stream: "assistant"; readonly data: { readonly text: string } }
    /** The model's thoughts before a message, once they are stored. */
    | { readonly stream: "thinking"; readonly data: { readonly text: string } }
    | { readonly stream: "tool"; readonly data: ToolData }
    | { readonly stream: "flow"; readonly data: FlowData }
    /** The model's provider failed; the call is retried after a while. */
    | { readonly stream: "retry"; readonly data: ModelRetry }
  );

export interface SessionsEvent {
  readonly key: string;
  readonly change: "created" | "updated" | "reset" | "deleted" | "state";
}

/** A hint: the row, as `deliveries.list` returns it, is authoritative. */
export interface DeliveriesEvent {
  readonly id: string;
  readonly sessionKey: string;
  readonly state: "pending" | "sent" | "failed" | "skipped" | "dismissed";
}

/** A message between sessions has reached a state. A hint, and it may come again after a crash. */
export interface ReceiptEvent {
  /** As `sessions_send` returned it. */
  readonly messageId: string;
  /** The sender. */
  readonly from: string;
  /** The recipient. */
  readonly to: string;
  readonly state: ReceiptState;
  /** ms since 1970. */
  readonly at: number;
  /** Of `declined`, `expired` and `failed`: the code of the run's end. */
  readonly code?: string;
}

/** A scheduled job has changed or run; `cron.list` returns its state. */
export interface CronEvent {
  readonly id: string;
  readonly key: string;
  readonly change: CronChange;
}

/** A device requests pairing. */
export interface NodePairRequested {
  readonly requestId?: string;
  readonly nodeId: string;
  readonly displayName: string;
  readonly platform: string;
  readonly code?: string;
  readonly ts: number;
}

/** The request was decided, or a device was unpaired. */
export interface NodePairResolved {
  readonly requestId?: string;
  readonly nodeId: string;
  readonly displayName: string;
  readonly decision: "approved" | "rejected" | "removed";
  readonly ts: number;
}

/** A command for a node. */
export interface NodeInvokeRequest {
  readonly id: string;
  readonly nodeId: string;
  readonly command: string;
  readonly paramsJSON?: string;
  readonly timeoutMs: number;
  readonly idempotencyKey: string;
}

/** Cancels a command: its answer is no longer needed. */
export interface NodeInvokeCancel {
  readonly id: string;
  readonly nodeId: string;
}

export interface ShutdownEvent {
  readonly reason: string;
  readonly restartExpectedMs?: number;
}
