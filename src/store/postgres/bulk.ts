// Sets up transactions that read or fill a whole PostgreSQL store. While a store is filled, other writers
// wait or retry. These transactions have no time limit, neither on the server nor in this program.

import { sql } from "kysely";
import { SCHEMA_VERSION } from "../schema/conversion.ts";
import { COPIED_TABLES } from "../schema/tables.ts";
import type { Tx } from "../sql.ts";
import type { Timeouts } from "./connection.ts";

/**
 * Timeouts of connections that read or fill a whole store. They wait for a lock as long as a conversion does.
 */
export const BULK_TIMEOUTS: Partial<Timeouts> = { statementMs: 0, lockMs: 20_000, idleInTransactionMs: 0 };

const TABLES = sql.join(COPIED_TABLES.map((table) => sql.table(table)));

/** Removes the server's limit on the duration of a transaction, which exists since PostgreSQL 17. */
async function takeTime(tx: Tx): Promise<void> {
  await sql`select set_config('transaction_timeout', '0', true)
    where current_setting('transaction_timeout', true) is not null`.execute(tx);
}

/**
 * Checks the schema version again: another version of the program may have migrated the schema after the
 * store was opened. The table locks prevent later changes.
 */
async function isOurVersion(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ version: number }>`select version from schema_version`.execute(tx);
  return rows[0]?.version === SCHEMA_VERSION;
}

/** Makes the transaction read a single snapshot. Returns false if the schema has another version. */
export async function beginBulkRead(tx: Tx): Promise<boolean> {
  await sql`set transaction isolation level repeatable read, read only`.execute(tx);
  // The first query fixes the snapshot, so the tables are locked before it.
  await sql`lock table ${TABLES} in access share mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}

/** Updates the query planner's statistics now instead of waiting for autovacuum. */
export async function endBulkWrite(tx: Tx): Promise<void> {
  await sql`analyze ${TABLES}, message_texts, session_names`.execute(tx);
}

/** Locks the tables against other writers. Returns false if the schema has another version. */
export async function beginBulkWrite(tx: Tx): Promise<boolean> {
  await sql`lock table ${TABLES} in share row exclusive mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}
