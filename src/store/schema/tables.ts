// Declares the types of the tables for the query builder. Times are ms since 1970, flags are 0 or 1, `*_json`
// columns hold JSON text. Both databases share these declarations, so only types that both have are used.

import type { ColumnType, Generated } from "kysely";
import type {
  ChannelCursorTable,
  ChannelPeerTable,
  DeliveryTable,
  InboundTable,
  ThreadBindingTable,
} from "./channel-tables.ts";
import type { CronJobTable, CronRunTable } from "./cron-tables.ts";
import type { AgentMemoryTable, InstructionContentTable } from "./instruction-tables.ts";
import type { DeviceTokenTable, NodeRequestTable, NodeTable } from "./node-tables.ts";
import type { PeerTable } from "./peer-table.ts";
import type { RevisionTable } from "./revision-table.ts";

export interface SessionTable {
  /** Never changes. Links the row to the index of session names. */
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
  /**
   * 1 while `archived_at` is set. The database generates this column, because the indexes of lists need it.
   */
  archived: ColumnType<number, never, never>;
  spawned_by: string | null;
  /** 1 if the session named in `spawned_by` no longer exists. */
  orphaned: Generated<number>;
  spawn_depth: number;
  external: number;
  model: string | null;
  thinking_level: string | null;
  verbose_level: string | null;
  send_policy: string | null;
  /** An operator's instructions for the model. */
  instructions: Generated<string | null>;
  system_sent: number;
  aborted_last_run: number;
  /** Beginning of the conversation, redacted, on one line. */
  first_words: Generated<string | null>;
  /** Id of the run of the last turn, if that turn failed. */
  failed_run: Generated<string | null>;
  /** Source of the first outside content since the last reset (`core/rules/prompt/outside.ts`). */
  outside: Generated<string | null>;
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  context_tokens: number;
  /** Cost in USD since the last reset. */
  cost: Generated<number>;
  last_channel: string | null;
  last_to: string | null;
  last_account_id: string | null;
  last_thread_id: string | null;
  group_channel: string | null;
  /** Facts about the spawn of a sub-agent, as `SpawnFacts`. */
  spawn_json: Generated<string | null>;
  /**
   * Number that the next accepted run gets. The lock on this row ensures that runs are committed in the order
   * of their numbers (I3).
   */
  next_lane_seq: Generated<number>;
}

/** All transcripts that a session has ever had, so that an id from before a reset still finds the session. */
export interface SessionIdTable {
  session_id: string;
  session_key: string;
  created_at: number;
  /** Transcript whose beginning this one shares, and the last message that it shares. Null: not a fork. */
  forked_from: Generated<string | null>;
  forked_at: Generated<string | null>;
}

export interface MessageTable {
  /** Increases across the whole store. Within a transcript it defines the order. */
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
  /** Deaths of a process that executed only this run. */
  crashes: number;
  /** All deaths of processes that executed the run. */
  deaths: Generated<number>;
  owner: string | null;
  /** Queue in which the run waits for a slot (`core/rules/run-queue.ts`). */
  queue: string;
  /**
   * When the run may take a slot: it is the head of an idle lane, or has waited and wants to continue. Null:
   * not now.
   */
  ready_at: Generated<number | null>;
  /** 1 if the process that executes the run is about to stop. */
  planned_stop: Generated<number>;
  /** Tokens that an unfinished run has spent. Recorded only if a budget applies to the run. */
  spent_tokens: Generated<number>;
  /** Cost in USD that an unfinished run has spent. */
  spent_cost: Generated<number>;
  /** Maximum number of tokens of the current model call. Recorded only if a budget applies to the run. */
  reserved_tokens: Generated<number>;
  /** Maximum cost of the current model call, in USD. */
  reserved_cost: Generated<number>;
  accepted_at: number;
  started_at: number | null;
  /** Time when the recipient's model first answered a message between sessions. */
  heard_at: Generated<number | null>;
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
  /** Time when an operator dismissed or retried the ended run. */
  dismissed_at: Generated<number | null>;
  /** Revision with the run's inputs. */
  revision: Generated<string | null>;
}

