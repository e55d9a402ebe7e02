// Defines the embedded schema and its history: an ordered list of migrations. A migration never changes after
// its release. The version of a file is its `user_version`. A file with a newer version is left unchanged.
// Each migration is one transaction.

import type { DatabaseSync } from "node:sqlite";
import { CHANNELS } from "./channel-schema.ts";
import { CRON, CRON_CREATORS, CRON_MAKERS, jobConversations } from "./cron-schema.ts";
import { DEVICE_TOKENS, NODE_CREATORS, NODES, nodeAskers } from "./node-schema.ts";
import { OUTBOX_TIMERS } from "./outbox-schema.ts";
import { PERMISSIONS } from "./permission-schema.ts";
import { jobWaitRows, slotRows } from "./run-schema.ts";
import {
  accessTokens,
  agentDays,
  agentMemory,
  chainGuests,
  chainTokenLimits,
  deliveryControls,
  erasing,
  gatewayKeys,
  instructionContents,
  jobWaitOwners,
  KINDS_OF_AGENTS,
  lastFailures,
  mcpSignIns,
  peers,
  permissionRules,
  processRevisions,
  pushConfigs,
  remoteTasks,
  revisions,
  sentFiles,
  sessionInstructions,
  transcriptForks,
} from "./shared-schema.ts";

/**
 * Identifies a file as this program's (`application_id`), so that the database of another program is never
 * migrated.
 */
export const APPLICATION_ID = 0x5061726c;

const SESSIONS = `
create table sessions (
  row_id integer primary key,
  key text not null unique,
  session_id text not null unique,
  agent_id text not null,
  kind text not null,
  label text,
  display_name text,
  created_at integer not null,
  updated_at integer not null,
  archived_at integer,
  archived integer generated always as (archived_at is not null) virtual,
  spawned_by text,
  spawn_depth integer not null,
  external integer not null,
  model text,
  thinking_level text,
  verbose_level text,
  send_policy text,
  system_sent integer not null,
  aborted_last_run integer not null,
  input_tokens integer not null,
  output_tokens integer not null,
  total_tokens integer not null,
  context_tokens integer not null,
  last_channel text,
  last_to text,
  last_account_id text,
  last_thread_id text,
  group_channel text,
  next_lane_seq integer not null default 1
) strict;
create index sessions_newest on sessions (archived, updated_at desc, key desc);
create index sessions_by_agent on sessions (agent_id, archived, updated_at desc, key desc);
create index sessions_by_kind on sessions (kind, archived, updated_at desc, key desc);
create index sessions_by_spawner on sessions (spawned_by, archived, updated_at desc, key desc)
  where spawned_by is not null;
create index sessions_by_label on sessions (label, archived, updated_at desc, key desc)
  where label is not null;

create table session_ids (
  session_id text primary key,
  session_key text not null,
  created_at integer not null
) strict, without rowid;
create index session_ids_by_key on session_ids (session_key);

create virtual table session_names
  using fts5 (name, content = '', contentless_delete = 1, tokenize = 'trigram');
create trigger session_named after insert on sessions begin
  insert into session_names (rowid, name)
    values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name));
end;
create trigger session_renamed after update of key, label, display_name on sessions
  when old.key is not new.key or old.label is not new.label or old.display_name is not new.display_name
begin
  delete from session_names where rowid = old.row_id;
  insert into session_names (rowid, name)
    values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name));
end;
create trigger session_unnamed after delete on sessions begin
  delete from session_names where rowid = old.row_id;
end;
`;

const MESSAGES = `
create table messages (
  seq integer primary key autoincrement,
  id text not null unique,
  session_id text not null,
  session_key text not null,
  run_id text,
  role text not null,
  entry_json text not null,
  created_at integer not null
) strict;
create index messages_of_session on messages (session_id, seq);
create index messages_of_run on messages (run_id, seq) where run_id is not null;
create index compactions_of_session on messages (session_id, seq) where role = 'compaction';

create virtual table message_texts
  using fts5 (text, place, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
create trigger message_text_gone after delete on messages when old.role in ('user', 'assistant') begin
  delete from message_texts where rowid = old.seq;
end;
`;

