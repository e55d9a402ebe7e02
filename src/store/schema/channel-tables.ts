// Declares the tables of channels for the query builder, like tables.ts.

import type { Generated } from "kysely";

/** Incoming messages of channels: each is taken once, also after a restart. */
export interface InboundTable {
  seq: Generated<number>;
  channel: string;
  account_id: string;
  chat_id: string;
  message_id: string;
  /** Version of an edited message; empty: the original. */
  edit: string;
  /** `pending` until it is part of a run; `done | refused | ignored`. */
  state: string;
  /** Pending messages of one key are joined to one run. */
  burst_key: string;
  /** Set when the message is settled: later edits are compared with it. */
  body_json: string;
  run_id: string | null;
  received_at: number;
}

/** A person who writes to an account directly, and whom an operator approves or blocks. */
export interface ChannelPeerTable {
  channel: string;
  account_id: string;
  peer_id: string;
  name: string | null;
  /** `pending | approved | blocked`. */
  state: string;
  /** Set while the person is pending. */
  code: string | null;
  asked_at: number;
  /** When the code was last sent. */
  told_at: number;
  decided_at: number | null;
  /** Where to send the operator's decision. */
  route_json: string | null;
}

/** Read position of a channel account. */
export interface ChannelCursorTable {
  channel: string;
  account_id: string;
  name: string;
  value: string;
}

/** A thread or chat of a channel whose messages go to a separate session. */
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
