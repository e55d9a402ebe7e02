// Owns the constants of the protocol: versions, limits, names of events. `frames.ts` has the frames,
// `methods.ts` the methods, `events.ts` the payloads.

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

/** A client with this capability gets the new part of a text, not the whole text so far. */
export const TEXT_DELTAS = "text-deltas";

/** Events that a connection may get, after `connect.challenge`. */
export const EVENT_NAMES = [
  "chat",
  "agent",
  "sessions",
  "deliveries",
  "attention",
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
export type EventName = (typeof EVENT_NAMES)[number];

/** The events that a node gets; `node.invoke.*` is for nodes only. */
export const NODE_EVENTS: readonly EventName[] = [
  "node.invoke.request",
  "node.invoke.cancel",
  "tick",
  "shutdown",
];