// The indexes on `state` are not partial, because SQLite does not use a partial index for `state in (?, ?)`.
const RUNS = `
create table runs (
  run_id text primary key,
  session_key text not null,
  session_id text not null,
  agent_id text not null,
  lane_seq integer not null,
  kind text not null,
  state text not null,
  input_json text not null,
  chain_id text not null,
  hop integer not null,
  attempt integer not null,
  crashes integer not null,
  owner text,
  accepted_at integer not null,
  started_at integer,
  ended_at integer,
  timeout_ms integer not null,
  route_json text,
  flow_id text,
  flow_step text,
  flow_turn integer,
  parent_run_id text,
  call_id text,
  reply text,
  code text,
  error text,
  usage_json text,
  model text
) strict;
create unique index runs_one_writer on runs (session_key) where state in ('running', 'waiting');
create index runs_in_lane on runs (session_key, lane_seq);
create index runs_in_lane_by_state on runs (session_key, state, lane_seq);
create index runs_by_state on runs (state, accepted_at);
create unique index runs_by_call on runs (call_id) where call_id is not null;
create index runs_of_flow on runs (flow_id) where flow_id is not null;
create index runs_of_chain on runs (chain_id);
create index runs_of_parent on runs (parent_run_id) where parent_run_id is not null;

create table waits (
  call_id text primary key,
  waiter_run_id text not null,
  waiter_session_key text not null,
  target_run_id text not null,
  target_session_key text not null,
  state text not null,
  deadline_at integer not null
) strict;
create index waits_of_waiter on waits (waiter_run_id, state);
create index waits_for_target on waits (target_run_id, state);
create index waits_of_session on waits (waiter_session_key, state);

create table flows (
  flow_id text primary key,
  chain_id text not null,
  requester_key text not null,
  requester_session_id text not null,
  requester_run_id text,
  target_key text not null,
  state text not null,
  turns_max integer not null,
  request_text text not null,
  round1_reply text,
  latest_reply text,
  created_at integer not null,
  ended_at integer,
  end_reason text
) strict;
create index flows_of_requester on flows (requester_key, state);
create index flows_of_target on flows (target_key, state);
create index flows_of_run on flows (requester_run_id) where requester_run_id is not null;
create index flows_of_chain on flows (chain_id);

create table chains (chain_id text primary key, runs integer not null) strict, without rowid;
`;

const REST = `
create table deliveries (
  seq integer primary key,
  id text not null unique,
  session_key text not null,
  run_id text,
  kind text not null,
  route_key text not null,
  route_json text not null,
  text text not null,
  state text not null,
  code text,
  error text,
  attempts integer not null,
  attempt_open integer not null,
  parts_sent integer not null,
  next_attempt_at integer not null,
  created_at integer not null,
  settled_at integer,
  dismissed_at integer
) strict;
create index deliveries_by_state on deliveries (state, seq);
create index deliveries_in_route on deliveries (route_key, seq) where state = 'pending';
create index deliveries_open on deliveries (seq) where attempt_open = 1;
create index deliveries_of_session on deliveries (session_key, seq);
create index deliveries_of_run on deliveries (run_id) where run_id is not null;

create table ledger (
  seq integer primary key,
  run_id text not null,
  session_key text not null,
  agent_id text not null,
  provider text not null,
  model text not null,
  input integer not null,
  output integer not null,
  cache_read integer not null,
  cache_write integer not null,
  total_tokens integer not null,
  cost real not null,
  at integer not null
) strict;
create index ledger_of_session on ledger (session_key, seq);
create index ledger_of_run on ledger (run_id);

create table idempotency (
  key text primary key,
  caller text not null,
  method text not null,
  params_hash text not null,
  answer_json text not null,
  created_at integer not null
) strict;
create index idempotency_by_age on idempotency (created_at);
`;

// Statistics for the query planner of a new file. A lane has many ended runs and few unfinished ones, so an
// index on the state is the best choice. The figures are the number of rows, then the rows with equal values
// in the first column of the index, in its first two columns, and so on.
const STATISTICS = `
analyze sqlite_schema;
delete from sqlite_stat1;
insert into sqlite_stat1 (tbl, idx, stat) values
  ('runs', 'runs_in_lane', '1000000 10000 1'),
  ('runs', 'runs_in_lane_by_state', '1000000 10000 2 1'),
  ('runs', 'runs_by_state', '1000000 20 1');
analyze sqlite_schema;
`;

