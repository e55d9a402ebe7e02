// Owns what is answered about channels: how the ways out stand, who may write to an agent, which places are
// bound to a session.

import type { Route } from "../../core/route.ts";

/** A way out of the gateway, and how it stands. What of the outbox is in it: only for tokens that see all. */
export interface ChannelRow {
  /** `webchat`, `<channel>:<account>`, `webhook:<name>`, `mcp:<server>`, `acp:<agent>`. */
  readonly id: string;
  /** `other`: what waits or failed for ways that are not configured any more. */
  readonly kind: "webchat" | "channel" | "webhook" | "mcp" | "acp" | "other";
  readonly configured: boolean;
  readonly ok: boolean;
  /**
   * `idle`: nothing has used it yet. `configured`: no more than that may be told. `standby`: another process
   * listens at the account.
   */
  readonly state: "ready" | "idle" | "starting" | "retrying" | "failing" | "down" | "configured" | "standby";
  readonly connectedSince?: number;
  /** Nothing is tried before. */
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

/** Somebody who asked to write to an agent, and what was decided. */
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

/** A place of a channel whose messages go to a session of its own. */
export interface BindingRow {
  readonly route: Route;
  readonly sessionKey: string;
  /** `created`: a thread that was made for it. `bound`: a chat that was there before. */
  readonly kind: "created" | "bound";
  readonly createdAt: number;
  readonly usedAt: number;
  /** It ends this long after the last message; 0: never. */
  readonly idleMs: number;
  /** It ends at this age; 0: never. */
  readonly maxAgeMs: number;
}

interface Decided {
  readonly ok: true;
  readonly peer: PeerRow;
}

export interface ChannelPayloads {
  "channels.status": { readonly channels: readonly ChannelRow[] };
  /** `name`: who the account is at its platform. */
  "channels.test": { readonly ok: true; readonly account: string; readonly name: string };
  /** Newest first. */
  "channels.pair.list": { readonly peers: readonly PeerRow[] };
  "channels.pair.approve": Decided;
  "channels.pair.reject": Decided;
  "channels.pair.remove": Decided;
  "bindings.list": { readonly bindings: readonly BindingRow[] };
  "bindings.unbind": { readonly ok: true; readonly sessionKey: string; readonly ended: number };
}
