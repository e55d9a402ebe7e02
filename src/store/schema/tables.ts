// Lists the tables of the store: one definition for both databases (definition.ts).

import { AGENT_TABLES } from "./agent-tables.ts";
import { CHANNEL_TABLES } from "./channel-tables.ts";
import type { RowOf } from "./definition.ts";
import { RUN_TABLES } from "./run-tables.ts";
import { SESSION_TABLES } from "./session-tables.ts";

/** All tables. A copy of a store copies them in this order: the rows of a table may need those before. */
export const TABLES = { ...SESSION_TABLES, ...RUN_TABLES, ...CHANNEL_TABLES, ...AGENT_TABLES };

/** The rows of all tables, for the query builder. */
export type Tables = { [K in keyof typeof TABLES]: RowOf<(typeof TABLES)[K]> };

export type SessionTable = Tables["sessions"];
export type RunTable = Tables["runs"];
export type WaitTable = Tables["waits"];
export type InboxMarkTable = Tables["inbox_marks"];
export type FlowTable = Tables["flows"];
export type ChainTable = Tables["chains"];
export type RefusalTable = Tables["refusals"];
export type LedgerTable = Tables["ledger"];
export type IdempotencyTable = Tables["idempotency"];
export type DeliveryTable = Tables["deliveries"];
export type InboundTable = Tables["inbound"];
export type ChannelPeerTable = Tables["channel_peers"];
export type ThreadBindingTable = Tables["thread_bindings"];
export type CronJobTable = Tables["cron_jobs"];
export type NodeTable = Tables["nodes"];
export type NodeRequestTable = Tables["node_requests"];
export type DeviceTokenTable = Tables["device_tokens"];
export type PermissionTable = Tables["permissions"];
export type PermissionRuleTable = Tables["permission_rules"];
export type AccessTokenTable = Tables["access_tokens"];
export type InstructionContentTable = Tables["instruction_contents"];
export type PeerTable = Tables["peers"];