/**
 * Waits of runs, and of other callers, for the end of a run or a job. While `state` is `open`, the row is an
 * edge of the wait graph.
 */
export interface WaitTable {
  /** Id of the tool call that waits. For a job, the id of the job's flow follows it. */
  call_id: string;
  /** Id of the tool call, if it waits for jobs: it has one row per job. */
  of_call: Generated<string | null>;
  /** `run | job`. */
  kind: Generated<string>;
  waiter_run_id: string;
  waiter_session_key: string;
  /** Id of the run, or of the job's flow. */
  target_run_id: string;
  target_session_key: string;
  /** `open | ready | answered | ended | lost`, as in queries/runs/waits.ts. */
  state: string;
  deadline_at: number;
  /** Process of a waiting caller that is not a run. */
  owner: Generated<string | null>;
}

/**
 * Conversations between two sessions, and jobs of sub-agents. A flow's row is inserted when the flow is
 * accepted.
 */
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
  /** Outcome of a job, as `JobOutcome`. */
  outcome_json: Generated<string | null>;
}

/** Resources that a chain of runs has used (I8). */
export interface ChainTable {
  chain_id: string;
  runs: number;
  /** Key of the root session. */
  root_session_key: string | null;
  tokens: Generated<number>;
  /** USD. */
  cost: Generated<number>;
  /** 1 after the root session was notified that the chain's budget is used up. */
  told: Generated<number>;
  /**
   * Time at which a run was last accepted, usage was last added, or a call was last refused. 0 in rows of an
   * earlier version, which did not record it.
   */
  last_at: Generated<number>;
  /**
   * 1 after a run of the chain has tried to send to another session or to spawn one, even if this was
   * refused.
   */
  crossed: Generated<number>;
  /** 1 after a guest wrote in the chain (`RunInput.guest`). */
  guest: Generated<number>;
  /** See `RunInput.tokenLimit`. */
  token_limit: Generated<number | null>;
  /** Source of the first outside content in the chain. */
  outside: Generated<string | null>;
}

/** Refused sends and spawns of runs. Kept for some days, so that the chain can show them. */
export interface RefusalTable {
  call_id: string;
  chain_id: string;
  run_id: string;
  from_key: string;
  /** Key of the target session, if the call contained a key or the session was found. */
  to_key: string | null;
  /** Target as it was written in the call. */
  named: string | null;
  tool: string;
  code: string;
  error: string;
  /** If a wait was refused because of a cycle: the session keys of the cycle, as JSON. */
  cycle_json: string | null;
  hop: number;
  at: number;
}

/** Deadlines. They are stored as rows so that a restart loses none. */
export interface DeadlineTable {
  /** Kind of deadline; selects its handler. */
  kind: string;
  key: string;
  due_at: number;
}

export interface LedgerTable {
  seq: Generated<number>;
  run_id: string;
  session_key: string;
  /** Root session of the spawn tree. Null in rows of an earlier version, which did not record it. */
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
  /** Chain of the run. Set when the run itself is pruned, until then null. */
  chain_id: Generated<string | null>;
}

/** Sum of the ledger's rows of an agent and a UTC day, in up to 16 parts that are added to independently. */
export interface AgentDayTable {
  agent_id: string;
  /** Start of the day, in ms since 1970. */
  day: number;
  part: number;
  tokens: number;
  cost: number;
}

/** Answers to calls with an idempotency key. A repeated key gets the same answer, even after a restart. */
export interface IdempotencyTable {
  /** Includes the owner of the key (`ownedKey`). Rows of older versions contain only the key. */
  key: string;
  /** Owner of the key, a token or a device, as a hash. The token itself is never stored. */
  caller: string;
  method: string;
  params_hash: string;
  answer_json: string;
  created_at: number;
  /** Process that still works on the answer. If it dies, `answer_json` becomes the answer. */
  begun_by: string | null;
}

/** Gateway processes that share the store, with their last heartbeats. */
export interface ProcessTable {
  process_id: string;
  host: string;
  version: string;
  started_at: number;
  /** Time of the last heartbeat, by the database's clock. */
  beat_at: number;
  config_revision: string | null;
}

/**
 * Tasks that only one process may do at a time, for example polling a bot account. Each row names the process
 * that does the task.
 */
