// Declares the types of the channel tables for the query builder, as tables.ts does for the other tables.

import type { Generated } from "kysely";

/**
 * Incoming messages of channels. Each message is accepted once, even if the channel delivers it again after a
 * restart.
 */
export interface InboundTable {
  seq: Generated<number>;
  channel: string;
  account_id: string;
  chat_id: string;
  message_id: string;
  /** Version of an edited message; empty for the original. */
  edit: string;
  /** `pending` until the message is part of a run, then `done`; or `refused` or `ignored`. */
  state: string;
  /** Pending messages with the same key are joined into one run. */
  burst_key: string;
  /** JSON. When the message is no longer pending, only the text with which later edits are compared. */
  body_json: string;
  run_id: string | null;
  received_at: number;
}

/** A person who writes to an account directly. An operator approves or blocks the person. */
export interface ChannelPeerTable {
  channel: string;
  account_id: string;
  peer_id: string;
  name: string | null;
  /** `pending | approved | blocked`. */
  state: string;
  /** Pairing code; set while the person waits for approval. */
  code: string | null;
  asked_at: number;
  /** Time when the person was last sent the code. */
  told_at: number;
  decided_at: number | null;
  /** Route on which the person gets the operator's decision. */
  route_json: string | null;
}

/** Position up to which the messages of a channel account have been read. */
export interface ChannelCursorTable {
  channel: string;
  account_id: string;
  name: string;
  value: string;
}

/** A thread or chat whose messages go to a separate session. */
export interface ThreadBindingTable {
  /** Same form as in `deliveries`. */
  route_key: string;
  route_json: string;
  session_key: string;
  /** `created | bound`. */
  kind: string;
  created_at: number;
  used_at: number;
  /** Time after the last message at which the binding ends, in ms. 0: never. */
  idle_ms: number;
  /** Maximum age of the binding, in ms. 0: unlimited. */
  max_age_ms: number;
}

/** Texts for people and events for programs, with the outcome of their delivery. */
export interface DeliveryTable {
  id: string;
  /** Increases across the whole store. Defines the order of the deliveries of a route. */
  seq: Generated<number>;
  session_key: string;
  run_id: string | null;
  /** `announce | send | hook`. */
  kind: string;
  /** Canonical text of the route. Deliveries with the same text are sent in order. */
  route_key: string;
  route_json: string;
  text: string;
  /** `pending | sent | failed | skipped`. */
  state: string;
  code: string | null;
  error: string | null;
  attempts: number;
  /** 1 from the start of a delivery attempt until its outcome is stored. */
  attempt_open: number;
  /** Id of the process that started the open attempt. */
  attempt_owner: Generated<string | null>;
  /** Number of parts of the text that the channel has acknowledged. */
  parts_sent: number;
  next_attempt_at: number;
  created_at: number;
  settled_at: number | null;
  dismissed_at: number | null;
  /** Id of the file that is sent instead of the text. */
  file_id: Generated<string | null>;
  controls_json: Generated<string | null>;
  /** 1 if the session was deleted while the row was pending. Its text is blanked when it is settled. */
  erase: Generated<number>;
  /** Time at which a retried delivery is given up. Null: a day after it was queued. */
  give_up_at: Generated<number | null>;
}
