// Lists the tables of the store: one definition for both databases (definition.ts).

import { added } from "../../features.ts";
import { AGENT_TABLES } from "./agent-tables.ts";
import { CHANNEL_TABLES } from "./channel-tables.ts";
import type { RowOf } from "./definition.ts";
import { RUN_TABLES } from "./run-tables.ts";
import { SESSION_TABLES } from "./session-tables.ts";

/** All tables. A copy of a store copies them in this order: the rows of a table may need those before. */
export const TABLES = {
  ...SESSION_TABLES,
  ...RUN_TABLES,
  ...CHANNEL_TABLES,
  ...AGENT_TABLES,
  ...added("tables"),
};

/** The rows of all tables, for the query builder. */
export type Tables = { [K in keyof typeof TABLES]: RowOf<(typeof TABLES)[K]> };

export type CopiedTable = keyof Tables;

/** All copied tables, in this order. */
export const COPIED_TABLES = (Object.keys(TABLES) as readonly CopiedTable[]).filter(
  (table) => TABLES[table].rules.isPassing !== true,
);

export type SessionTable = Tables["sessions"];
export type WaitTable = Tables["waits"];
export type ChainTable = Tables["chains"];
export type LedgerTable = Tables["ledger"];
export type IdempotencyTable = Tables["idempotency"];
export type DeliveryTable = Tables["deliveries"];
export type ProcessTable = Tables["processes"];
