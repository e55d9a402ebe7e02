// Defines the tables of channels: what comes in, what goes out, and who writes.

import {
  id,
  integer,
  lastingNumber,
  nullable,
  orElse,
  rowNumber,
  table,
  text,
  unique,
} from "./definition.ts";
import { queueKeySql } from "./outbox-schema.ts";

export const CHANNEL_TABLES = {
  /** Texts for people and events for programs, with the outcome of their delivery. */
  deliveries: table(
    {
      /** Increases across the whole store. Defines the order of the deliveries of a route. */
      seq: rowNumber,
      id: unique(id),
      session_key: id,
      run_id: nullable(id),
      /** `announce | send | hook`. */
      kind: id,
      /** Canonical text of the route. Deliveries with the same text are sent in order. */
      route_key: id,
      route_json: id,
      text,
      /** `pending | sent | failed | skipped`. */
      state: id,
      code: nullable(id),
      error: nullable(text),
      attempts: integer,
      /** 1 from the start of a delivery attempt until its outcome is stored. */
      attempt_open: integer,
      /** Number of parts of the text that the channel has acknowledged. */
      parts_sent: integer,
      next_attempt_at: integer,
      created_at: integer,
      settled_at: nullable(integer),
      dismissed_at: nullable(integer),
      /** Id of the process that started the open attempt. */
      attempt_owner: nullable(id),
      /** Id of the file that is sent instead of the text. */
      file_id: nullable(id),
      /** Buttons of the text, and the pressed button that it answers. */
      controls_json: nullable(id),
      /** 1 if the session was deleted while the row was pending. Its text is blanked when it is settled. */
      erase: orElse(integer, 0),
      /** Time at which a retried delivery is given up. Null: a day after it was queued. */
      give_up_at: nullable(integer),
    },
    {
      indexes: [
        "deliveries_by_state (state, seq)",
        "deliveries_in_route (route_key, seq) where state = 'pending'",
        "deliveries_open (seq) where attempt_open = 1",
        "deliveries_of_session (session_key, seq)",
        "deliveries_of_run (run_id) where run_id is not null",
        "deliveries_of_file (file_id) where file_id is not null",
        `deliveries_in_queue (${queueKeySql("")}, seq) where settled_at is null`,
      ],
      // Those that are pending still go out (`queries/channels/deliveries.ts`).
      blankedByQuery: ["text", "error"],
    },
  ),

  /**
   * Incoming messages of channels. Each message is accepted once, even if the channel delivers it again after
   * a restart.
   */
  inbound: table(
    {
      seq: lastingNumber,
      channel: id,
      account_id: id,
      chat_id: id,
      message_id: id,
      /** Version of an edited message; empty for the original. */
      edit: orElse(id, ""),
      /** `pending` until the message is part of a run, then `done`; or `refused` or `ignored`. */
      state: id,
      /** Pending messages with the same key are joined into one run. */
      burst_key: id,
      /** JSON. When the message is no longer pending, only a digest with which later edits are compared. */
      body_json: text,
      run_id: nullable(id),
      received_at: integer,
    },
    {
      unique: ["channel", "account_id", "chat_id", "message_id", "edit"],
      indexes: ["inbound_of_burst (state, burst_key, seq)", "inbound_by_age (received_at)"],
      kept: ["body_json"],
    },
  ),

  /** A person who writes to an account directly. An operator approves or blocks the person. */
  channel_peers: table(
    {
      channel: id,
      account_id: id,
      peer_id: id,
      name: nullable(id),
      /** `pending | approved | blocked`. */
      state: id,
      /** Pairing code; set while the person waits for approval. */
      code: nullable(unique(id)),
      asked_at: integer,
      /** Time when the person was last sent the code. */
      told_at: integer,
      decided_at: nullable(integer),
      /** Route on which the person gets the operator's decision. */
      route_json: nullable(id),
    },
    { key: ["channel", "account_id", "peer_id"] },
  ),

  /** Position up to which the messages of a channel account have been read. */
  channel_cursors: table(
    { channel: id, account_id: id, name: id, value: id },
    { key: ["channel", "account_id", "name"] },
  ),
};
