// Defines the migrations whose SQL is the same on both databases, except for the type of text columns. Never
// edit them after a release.

/** Index for an agent's sessions of one kind. Without it, a query would read all sessions of the agent. */
export const KINDS_OF_AGENTS = `
create index sessions_by_agent_kind on sessions (agent_id, kind, archived, updated_at desc, key desc);
`;

/**
 * Links the transcript of a fork to the transcript whose beginning it shares. `text` is the type of a text
 * column.
 */
export const transcriptForks = (text: string): string => `
alter table session_ids add column forked_from ${text};
alter table session_ids add column forked_at ${text};
create index session_ids_by_fork on session_ids (forked_from) where forked_from is not null;
`;

/**
 * Table of the tokens that operators create. `text`: type of a text column. `time`: type of a time column.
 * `strict`: options of the table.
 */
export const accessTokens = (text: string, time: string, strict = ""): string => `
create table access_tokens (
  id ${text} primary key,
  token_id ${text} not null,
  name ${text} not null,
  scopes_json ${text} not null,
  patterns_json ${text},
  created_at ${time} not null,
  used_at ${time},
  expires_at ${time} not null
)${strict};
`;

/**
 * Adds to access tokens the sign-in by which an MCP client got one. Null: an operator created the token.
 * `text` is the type of a text column.
 */
export const mcpSignIns = (text: string): string => `
alter table access_tokens add column sign_in_json ${text};
`;

/**
 * Table of agents' memories. `text`: type of a text column. `number`: type of a number column. `strict`:
 * options of the table.
 */
export const agentMemory = (text: string, number: string, strict = ""): string => `
create table agent_memory (
  agent_id ${text} primary key,
  text ${text} not null,
  revision ${number} not null,
  calls_json ${text} not null,
  updated_at ${number} not null
)${strict};
`;

/**
 * Adds the last turn of a session, if that turn failed, and an index for the sessions to which a caller
 * wrote. `text` is the type of a text column.
 */
export const lastFailures = (text: string): string => `
alter table sessions add column failed_run ${text};
update sessions set failed_run = (
    select case when r.state in ('error', 'timeout') then r.run_id end from runs r
    where r.session_key = sessions.key and r.session_id = sessions.session_id
      and r.kind = 'turn' and r.ended_at is not null
    order by r.lane_seq desc limit 1
  ) where key in (select session_key from runs where state in ('error', 'timeout') and kind = 'turn');
create index sessions_failed on sessions (archived, updated_at desc, key desc) where failed_run is not null;
create index sessions_failed_below on sessions (spawned_by, archived) where failed_run is not null;
create index runs_asked on runs (session_key, asked_by) where asked_by is not null;
`;

/**
 * Adds to permission requests the tool call that asks and the scope of the answer, and adds the table of
 * commands that owners allowed for longer. The parameters are those of `accessTokens`.
 */
export const permissionRules = (text: string, time: string, strict = ""): string => `
alter table permissions add column call_id ${text};
alter table permissions add column scopes_json ${text};
alter table permissions add column digest ${text};
alter table permissions add column folder ${text};
alter table permissions add column scope ${text};
create index permissions_of_call on permissions (call_id) where call_id is not null;
create table permission_rules (
  id ${text} primary key,
  agent_id ${text} not null,
  session_key ${text} not null,
  scope ${text} not null,
  digest ${text} not null,
  command ${text} not null,
  folder ${text} not null,
  created_at ${time} not null,
  created_by ${text} not null
)${strict};
create index permission_rules_of_command on permission_rules (digest, agent_id);
create index permission_rules_of_session on permission_rules (session_key);
`;

/**
 * Table of the files that agents sent to people, and the file that a delivery sends. The parameters are those
 * of `agentMemory`.
 */
export const sentFiles = (text: string, number: string, strict = ""): string => `
create table sent_files (
  id ${text} primary key,
  session_id ${text} not null,
  name ${text} not null,
  mime_type ${text} not null,
  caption ${text} not null,
  bytes ${number} not null,
  content ${text} not null,
  created_at ${number} not null
)${strict};
create index sent_files_of_session on sent_files (session_id, created_at, id);
alter table deliveries add column file_id ${text};
`;

/** Adds whether a guest wrote in a chain. No chain of an earlier version has guests. */
export const chainGuests = (flag: string): string =>
  `alter table chains add column guest ${flag} not null default 0;`;

/** Adds the tokens that the sender of a chain's first message allows it (null: any number). */
export const chainTokenLimits = (number: string): string =>
  `alter table chains add column token_limit ${number};`;

/** Adds the process of a caller that waits for jobs. `text` is the type of a text column. */
export const jobWaitOwners = (text: string): string => `alter table job_waits add column owner ${text};`;

