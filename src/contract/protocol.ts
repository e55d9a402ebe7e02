// Defines the constants of the protocol: versions, limits, names of events.
// `frames.ts` defines the frames, `methods.ts` the methods, `events.ts` the payloads.

/** Supported versions, the preferred one last. They differ only in unknown params, see `isLenient`. */
export const PROTOCOL_VERSIONS = [3, 4] as const;
/** The version of Parley's own clients. In it, unknown params are refused. */
export const STRICT_VERSION = 3;

/** Returns whether unknown params of a client with this version are ignored. */
export function isLenient(version: number | undefined): boolean {
  return version !== undefined && version > STRICT_VERSION;
}

/** Maximum size of one message from a connected client. */
export const MAX_PAYLOAD_BYTES = 25 * 1024 * 1024;
/** Maximum size of one message from the gateway. */
export const MAX_FRAME_BYTES = 4 * MAX_PAYLOAD_BYTES;
/** Maximum size of one message from a node. */
export const MAX_PAYLOAD_OF_NODE_BYTES = 4 * 1024 * 1024;
/** Maximum number of bytes that a client may send before it has connected. */
export const MAX_PAYLOAD_BEFORE_CONNECT_BYTES = 64 * 1024;
/** Time limit for the `connect` request after the socket was opened. */
export const CONNECT_TIMEOUT_MS = 10_000;
/**
 * Maximum number of concurrent requests of one connection. Further requests are refused with RATE_LIMITED.
 */
export const PENDING_REQUESTS_MAX = 512;
/** Default timeout of `agent.wait`. */
export const WAIT_DEFAULT_MS = 30_000;
/** Name of the file with the generated token, in the store directory. */
export const TOKEN_FILE = "gateway-token";

/**
 * Returns the address of a gateway's socket for its `ws://` address, or for the page's `http://` address.
 * Returns undefined for any other text.
 */
export function socketAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  // A link to the page contains the token after "#". A socket address must not have this part.
  url.hash = "";
  const address = url.href.replace(/^http/, "ws").replace(/\/$/, "");
  return /^wss?:/.test(address) ? address : undefined;
}

/** Close reason for a node that another connection with the same key replaces. */
export const NODE_REPLACED = "another connection with this device's key took its place";

/** Close codes of the WebSocket. */
export const CLOSE = {
  goingAway: 1001,
  protocol: 1002,
  unsupported: 1003,
  policy: 1008,
  tooBig: 1009,
  tryAgain: 1013,
} as const;

/** Capability of clients that accept deltas: only the new part of a text, not the whole text so far. */
export const TEXT_DELTAS = "text-deltas";
/** Capability of clients that get a model's thinking while it is written, as deltas. */
export const THINKING_DELTAS = "thinking-deltas";

/** Events that a node gets. Only nodes get `node.invoke.*`. */
export const NODE_EVENTS: readonly string[] = [
  "node.invoke.request",
  "node.invoke.cancel",
  "tick",
  "shutdown",
];
