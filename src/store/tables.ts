// Owns the tables as the query builder sees them. Times are ms since 1970, flags are 0 or 1, `*_json` is JSON
// text. One text for both databases: only types that SQLite and PostgreSQL share.

import type { ColumnType, Generated } from "kysely";
import type {
  ChannelCursorTable,
  ChannelPeerTable,
  InboundTable,
  ThreadBindingTable,
} from "./channel-tables.ts";

export interface SessionTable {
  /** Never changes; ties the row to the entry by which its names are found. */
  row_id: Generated<number>;
  key: string;
  session_id: string;
  agent_id: string;
  kind: string;
  label: string | null;
  display_name: string | null;
  created_at: number;
  updated_at: number;
  archived_at: number | null;
  /** 1 while `archived_at` is set: kept by the database, so that lists can be read in index order. */
  archived: ColumnType<number, never, never>;
  spawned_by: string | null;
  /** 1 while the session that `spawned_by` names is not there. */
  orphaned: Generated<number>;
  spawn_depth: number;
  external: number;
  model: string | null;
  thinking_level: string | null;
  verbose_level: string | null;
  send_policy: string | null;
  system_sent: number;
  aborted_last_run: number;
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  context_tokens: number;
  /** USD, since the last reset. */
  cost: Generated<number>;
  last_channel: string | null;
  last_to: string | null;
  last_account_id: string | null;
  last_thread_id: string | null;
  group_channel: string | null;
  /** `SpawnFacts` of a sub-agent. */
  spawn_json: Generated<string | null>;
  /** The number that the next accepted run gets: its row lock makes commit order = number order (I3). */
  next_lane_seq: Generated<number>;
}

/** Every transcript a session ever had, so that an id from before a reset names the current one. */
export interface SessionIdTable {
  session_id: string;
  session_key: string;
  created_at: number;
}

export interface MessageTable {
  /** Rises over the whole store; the order inside one transcript. */
  seq: Generated<number>;
  id: string;
  session_id: string;
  session_key: string;
  run_id: string | null;
  /** `user | assistant | toolResult | compaction`. */
  role: string;
  entry_json: string;
  created_at: number;
}

export interface RunTable {
  run_id: string;
  session_key: string;
  session_id: string;
  agent_id: string;
  lane_seq: number;
  kind: string;
  state: string;
  input_json: string;
  chain_id: string;
  hop: number;
  attempt: number;
  crashes: number;
  /** Of these, the latest ones since a tool call of the run was answered. */
  crashes_in_row: Generated<number>;
  /** Tool calls of the run that were answered before its last attempt was lost or parked. */
  calls_answered: Generated<number>;
  owner: string | null;
  /** The pool of slots that it executes in; unset: in none. */
  pool: Generated<string | null>;
  /** 1 while a waiting run wants a slot again: it goes before runs that have not started. */
  resuming: Generated<number>;
  /** The amount that an unfinished run has spent so far, where a budget counts it. */
  spent_tokens: Generated<number>;
  /** USD. */
  spent_cost: Generated<number>;
  /** The most that its model call in progress can use, where a budget counts it. */
  reserved_tokens: Generated<number>;
  /** USD. */
  reserved_cost: Generated<number>;
  accepted_at: number;
  started_at: number | null;
  ended_at: number | null;
  timeout_ms: number;
  route_json: string | null;
  flow_id: string | null;
  flow_step: string | null;
  flow_turn: number | null;
  parent_run_id: string | null;
  /** The owner of the run's idempotency key. */
  asked_by: string | null;
  call_id: string | null;
  reply: string | null;
  code: string | null;
  error: string | null;
  usage_json: string | null;
  model: string | null;
}

/** A run that waits for another: the edges of the wait graph while `state` is `open`. */
export interface WaitTable {
  /** The waiting tool call. */
  call_id: string;
  waiter_run_id: string;
  waiter_session_key: string;
  target_run_id: string;
  target_session_key: string;
  /** `open | answered | ended`: `ended` = the waiter stopped waiting first. */
  state: string;
  deadline_at: number;
  /** The process in which a caller that is no run waits. */
  owner: Generated<string | null>;
}

/** A run that waits for a job of a sub-agent; a call that waits for several has a row for each. */
export interface JobWaitTable {
  /** The waiting tool call. */
  call_id: string;
  /** The job. */
  flow_id: string;
  waiter_run_id: string;
  waiter_session_key: string;
  /** The sub-agent's session. */
  target_session_key: string;
  /** As in `WaitTable`. */
  state: string;
  deadline_at: number;
}

/** One conversation between two sessions, or one job of a sub-agent, from its acceptance to its end. */
export interface FlowTable {
  flow_id: string;
  /** `send | spawn`. */
  kind: Generated<string>;
  chain_id: string;
  requester_key: string;
  requester_session_id: string;
  requester_run_id: string | null;
  target_key: string;
  /** `open | ended`. */
  state: string;
  turns_max: number;
  request_text: string;
  round1_reply: string | null;
  latest_reply: string | null;
  created_at: number;
  ended_at: number | null;
  end_reason: string | null;
  /** The outcome of a job: a `JobOutcome`. */
  outcome_json: Generated<string | null>;
}