/** Adds the revision of the configuration that a process runs. `text` is the type of a text column. */
export const processRevisions = (text: string): string =>
  `alter table processes add column config_revision ${text};`;

/** Adds an operator's instructions for one session. `text` is the type of a text column. */
export const sessionInstructions = (text: string): string =>
  `alter table sessions add column instructions ${text};`;

/** Table of the gateway's own keys. The parameters are those of `agentMemory`. */
export const gatewayKeys = (text: string, number: string, strict = ""): string => `
create table gateway_keys (
  name ${text} primary key,
  key_json ${text} not null,
  created_at ${number} not null
)${strict};
`;

/** Table of conversations with agents elsewhere. The parameters are those of `agentMemory`. */
export const remoteTasks = (text: string, number: string, strict = ""): string => `
create table remote_tasks (
  session_id ${text} primary key,
  remote ${text} not null,
  context_id ${text} not null,
  run_id ${text} not null,
  task_id ${text},
  is_asking ${number} not null,
  known_up_to ${text},
  updated_at ${number} not null
)${strict};
`;

/**
 * Table of the inputs that runs share, and the column that names the inputs of a run. The parameters are
 * those of `agentMemory`.
 */
export const revisions = (text: string, number: string, strict = ""): string => `
create table revisions (
  hash ${text} primary key,
  kind ${text} not null,
  body_json ${text} not null,
  created_at ${number} not null,
  used_at ${number} not null
)${strict};
create index revisions_by_use on revisions (used_at);
alter table runs add column revision ${text};
`;

/** Table of the addresses that A2A clients have notified. The parameters are those of `agentMemory`. */
export const pushConfigs = (text: string, number: string, strict = ""): string => `
create table push_configs (
  run_id ${text} not null,
  id ${text} not null,
  url ${text} not null,
  token ${text} not null,
  scheme ${text} not null,
  credentials ${text} not null,
  created_at ${number} not null,
  primary key (run_id, id)
)${strict};
`;

/** Table of other gateways that are peers, and of invitations. The parameters are those of `agentMemory`. */
export const peers = (text: string, number: string, strict = ""): string => `
create table peers (
  name ${text} primary key,
  url ${text},
  key_json ${text},
  key_id ${text} unique,
  code_key ${text},
  code_expires_at ${number},
  exposes_json ${text} not null,
  offers_json ${text} not null,
  created_at ${number} not null
)${strict};
`;

/**
 * Adds the sources of outside content, and the table of instruction files that runs with such content may
 * have changed. The parameters are those of `agentMemory`.
 */
export const instructionContents = (text: string, number: string, strict = ""): string => `
alter table sessions add column outside ${text};
alter table chains add column outside ${text};
update chains set outside = 'a guest' where guest = 1;
update sessions set outside = 'a guest' where session_id in (
  select r.session_id from runs r join chains c on c.chain_id = r.chain_id where c.guest = 1);
create table instruction_contents (
  id ${text} primary key,
  state ${text} not null,
  path ${text} not null,
  text ${text},
  bytes ${number},
  source ${text} not null,
  session_key ${text} not null,
  run_id ${text},
  lasts ${number} not null,
  at ${number} not null
)${strict};
`;

/** Column with the buttons of a text, and the pressed button that it answers. */
export const deliveryControls = (text: string): string =>
  `alter table deliveries add column controls_json ${text};`;

/**
 * Adds whether a delivery is of a deleted session, the chain of usage whose run was pruned, and the indexes
 * by which sessions are deleted and old rows pruned. `flag` and `text` are types of columns.
 */
export const erasing = (flag: string, text: string): string => `
alter table deliveries add column erase ${flag} not null default 0;
alter table ledger add column chain_id ${text};
create index waits_by_deadline on waits (deadline_at);
create index job_waits_by_deadline on job_waits (deadline_at);
create index flows_by_requester on flows (requester_key);
create index flows_by_target on flows (target_key, kind, created_at);
create index refusals_of_session on refusals (from_key);
create index permissions_of_session on permissions (session_key);
create index deliveries_of_file on deliveries (file_id) where file_id is not null;
`;

/**
 * Adds the usage of each agent and UTC day, which the ledger implies. The parameters are types of columns.
 * `decimal`: the type of an amount of money.
 */
export const agentDays = (text: string, number: string, decimal: string, strict = ""): string => `
create table agent_days (
  agent_id ${text} not null,
  day ${number} not null,
  part ${number} not null,
  tokens ${number} not null,
  cost ${decimal} not null,
  primary key (agent_id, day, part)
)${strict};
insert into agent_days (agent_id, day, part, tokens, cost)
  select agent_id, at - at % 86400000, 0, sum(total_tokens), sum(cost) from ledger group by 1, 2;
create index runs_begun on runs (agent_id) where started_at is not null and ended_at is null;
`;
