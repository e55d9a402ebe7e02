// Owns what counts as an empty store, into which another one may be put.
// EM1: a gateway that was started and did nothing leaves sessions: where nothing was said, run or set they
//      are as good as none.

import { sql } from "kysely";
import { COPIED_TABLES } from "./copy.ts";
import type { Row } from "./copy-messages.ts";
import { type Db, kindOf, type Tx } from "./sql.ts";

/** More sessions than this are not of a start alone. */
const SESSIONS_MAX = 1_000;
/** What every session has. */
const OF_EVERY_SESSION = new Set([
  ...["row_id", "key", "session_id", "agent_id", "kind", "created_at", "updated_at", "archived"],
]);

/** The tables that this database has: an older file lacks some. */
async function tablesOf(db: Db): Promise<readonly string[]> {
  if (kindOf(db) === "postgres") return COPIED_TABLES;
  const { rows } = await sql<{ name: string }>`select name from sqlite_schema where type = 'table'`.execute(
    db,
  );
  const names = new Set(rows.map(({ name }) => name));
  return COPIED_TABLES.filter((table) => names.has(table));
}

/** Nothing was ever set in it, and no run was accepted for it. */
function isUntouched(row: Row): boolean {
  return Object.entries(row).every(
    ([name, value]) =>
      OF_EVERY_SESSION.has(name) || (name === "next_lane_seq" ? value === 1 : value === null || value === 0),
  );
}

/** What keeps a store from being empty, by the names of its tables; nothing: it is empty. */
export async function nonEmptyTables(db: Db): Promise<string[]> {
  const held: string[] = [];
  for (const table of await tablesOf(db)) {
    if (table === "session_ids") continue;
    const limit = table === "sessions" ? SESSIONS_MAX : 1;
    const { rows } = await sql<Row>`select * from ${sql.table(table)} limit ${sql.lit(limit)}`.execute(db);
    const isEmpty = table === "sessions" ? rows.length < limit && rows.every(isUntouched) : rows.length === 0;
    if (!isEmpty) held.push(table);
  }
  return held;
}

/** Takes the sessions out of a store that is empty but for them. */
export async function clearSessions(tx: Tx): Promise<void> {
  await tx.deleteFrom("sessions").execute();
  await tx.deleteFrom("session_ids").execute();
}