/** What a chain of runs has used (I8). */
export interface ChainTable {
  chain_id: string;
  runs: number;
  /** The session in which it began. */
  root_session_key: string | null;
  tokens: Generated<number>;
  /** USD. */
  cost: Generated<number>;
  /** 1 once the root session was told that the budget is used up. */
  told: Generated<number>;
  /** When something was last accepted, used up or refused in it; 0: not since this is written down. */
  last_at: Generated<number>;
  /** 1 once something in it went, or tried to go, from session to session. */
  crossed: Generated<number>;
}

/** A send or a spawn that was refused to a run: kept for some days, for whoever looks at the chain. */
export interface RefusalTable {
  call_id: string;
  chain_id: string;
  run_id: string;
  from_key: string;
  /** The session that was meant, where what was named is a key or was found. */
  to_key: string | null;
  /** What was named. */
  named: string | null;
  tool: string;
  code: string;
  error: string;
  /** Of a refused wait: the keys of the circle, as JSON. */
  cycle_json: string | null;
  hop: number;
  at: number;
}

/** Things that fall due: rows, so that a restart forgets none. */
export interface DeadlineTable {
  /** Who is told: the kinds are those of the handlers. */
  kind: string;
  key: string;
  due_at: number;
}

export interface DeliveryTable {
  id: string;
  /** Rises over the whole store: one route goes in order. */
  seq: Generated<number>;
  session_key: string;
  run_id: string | null;
  /** `announce | send | hook`. */
  kind: string;
  /** Canonical text of the route, for order. */
  route_key: string;
  route_json: string;
  text: string;
  /** `pending | sent | failed | skipped`. */
  state: string;
  code: string | null;
  error: string | null;
  attempts: number;
  /** An attempt that was begun and not yet known to have ended. */
  attempt_open: number;
  /** The process that makes the open attempt. */
  attempt_owner: Generated<string | null>;
  /** Parts of the text that the channel has acknowledged. */
  parts_sent: number;
  next_attempt_at: number;
  created_at: number;
  settled_at: number | null;
  dismissed_at: number | null;
}

export interface LedgerTable {
  seq: Generated<number>;
  run_id: string;
  session_key: string;
  /** The session above all that spawned it; unset: not known, of an earlier version. */
  root_key: Generated<string | null>;
  agent_id: string;
  provider: string;
  model: string;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  total_tokens: number;
  cost: number;
  at: number;
}

/** The same key gives the same answer, also after a restart. */
export interface IdempotencyTable {
  /** With its owner (`ownedKey`); rows of older versions hold the key alone. */
  key: string;
  /** The owner of the key, a token or a device: a hash, never the token. */
  caller: string;
  method: string;
  params_hash: string;
  answer_json: string;
  created_at: number;
  /** The process that works on the answer; until then `answer_json` is for the case that it dies. */
  begun_by: string | null;
}

/** A gateway process that shares the store, and when it was last known to be alive. */
export interface ProcessTable {
  process_id: string;
  host: string;
  version: string;
  started_at: number;
  /** By the database's clock. */
  beat_at: number;
}

/** What one process at a time may do, such as polling one bot account: who does it. */
export interface HoldingTable {
  name: string;
  owner: string;
  since: number;
}

/** Live events that are too large for the wire between processes: kept for a moment. */
export interface LivePayloadTable {
  id: Generated<number>;
  body: string;
  created_at: number;
}

/** A job that is due at dates of its schedule. Its next date is a deadline, too: that one calls. */
export interface CronJobTable {
  id: string;
  name: string | null;
  agent_id: string;
  enabled: number;
  schedule_json: string;
  message: string;
  /** `Route` of its replies. */
  deliver_json: string | null;
  model: string | null;
  thinking: string | null;
  timeout_ms: number;
  /** `once | skip`. */
  missed: string;
  next_at: number | null;
  created_at: number;
  updated_at: number;
  /** The name of the token that made it; null: the gateway's own. */
  created_by: string | null;
}

/** A turn of a job: a date that fell due, or a run by hand. How its run ended stands in `runs`. */
export interface CronRunTable {
  seq: Generated<number>;
  job_id: string;
  /** `schedule | late | manual`. */
  cause: string;
  /** Unset: by hand. */
  due_at: number | null;
  fired_at: number;
  /** Unset: the turn was left out, and `code` says why. */
  run_id: string | null;
  code: string | null;
  error: string | null;
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
  created_by: string | null;
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

/** A device that has been given a token of a role. */
export interface DeviceTokenTable {
  device_id: string;
  role: "operator" | "node";
  series: string;
  /** Names the gateway token that the newest was made from. */
  token_id: string;
  name: string;
  platform: string;
  created_at: number;
  used_at: number;
  expires_at: number;
}

export interface Tables {
  sessions: SessionTable;
  session_ids: SessionIdTable;
  messages: MessageTable;
  runs: RunTable;
  waits: WaitTable;
  job_waits: JobWaitTable;
  flows: FlowTable;
  chains: ChainTable;
  refusals: RefusalTable;
  deadlines: DeadlineTable;
  deliveries: DeliveryTable;
  ledger: LedgerTable;
  idempotency: IdempotencyTable;
  processes: ProcessTable;
  holdings: HoldingTable;
  live_payloads: LivePayloadTable;
  cron_jobs: CronJobTable;
  cron_runs: CronRunTable;
  inbound: InboundTable;
  channel_peers: ChannelPeerTable;
  channel_cursors: ChannelCursorTable;
  thread_bindings: ThreadBindingTable;
  nodes: NodeTable;
  node_requests: NodeRequestTable;
  device_tokens: DeviceTokenTable;
}
