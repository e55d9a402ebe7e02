// Owns the tables of channels as the query builder sees them, in the way of tables.ts.

import type { Generated } from "kysely";

/** What came in at a channel: the same message is taken once, also after a restart. */
export interface InboundTable {
  seq: Generated<number>;
  channel: string;
  account_id: string;
  chat_id: string;
  message_id: string;
  /** Which change of the message it is; empty: none. */
  edit: string;
  /** `pending` until it is part of a run; `done | refused | ignored`. */
  state: string;
  /** Pending messages of one key are joined to one run. */
  burst_key: string;
  /** Once it is settled: what later changes of it are compared with. */
  body_json: string;
  run_id: string | null;
  received_at: number;
}

/** Somebody who writes to an account directly, and whom an operator lets in or keeps out. */
export interface ChannelPeerTable {
  channel: string;
  account_id: string;
  peer_id: string;
  name: string | null;
  /** `pending | approved | blocked`. */
  state: string;
  /** While it is pending. */
  code: string | null;
  asked_at: number;
  /** When the code was last told. */
  told_at: number;
  decided_at: number | null;
  /** Where the person reads what is decided. */
  route_json: string | null;
}

/** How far a channel's account has read. */
export interface ChannelCursorTable {
  channel: string;
  account_id: string;
  name: string;
  value: string;
}

/** A place of a channel whose messages go to a session of their own. */
export interface ThreadBindingTable {
  /** As in `deliveries`. */
  route_key: string;
  route_json: string;
  session_key: string;
  /** `created | bound`. */
  kind: string;
  created_at: number;
  used_at: number;
  /** 0: never. */
  idle_ms: number;
  /** 0: never. */
  max_age_ms: number;
}
