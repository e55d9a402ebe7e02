// Owns the tables of the edges as the query builder sees them: what comes in at channels, and paired devices.
// As in tables.ts.

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
  /** `pending` until it is part of a run; `done`, `ignored`. */
  state: string;
  /** Pending messages of one key are joined to one run. */
  burst_key: string;
  /** Empty once it is settled. */
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

/** A paired device, and where it was last connected. */
export interface NodeTable {
  id: string;
  name: string;
  platform: string;
  version: string;
  /** The raw key in base64url. */
  public_key: string;
  caps_json: string;
  commands_json: string;
  agent_id: string | null;
  paired_at: number;
  last_seen_at: number | null;
  /** The process that holds its connection; that may be dead. */
  owner: string | null;
  conn_id: string | null;
  connected_at: number | null;
}

/** A device that asks to be paired. */
export interface NodeRequestTable {
  node_id: string;
  request_id: string;
  code: string;
  name: string;
  platform: string;
  version: string;
  public_key: string;
  caps_json: string;
  commands_json: string;
  remote: string;
  created_at: number;
}
