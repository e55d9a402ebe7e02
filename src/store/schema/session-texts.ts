// Says what the deletion of a session does with each text column of each table. A new column must be listed
// here (tests/store/session-texts.test.ts), so that no text of a deleted session stays by accident.
// ER1: a deletion removes or blanks every text of the session. Texts that other sessions hold are theirs and
//      stay: a requester keeps the result of its sub-agent, and a fork its beginning.
// ER2: a text that waits to be delivered still goes out, and is blanked when it is settled.

import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Tables } from "./tables.ts";

/** The rows whose column `of` names the session get these values, if `when` is true. */
export interface Blanked {
  readonly of: string;
  readonly when?: RawBuilder<SqlBool>;
  readonly columns: Readonly<Record<string, string | null>>;
}

export type TextsOf =
  /** The rows go whose column `removed` names the session, or one of its transcripts, if `when` is true. */
  | { readonly removed: string; readonly when?: RawBuilder<SqlBool> }
  | {
      readonly blanked?: readonly Blanked[];
      /** Columns that a query of their own blanks. */
      readonly byQuery?: readonly string[];
      /** Columns that stay: ids, states, settings, and texts that belong to nobody's session. */
      readonly kept: readonly string[];
    };

const NO_REQUEST = { request_text: "", round1_reply: null, latest_reply: null };

export const SESSION_TEXTS: Readonly<Record<keyof Tables | "job_waits", TextsOf>> = {
  sessions: { removed: "key" },
  session_ids: { removed: "session_key" },
  messages: { removed: "session_id" },
  sent_files: {
    removed: "session_id",
    // A file that waits to be delivered goes with its delivery.
    when: sql`not exists (
      select 1 from deliveries d where d.file_id = sent_files.id and d.state = 'pending')`,
  },
  remote_tasks: { removed: "session_id" },
  permissions: { removed: "session_key" },
  refusals: { removed: "from_key" },
  runs: {
    // An input keeps who wrote it (`queries/runs/runs.ts`).
    byQuery: ["input_json"],
    blanked: [{ of: "session_key", columns: { reply: null, error: null } }],
    kept: [
      ...["run_id", "session_key", "session_id", "agent_id", "kind", "state", "chain_id", "owner", "pool"],
      ...["route_json", "flow_id", "flow_step", "parent_run_id", "asked_by", "call_id", "code", "model"],
      ...["usage_json", "revision", "queue"],
    ],
  },
  flows: {
    blanked: [
      // A job that continues without its requester needs its texts.
      {
        of: "requester_key",
        when: sql`state = 'ended'`,
        columns: { ...NO_REQUEST, outcome_json: null },
      },
      // The outcome of a job belongs to its requester, which may still read it.
      { of: "target_key", columns: NO_REQUEST },
    ],
    kept: [
      ...["flow_id", "kind", "chain_id", "requester_key", "requester_session_id", "requester_run_id"],
      ...["target_key", "state", "end_reason"],
    ],
  },
  deliveries: {
    // Those that are pending still go out (`queries/channels/deliveries.ts`).
    byQuery: ["text", "error"],
    kept: [
      ...["id", "session_key", "run_id", "kind", "route_key", "route_json", "state", "code"],
      ...["attempt_owner", "file_id", "controls_json"],
    ],
  },
  // An answer keeps its ids, because a repeated call gets it again (`queries/idempotency.ts`).
  idempotency: { byQuery: ["answer_json"], kept: ["key", "caller", "method", "params_hash", "begun_by"] },
  // The instructions of the session go (`queries/runs/revisions.ts`). Other parts belong to the agent.
  revisions: { byQuery: ["body_json"], kept: ["hash", "kind"] },
  // The rules for all sessions of an agent belong to the agent; those for the session go.
  permission_rules: {
    byQuery: ["command"],
    kept: ["id", "agent_id", "session_key", "scope", "digest", "folder", "created_by"],
  },
  waits: {
    kept: [
      ...["call_id", "waiter_run_id", "waiter_session_key", "target_run_id", "target_session_key", "state"],
      ...["owner", "of_call", "kind"],
    ],
  },
  // Processes of an earlier version use this table while they are replaced.
  job_waits: {
    kept: [
      ...["call_id", "flow_id", "waiter_run_id", "waiter_session_key", "target_session_key", "state"],
      "owner",
    ],
  },
  inbox_marks: { kept: ["run_id", "session_key", "session_id", "outcome"] },
  chains: { kept: ["chain_id", "root_session_key", "outside"] },
  ledger: { kept: ["run_id", "session_key", "root_key", "agent_id", "provider", "model", "chain_id"] },
  slots: { kept: ["run_id"] },
  agent_days: { kept: ["agent_id"] },
  deadlines: { kept: ["kind", "key"] },
  push_configs: { kept: ["run_id", "id", "url", "token", "scheme", "credentials"] },
  live_payloads: { byQuery: ["body"], kept: [] },
  // A message has a text only until it is part of a run. Then it keeps a digest.
  inbound: {
    kept: [
      ...["channel", "account_id", "chat_id", "message_id", "edit", "state", "burst_key", "body_json"],
      "run_id",
    ],
  },
  thread_bindings: { kept: ["route_key", "route_json", "session_key", "kind"] },
  // People, their chats, jobs, memory and keys belong to no session.
  channel_peers: {
    kept: ["channel", "account_id", "peer_id", "name", "state", "code", "route_json"],
  },
  channel_cursors: { kept: ["channel", "account_id", "name", "value"] },
  cron_jobs: {
    kept: [
      ...["id", "name", "agent_id", "schedule_json", "message", "deliver_json", "model", "thinking"],
      ...["missed", "created_by", "session_key", "call_id", "outside", "conversation"],
    ],
  },
  cron_runs: { kept: ["job_id", "cause", "run_id", "code", "error"] },
  // The texts are those of files in a workspace, and of the agent's memory.
  instruction_contents: { kept: ["id", "state", "path", "text", "source", "session_key", "run_id"] },
  agent_memory: { kept: ["agent_id", "text", "calls_json"] },
  processes: { kept: ["process_id", "host", "version", "config_revision"] },
  holdings: { kept: ["name", "owner"] },
  nodes: {
    kept: [
      ...["id", "name", "platform", "version", "public_key", "caps_json", "commands_json", "agent_id"],
      ...["created_by", "owner", "conn_id"],
    ],
  },
  node_requests: {
    kept: [
      ...["node_id", "request_id", "code", "name", "platform", "version", "public_key", "caps_json"],
      ...["commands_json", "remote", "asked_by"],
    ],
  },
  device_tokens: { kept: ["device_id", "role", "series", "token_id", "name", "platform"] },
  access_tokens: {
    kept: ["id", "token_id", "name", "scopes_json", "patterns_json", "sign_in_json"],
  },
  gateway_keys: { kept: ["name", "key_json"] },
  peers: { kept: ["name", "url", "key_json", "key_id", "code_key", "exposes_json", "offers_json"] },
};
