// Owns the transactions in which a whole PostgreSQL store is read out or filled: long, and undisturbed.
// PW1: nobody else writes to a store that is being filled; whoever comes meanwhile waits, or tries again.
// PW2: neither the server's time-outs nor our own end such a transaction.

import { sql } from "kysely";
import { COPIED_TABLES } from "./copy.ts";
import type { Timeouts } from "./postgres-connection.ts";
import { POSTGRES_MIGRATIONS } from "./postgres-schema.ts";
import type { Tx } from "./sql.ts";

/** Of the connections on which such a transaction runs. A lock is waited for as long as for a migration. */
export const BULK_TIMEOUTS: Partial<Timeouts> = { statementMs: 0, lockMs: 20_000, idleInTransactionMs: 0 };

const TABLES = sql.join(COPIED_TABLES.map((table) => sql.table(table)));

/** From version 17 on a server can limit the whole of a transaction. */
async function takeTime(tx: Tx): Promise<void> {
  await sql`select set_config('transaction_timeout', '0', true)
    where current_setting('transaction_timeout', true) is not null`.execute(tx);
}

/** Another version may have changed the schema since the store was opened; from here on none can. */
async function isOurVersion(tx: Tx): Promise<boolean> {
  const { rows } = await sql<{ version: number }>`select version from schema_version`.execute(tx);
  return rows[0]?.version === POSTGRES_MIGRATIONS.length;
}

/** Makes the transaction see one moment, whatever goes on. False: the schema has another version. */
export async function beginBulkRead(tx: Tx): Promise<boolean> {
  await sql`set transaction isolation level repeatable read, read only`.execute(tx);
  // The first query fixes the moment: the tables must be as they will stay.
  await sql`lock table ${TABLES} in access share mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}

/** Tells the planner at once what it would learn by and by. */
export async function endBulkWrite(tx: Tx): Promise<void> {
  await sql`analyze ${TABLES}, message_texts, session_names`.execute(tx);
}

/** Keeps everybody else from writing. False: the schema has another version. */
export async function beginBulkWrite(tx: Tx): Promise<boolean> {
  await sql`lock table ${TABLES} in share row exclusive mode`.execute(tx);
  await takeTime(tx);
  return isOurVersion(tx);
}