const SPAWNS = `
alter table sessions add column spawn_json text;
alter table flows add column kind text not null default 'send';
alter table chains add column root_session_key text;
alter table chains add column tokens integer not null default 0;
alter table chains add column cost real not null default 0;
alter table chains add column told integer not null default 0;

create table deadlines (
  kind text not null,
  key text not null,
  due_at integer not null,
  primary key (kind, key)
) strict, without rowid;
create index deadlines_by_date on deadlines (due_at);
`;

const PROCESSES = `
alter table runs add column pool text;
alter table runs add column resuming integer not null default 0;
alter table waits add column owner text;
alter table deliveries add column attempt_owner text;
create index runs_by_end on runs (ended_at) where ended_at is not null;

create table processes (
  process_id text primary key,
  host text not null,
  version text not null,
  started_at integer not null,
  beat_at integer not null
) strict, without rowid;

create table live_payloads (
  id integer primary key,
  body text not null,
  created_at integer not null
) strict;

create table holdings (
  name text primary key,
  owner text not null,
  since integer not null
) strict, without rowid;
`;

const CHAIN_PICTURES = `
alter table chains add column last_at integer not null default 0;
alter table chains add column crossed integer not null default 0;
create index chains_newest on chains (crossed, last_at, chain_id);

create table refusals (
  call_id text primary key,
  chain_id text not null,
  run_id text not null,
  from_key text not null,
  to_key text,
  named text,
  tool text not null,
  code text not null,
  error text not null,
  cycle_json text,
  hop integer not null,
  at integer not null
) strict, without rowid;
create index refusals_of_chain on refusals (chain_id, at);
create index refusals_by_age on refusals (at);
`;

// Adds two columns: `cost`, the cost of a session since its last reset, computed from the ledger rows of its
// current transcript, and `orphaned`, which is 1 if the session's spawner was deleted.
const SESSION_TREE = `
alter table sessions add column cost real not null default 0;
update sessions set cost = coalesce((
    select sum(l.cost) from ledger l join runs r on r.run_id = l.run_id
    where l.session_key = sessions.key and r.session_id = sessions.session_id
  ), 0);

alter table sessions add column orphaned integer not null default 0;
update sessions set orphaned = 1 where spawned_by is not null
  and not exists (select 1 from sessions above where above.key = sessions.spawned_by);
create index sessions_roots on sessions (archived, updated_at desc, key desc)
  where spawned_by is null or orphaned = 1;
`;

// Adds the root session to ledger rows, for totals per spawn tree, and indexes for totals per agent and per
// day.
const USAGE = `
alter table ledger add column root_key text;
create index ledger_of_agent on ledger (agent_id, at);
create index ledger_by_age on ledger (at);
`;

// Runs that wait for jobs of sub-agents: one row per job that a call waits for. The job stores its outcome,
// so that the wait can return it even if the sub-agent has been deleted.
const JOB_WAITS = `
create table job_waits (
  call_id text not null,
  flow_id text not null,
  waiter_run_id text not null,
  waiter_session_key text not null,
  target_session_key text not null,
  state text not null,
  deadline_at integer not null,
  primary key (call_id, flow_id)
) strict;
create index job_waits_of_waiter on job_waits (waiter_run_id, state);
create index job_waits_for_flow on job_waits (flow_id, state);
create index job_waits_of_session on job_waits (waiter_session_key, state);
alter table flows add column outcome_json text;
`;

// Tokens and cost that unfinished runs have spent, and have reserved for their current model call.
const RESERVATIONS = `
alter table runs add column spent_tokens integer not null default 0;
alter table runs add column spent_cost real not null default 0;
alter table runs add column reserved_tokens integer not null default 0;
alter table runs add column reserved_cost real not null default 0;
`;

// Owner of the idempotency key with which a run was requested.
const RUN_OWNERS = "alter table runs add column asked_by text;";

// Process that currently works on a call with an idempotency key.
const KEYS_BEGUN = "alter table idempotency add column begun_by text;";

// Counts the attempts of a run that were lost in a row without progress.
const CRASHES_IN_ROW = `
alter table runs add column crashes_in_row integer not null default 0;
alter table runs add column calls_answered integer not null default 0;
`;

// Splits long texts into parts in the full-text index. The row id of a part is its message's number times
// 4096, plus the number of the part (search-text.ts).
const TEXT_PARTS = `
create virtual table message_parts
  using fts5 (text, place, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
create trigger message_parts_gone after delete on messages when old.role in ('user', 'assistant') begin
  delete from message_parts where rowid >= old.seq * 4096 and rowid < (old.seq + 1) * 4096;
end;
`;