export interface HoldingTable {
  name: string;
  owner: string;
  since: number;
}

/** Live events that are too large for a message between processes. They are deleted after a short time. */
export interface LivePayloadTable {
  id: Generated<number>;
  body: string;
  created_at: number;
}

/** Times at which a message in the inbox of an outside program was offered, read and answered. */
export interface InboxMarkTable {
  run_id: string;
  session_key: string;
  session_id: string;
  offered_at: number | null;
  in_turn_at: number | null;
  ended_at: number | null;
  /** `answered | declined | expired`. */
  outcome: string | null;
}

export interface PermissionTable {
  id: string;
  session_key: string;
  agent_id: string;
  run_id: string;
  /** The attempt of the run that asked. */
  attempt: number;
  title: string;
  kind: string | null;
  detail: string | null;
  asked_at: number;
  expires_at: number;
  /** Null until somebody decides about the request. */
  decision: "allow" | "deny" | null;
  decided_at: number | null;
  decided_by: string | null;
  /** The tool call that asks. Null: the request ends with the attempt of its run. */
  call_id: string | null;
  /** The scopes that an answer may have. Null: only `once`. */
  scopes_json: string | null;
  /** JSON of the files that the command names, with their digests. Null: the request is about no command. */
  digest: string | null;
  folder: string | null;
  /** The scope of the answer. Null: `once`. */
  scope: "once" | "session" | "always" | null;
}

/** Commands that owners allowed for longer than once. */
export interface PermissionRuleTable {
  id: string;
  agent_id: string;
  session_key: string;
  scope: "session" | "always";
  digest: string;
  command: string;
  folder: string;
  created_at: number;
  created_by: string;
}

/** Tokens that operators created. The token itself is never stored. */
export interface AccessTokenTable {
  id: string;
  token_id: string;
  name: string;
  scopes_json: string;
  /** Null: every session. */
  patterns_json: string | null;
  created_at: number;
  used_at: number | null;
  expires_at: number;
  /** Null: the token was created by an operator, not by the sign-in of an MCP client. */
  sign_in_json: string | null;
}

/** A file that an agent sent to the people of its session. */
export interface SentFileTable {
  id: string;
  /** The transcript with the call that sent the file. */
  session_id: string;
  name: string;
  mime_type: string;
  /** Markdown. Empty: none. */
  caption: string;
  bytes: number;
  /** Base64. */
  content: string;
  created_at: number;
}

/** A private key that all processes of the store use. */
export interface GatewayKeyTable {
  name: string;
  /** The private key as a JSON Web Key. */
  key_json: string;
  created_at: number;
}

/** The conversation of a transcript with an agent elsewhere. */
export interface RemoteTaskTable {
  session_id: string;
  remote: string;
  context_id: string;
  run_id: string;
  task_id: string | null;
  is_asking: number;
  known_up_to: string | null;
  updated_at: number;
}

/** An address that an A2A client wants to have notified when a run ends. */
export interface PushConfigTable {
  run_id: string;
  id: string;
  url: string;
  token: string;
  scheme: string;
  credentials: string;
  created_at: number;
}

/** Permits to execute a run. */
interface SlotTable {
  n: number;
  run_id: string | null;
}

export interface Tables {
  sessions: SessionTable;
  session_ids: SessionIdTable;
  messages: MessageTable;
  runs: RunTable;
  slots: SlotTable;
  waits: WaitTable;
  inbox_marks: InboxMarkTable;
  flows: FlowTable;
  chains: ChainTable;
  refusals: RefusalTable;
  deadlines: DeadlineTable;
  deliveries: DeliveryTable;
  ledger: LedgerTable;
  agent_days: AgentDayTable;
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
  permissions: PermissionTable;
  permission_rules: PermissionRuleTable;
  access_tokens: AccessTokenTable;
  agent_memory: AgentMemoryTable;
  instruction_contents: InstructionContentTable;
  sent_files: SentFileTable;
  gateway_keys: GatewayKeyTable;
  remote_tasks: RemoteTaskTable;
  push_configs: PushConfigTable;
  revisions: RevisionTable;
  peers: PeerTable;
}
