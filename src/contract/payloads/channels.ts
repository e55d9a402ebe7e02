// Owns the answers about channels: status of the outgoing paths, who may write to an agent, bound chats.

import type { Route } from "../../core/shapes/route.ts";

/**
 * An outgoing path of the gateway, and its status. The outbox's figures: only for tokens that cover every
 * session.
 */
export interface ChannelRow {
  /** `webchat`, `<channel>:<account>`, `webhook:<name>`, `mcp:<server>`, `acp:<agent>`. */
  readonly id: string;
  /** `other`: pending or failed deliveries of paths that are no longer configured. */
  readonly kind: "webchat" | "channel" | "webhook" | "mcp" | "acp" | "other";
  readonly configured: boolean;
  readonly ok: boolean;
  /**
   * `idle`: not used yet. `configured`: the token may see no more than this. `standby`: another process
   * listens at the account.
   */
  readonly state: "ready" | "idle" | "starting" | "retrying" | "failing" | "down" | "configured" | "standby";
  readonly connectedSince?: number;
  /** Earliest time of the next attempt. */
  readonly backoffUntil?: number;
  readonly lastError?: string;
  readonly lastErrorAt?: number;
  readonly lastSentAt?: number;
  readonly pending?: number;
  /** Failed and not dismissed. */
  readonly failed?: number;
  /** Of an MCP server that is ready. */
  readonly tools?: number;
  /** Programs of an ACP agent that are running. */
  readonly programs?: number;
}

/** A person who requested to write to an agent, and the decision. */
export interface PeerRow {
  readonly channel: string;
  readonly accountId: string;
  readonly peerId: string;
  readonly name?: string;
  readonly state: "pending" | "approved" | "blocked";
  /** While it is pending. */
  readonly code?: string;
  readonly askedAt: number;
  readonly decidedAt?: number;
}

/** A chat of a channel that is bound to its own session. */
export interface BindingRow {
  readonly route: Route;
  readonly sessionKey: string;
  /** `created`: a thread that was made for it. `bound`: an existing chat. */
  readonly kind: "created" | "bound";
  readonly createdAt: number;
  readonly usedAt: number;
  /** Expires this long after the last message; 0: never. */
  readonly idleMs: number;
  /** Expires at this age; 0: never. */
  readonly maxAgeMs: number;
}

interface Decided {
  readonly ok: true;
  readonly peer: PeerRow;
}

export interface ChannelPayloads {
  "channels.status": { readonly channels: readonly ChannelRow[] };
  /** `name`: the account's name at its platform. */
  "channels.test": { readonly ok: true; readonly account: string; readonly name: string };
  /** Newest first. */
  "channels.pair.list": { readonly peers: readonly PeerRow[] };
  "channels.pair.approve": Decided;
  "channels.pair.reject": Decided;
  "channels.pair.remove": Decided;
  "bindings.list": { readonly bindings: readonly BindingRow[] };
  "bindings.unbind": { readonly ok: true; readonly sessionKey: string; readonly ended: number };
}