// Records when a message in an inbox was offered, acknowledged, and answered or expired.
const INBOX_MARKS = `
create table inbox_marks (
  run_id text primary key,
  session_key text not null,
  session_id text not null,
  offered_at integer,
  in_turn_at integer,
  ended_at integer,
  outcome text
) strict, without rowid;
create index inbox_marks_open on inbox_marks (session_key, run_id) where ended_at is null;
create index inbox_marks_unread on inbox_marks (session_key, session_id) where in_turn_at is null;
`;

// Records when the recipient's model first answered a message between sessions. Receipts show this time.
const HEARD = `
alter table runs add column heard_at integer;
update runs set heard_at = (select m.created_at from messages m where m.run_id = runs.run_id
  and m.role = 'assistant' order by m.seq limit 1) where flow_step in ('round1', 'reply');
`;

// Records that an operator dismissed a failed turn or a question, so that it no longer needs attention.
const RUN_DISMISSALS = `
alter table runs add column dismissed_at integer;
`;

// Stores the first words of each conversation, and adds them to the index of session names. A session of an
// earlier version gets its words after the start (first-words.ts).
const FIRST_WORDS = `
alter table sessions add column first_words text;
drop trigger session_named;
drop trigger session_renamed;
create trigger session_named after insert on sessions begin
  insert into session_names (rowid, name)
    values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name, new.first_words));
end;
create trigger session_renamed after update of key, label, display_name, first_words on sessions
  when old.key is not new.key or old.label is not new.label or old.display_name is not new.display_name
    or old.first_words is not new.first_words
begin
  delete from session_names where rowid = old.row_id;
  insert into session_names (rowid, name)
    values (new.row_id, concat_ws(char(10), new.key, new.label, new.display_name, new.first_words));
end;
`;

/** The migration at index n migrates a file from version n to version n + 1. */
const MIGRATIONS: readonly string[] = [
  SESSIONS + MESSAGES + RUNS + REST + STATISTICS,
  SPAWNS,
  PROCESSES,
  SESSION_TREE + CHAIN_PICTURES + CRON,
  CHANNELS + USAGE + NODES,
  KINDS_OF_AGENTS,
  JOB_WAITS,
  RESERVATIONS,
  CRON_CREATORS,
  DEVICE_TOKENS,
  RUN_OWNERS,
  NODE_CREATORS,
  KEYS_BEGUN,
  CRASHES_IN_ROW,
  TEXT_PARTS,
  INBOX_MARKS,
  HEARD,
  lastFailures("text"),
  RUN_DISMISSALS,
  PERMISSIONS,
  accessTokens("text", "integer", " strict, without rowid"),
  transcriptForks("text"),
  permissionRules("text", "integer", " strict, without rowid"),
  agentMemory("text", "integer", " strict, without rowid"),
  chainGuests("integer"),
  mcpSignIns("text"),
  FIRST_WORDS,
  processRevisions("text"),
  sessionInstructions("text"),
  sentFiles("text", "integer", " strict"),
  gatewayKeys("text", "integer", " strict"),
  remoteTasks("text", "integer", " strict"),
  pushConfigs("text", "integer", " strict"),
  revisions("text", "integer", " strict"),
  peers("text", "integer", " strict, without rowid"),
  chainTokenLimits("integer"),
  jobWaitOwners("text"),
  CRON_MAKERS,
  nodeAskers("text"),
  instructionContents("text", "integer", " strict"),
  deliveryControls("text"),
  erasing("integer", "text"),
  jobConversations("text"),
  OUTBOX_TIMERS,
  slotRows("text", "integer"),
  agentDays("text", "integer", "real", " strict, without rowid"),
  jobWaitRows("text"),
];

/** Schema version that this program writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * Migrates an open file from `version` to version `to`. The caller must have refused files with a newer
 * version.
 */
export function migrate(database: DatabaseSync, version: number, to = SCHEMA_VERSION): void {
  MIGRATIONS.slice(version, to).forEach((text, index) => {
    database.exec("begin immediate");
    try {
      database.exec(text);
      database.exec(
        `pragma user_version = ${version + index + 1}; pragma application_id = ${APPLICATION_ID}`,
      );
      database.exec("commit");
    } catch (error) {
      if (database.isTransaction) database.exec("rollback");
      throw error;
    }
  });
}
