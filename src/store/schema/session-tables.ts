// Defines the tables of sessions and of what belongs to one session.

import { sql } from "kysely";
import type { LabelDecision } from "../../core/shapes/labels.ts";
import type { PermissionScope } from "../../core/shapes/permission.ts";
import {
  computed,
  id,
  integer,
  lastingNumber,
  nullable,
  orElse,
  real,
  rowNumber,
  table,
  text,
  unique,
  word,
} from "./definition.ts";

const NEWEST_FIRST = "archived, updated_at desc, key desc";

export const SESSION_TABLES = {
  sessions: table(
    {
      /** Never changes. Links the row to the index of session names. */
      row_id: rowNumber,
      key: unique(id),
      session_id: unique(id),
      agent_id: id,
      kind: id,
      label: nullable(text),
      display_name: nullable(text),
      created_at: integer,
      updated_at: integer,
      archived_at: nullable(integer),
      /** 1 while `archived_at` is set. The indexes of lists need this column. */
      archived: computed({
        sqlite: "integer generated always as (archived_at is not null) virtual",
        postgres:
          "bigint not null generated always as (case when archived_at is null then 0 else 1 end) stored",
      }),
      spawned_by: nullable(id),
      spawn_depth: integer,
      external: integer,
      model: nullable(id),
      thinking_level: nullable(id),
      verbose_level: nullable(id),
      send_policy: nullable(id),
      system_sent: integer,
      aborted_last_run: integer,
      input_tokens: integer,
      output_tokens: integer,
      total_tokens: integer,
      context_tokens: integer,
      last_channel: nullable(id),
      last_to: nullable(id),
      last_account_id: nullable(id),
      last_thread_id: nullable(id),
      group_channel: nullable(id),
      /**
       * Number that the next accepted run gets. The lock on this row ensures that runs are committed in the
       * order of their numbers (I3).
       */
      next_lane_seq: orElse(integer, 1),
      /** Facts about the spawn of a sub-agent, as `SpawnFacts`. */
      spawn_json: nullable(text),
      /** Cost in USD since the last reset. */
      cost: orElse(real, 0),
      /** 1 if the session named in `spawned_by` no longer exists. */
      orphaned: orElse(integer, 0),
      /** Id of the run of the last turn, if that turn failed. */
      failed_run: nullable(id),
      /** Beginning of the conversation, redacted, on one line. */
      first_words: nullable(text),
      /** An operator's instructions for the model. */
      instructions: nullable(text),
      /** Labels of the texts since the last reset, as `Labels`. */
      labels_json: nullable(text),
    },
    {
      indexes: [
        `sessions_newest (${NEWEST_FIRST})`,
        `sessions_by_agent (agent_id, ${NEWEST_FIRST})`,
        `sessions_by_agent_kind (agent_id, kind, ${NEWEST_FIRST})`,
        `sessions_by_kind (kind, ${NEWEST_FIRST})`,
        `sessions_by_spawner (spawned_by, ${NEWEST_FIRST}) where spawned_by is not null`,
        `sessions_by_label (label, ${NEWEST_FIRST}) where label is not null`,
        `sessions_roots (${NEWEST_FIRST}) where spawned_by is null or orphaned = 1`,
        `sessions_failed (${NEWEST_FIRST}) where failed_run is not null`,
        "sessions_failed_below (spawned_by, archived) where failed_run is not null",
      ],
      fill: 80,
      removed: { of: "key" },
    },
  ),

  /** All transcripts that a session has had, so that an id from before a reset still finds the session. */
  session_ids: table(
    {
      session_id: id,
      session_key: id,
      created_at: integer,
      /** Transcript whose beginning this one shares, and the last shared message. Null: not a fork. */
      forked_from: nullable(id),
      forked_at: nullable(id),
      /** Labels of the texts, as `Labels`, once a reset has begun another transcript. */
      labels_json: nullable(id),
    },
    {
      key: ["session_id"],
      indexes: [
        "session_ids_by_key (session_key)",
        "session_ids_by_fork (forked_from) where forked_from is not null",
      ],
      removed: { of: "session_key" },
    },
  ),

  messages: table(
    {
      /** Increases across the whole store. Within a transcript it defines the order. */
      seq: lastingNumber,
      id: unique(id),
      session_id: id,
      session_key: id,
      run_id: nullable(id),
      /** `user | assistant | toolResult | compaction`. */
      role: id,
      entry_json: text,
      created_at: integer,
    },
    {
      indexes: [
        "messages_of_session (session_id, seq)",
        "messages_of_run (run_id, seq) where run_id is not null",
        "compactions_of_session (session_id, seq) where role = 'compaction'",
      ],
      removed: { of: "session_id" },
    },
  ),

  /** A file that an agent sent to the people of its session. */
  sent_files: table(
    {
      id,
      /** The transcript with the call that sent the file. */
      session_id: id,
      name: text,
      mime_type: id,
      /** Markdown. Empty: none. */
      caption: text,
      bytes: integer,
      /** Base64. */
      content: text,
      created_at: integer,
    },
    {
      key: ["id"],
      hasRowid: true,
      indexes: ["sent_files_of_session (session_id, created_at, id)"],
      // A file that waits to be delivered goes with its delivery.
      removed: {
        of: "session_id",
        when: sql`not exists (
        select 1 from deliveries d where d.file_id = sent_files.id and d.state = 'pending')`,
      },
    },
  ),

  /** The conversation of a transcript with an agent elsewhere. */
  remote_tasks: table(
    {
      session_id: id,
      remote: id,
      context_id: id,
      run_id: id,
      task_id: nullable(id),
      is_asking: integer,
      known_up_to: nullable(id),
      updated_at: integer,
    },
    { key: ["session_id"], hasRowid: true, removed: { of: "session_id" } },
  ),

  permissions: table(
    {
      id,
      session_key: id,
      agent_id: id,
      run_id: id,
      /** The attempt of the run that asked. */
      attempt: integer,
      title: text,
      kind: nullable(id),
      detail: nullable(text),
      asked_at: integer,
      expires_at: integer,
      /** Null until somebody decides about the request. */
      decision: nullable(word<"allow" | "deny">()),
      decided_at: nullable(integer),
      decided_by: nullable(id),
      /** The tool call that asks. Null: the request ends with the attempt of its run. */
      call_id: nullable(id),
      /** The scopes that an answer may have. Null: only `once`. */
      scopes_json: nullable(id),
      /**
       * JSON of the files that the command names, with their digests, or of the form of an MCP server's
       * question, then of its answer.
       */
      digest: nullable(text),
      folder: nullable(id),
      /** The scope of the answer. Null: `once`. */
      scope: nullable(word<PermissionScope>()),
    },
    {
      key: ["id"],
      indexes: [
        "permissions_of_run (run_id)",
        "permissions_of_call (call_id) where call_id is not null",
        "permissions_of_session (session_key)",
      ],
      isUnseen: true,
      removed: { of: "session_key" },
    },
  ),

  /** Commands that owners allowed for longer than once. */
  permission_rules: table(
    {
      id,
      agent_id: id,
      session_key: id,
      chain_id: nullable(id),
      scope: word<"chain" | "session" | "always">(),
      digest: id,
      command: text,
      folder: id,
      created_at: integer,
      created_by: id,
    },
    {
      key: ["id"],
      indexes: [
        "permission_rules_of_command (digest, agent_id)",
        "permission_rules_of_session (session_key)",
      ],
      // The rules for all sessions of an agent belong to the agent; those for the session go.
      blankedByQuery: ["command"],
    },
  ),

  /** Decisions about calls of runs that were outside and private (core/rules/labels/labels.ts). */
  label_decisions: table(
    {
      id,
      at: integer,
      session_key: id,
      agent_id: id,
      run_id: nullable(id),
      chain_id: nullable(id),
      sink: word<LabelDecision["sink"]>(),
      destination: text,
      payload: text,
      labels_json: text,
      decision: word<LabelDecision["decision"]>(),
      /** Name of the person, or the setting or rule that decided. */
      decided_by: id,
    },
    {
      key: ["id"],
      indexes: [
        "label_decisions_by_age (at)",
        "label_decisions_of_session (session_key, at)",
        "label_decisions_of_chain (chain_id, at) where chain_id is not null",
      ],
      old: (now) => `at < ${now - 90 * 86_400_000}`,
      removed: { of: "session_key" },
    },
  ),

  /** Files that runs with outside content may have written, or folders of them, by their real paths. */
  outside_files: table(
    { path: id, noted_at: integer },
    { key: ["path"], old: (now) => `noted_at < ${now - 90 * 86_400_000}` },
  ),

  /** A thread or chat whose messages go to a separate session. */
  thread_bindings: table(
    {
      /** Same form as in `deliveries`. */
      route_key: id,
      route_json: id,
      session_key: id,
      /** `created | bound`. */
      kind: id,
      created_at: integer,
      used_at: integer,
      /** Time after the last message at which the binding ends, in ms. 0: never. */
      idle_ms: integer,
      /** Maximum age of the binding, in ms. 0: unlimited. */
      max_age_ms: integer,
    },
    { key: ["route_key"], indexes: ["thread_bindings_of_session (session_key)"] },
  ),
};
