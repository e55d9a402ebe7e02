// Transactions that read or fill a whole PostgreSQL store. While a store is filled, other writers wait or
// retry. No timeout of the server or of this program ends such a transaction.

import { sql } from "kysely";
import { POSTGRES_MIGRATIONS } from "../schema/postgres-schema.ts";
import type { Tx } from "../sql.ts";
import { COPIED_TABLES } from "../transfer/copy.ts";
import type { Timeouts } from "./connection.ts";

/** Timeouts of these connections. A lock is waited for as long as in a migration. */
export const BULK_TIMEOUTS: Partial<Timeouts> = { statementMs: 0, lockMs: 20_000, idleInTransactionMs: 0 };

const TABLES = sql.join(COPIED_TABLES.map((table) => sql.table(table)));

/** Since version 17 a server can limit the duration of a transaction. */
async function takeTime(tx: Tx): Promise<void> {
  await sql`select set_config('transaction_timeout', '0', true)
    where current_setting('transaction_timeout', true) is not null`.execute(tx);
}

/**
 * Another version may have changed the schema since the store was opened; from here on the lock prevents it.
 */
async function isOurVersion(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ version: number }>`select version from schema_version`.execute(tx);
  return rows[0]?.version === POSTGRES_MIGRATIONS.length;
}

/** Makes the transaction read one snapshot. False: the schema has another version. */
export async function beginBulkRead(tx: Tx): Promise<boolean> {
  await sql`set transaction isolation level repeatable read, read only`.execute(tx);
  // The first query takes the snapshot, so lock the tables before it.
  await sql`lock table ${TABLES} in access share mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}

/** Updates the planner's statistics now, because autovacuum would do so only later. */
export async function endBulkWrite(tx: Tx): Promise<void> {
  await sql`analyze ${TABLES}, message_texts, session_names`.execute(tx);
}

/** Locks the tables against other writers. False: the schema has another version. */
export async function beginBulkWrite(tx: Tx): Promise<boolean> {
  await sql`lock table ${TABLES} in share row exclusive mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}
