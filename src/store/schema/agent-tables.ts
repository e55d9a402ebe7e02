// Defines the tables that belong to agents and to the deployment: memory, devices, tokens,
// and the processes that share the store.

import { id, integer, nullable, rowNumber, table, text, word } from "./definition.ts";

export const AGENT_TABLES = {
  /** The memory of an agent. */
  agent_memory: table(
    {
      agent_id: id,
      text,
      revision: integer,
      /** Ids of the calls that made the last changes. */
      calls_json: id,
      updated_at: integer,
    },
    { key: ["agent_id"], kept: ["text"] },
  ),

  /**
   * The contents of instruction files that runs with outside content may have changed
   * (`store/queries/instruction-contents.ts`).
   */
  instruction_contents: table(
    {
      /** The path of a file, `memory:<agent>`, or the id of a call. */
      id,
      /** `open | confirmed | pending`. */
      state: id,
      /** Path of the file, or of the folder below which the call may write. */
      path: id,
      /** The text that counts. Null: none does. */
      text: nullable(text),
      /** Size of the whole file with that text. */
      bytes: nullable(integer),
      source: id,
      session_key: id,
      run_id: nullable(id),
      /** 1 if the call may have left a program that still writes. */
      lasts: integer,
      at: integer,
    },
    { key: ["id"], hasRowid: true, kept: ["text"] },
  ),

  /** Devices that have a token for a role. */
  device_tokens: table(
    {
      device_id: id,
      role: word<"operator" | "node">(),
      series: id,
      /** Gateway token from which the device's newest token was derived. */
      token_id: id,
      name: id,
      platform: id,
      created_at: integer,
      used_at: integer,
      expires_at: integer,
    },
    { key: ["device_id", "role"] },
  ),

  /** Tokens that operators created. The token itself is never stored. */
  access_tokens: table(
    {
      id,
      token_id: id,
      name: id,
      scopes_json: id,
      /** Null: every session. */
      patterns_json: nullable(id),
      created_at: integer,
      used_at: nullable(integer),
      expires_at: integer,
      /** Null: the token was created by an operator, not by the sign-in of an MCP client. */
      sign_in_json: nullable(id),
    },
    { key: ["id"] },
  ),

  /** Gateway processes that share the store, with their last heartbeats. */
  processes: table(
    {
      process_id: id,
      host: id,
      version: id,
      started_at: integer,
      /** Time of the last heartbeat, by the database's clock. */
      beat_at: integer,
      config_revision: nullable(id),
    },
    { key: ["process_id"], fill: 50, isPassing: true },
  ),

  /**
   * Tasks that only one process may do at a time, for example polling a bot account. Each row names the
   * process that does the task.
   */
  holdings: table({ name: id, owner: id, since: integer }, { key: ["name"], isPassing: true }),

  /** Live events that are too large for a message between processes. They are deleted after a short time. */
  live_payloads: table(
    { id: rowNumber, body: text, created_at: integer },
    {
      postgresIndexes: ["live_payloads_by_age (created_at)"],
      isPassing: true,
      isUnlogged: true,
      blankedByQuery: ["body"],
    },
  ),
};
