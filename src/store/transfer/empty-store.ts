// Decides whether a store counts as empty, so that another one may be copied into it. The first start of a
// gateway already creates sessions. Sessions without messages, runs or changes are therefore ignored.

import { sql } from "kysely";
import { COPIED_TABLES } from "../schema/tables.ts";
import { type Db, kindOf, type Tx } from "../sql.ts";
import type { Row } from "./copy-messages.ts";

/**
 * A store with at least this many sessions does not count as empty, because the start of a gateway creates
 * fewer.
 */
const SESSIONS_MAX = 1_000;
/** Columns that are set in every new session. */
const OF_EVERY_SESSION = new Set([
  "row_id",
  "key",
  "session_id",
  "agent_id",
  "kind",
  "created_at",
  "updated_at",
  "archived",
]);

/** Returns the copied tables that this database has. A file of an older version lacks some of them. */
async function tablesOf(db: Db): Promise<readonly string[]> {
  if (kindOf(db) === "postgres") return COPIED_TABLES;
  const { rows } = await sql<{ name: string }>`select name from sqlite_schema where type = 'table'`.execute(
    db,
  );
  const names = new Set(rows.map(({ name }) => name));
  return COPIED_TABLES.filter((table) => names.has(table));
}

/** Returns whether a session has only default values, and no run was ever accepted for it. */
function isUntouched(row: Row): boolean {
  return Object.entries(row).every(
    ([name, value]) =>
      OF_EVERY_SESSION.has(name) || (name === "next_lane_seq" ? value === 1 : value === null || value === 0),
  );
}

/** Returns the names of the tables with content; an empty list means that the store is empty. */
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

/** Deletes the sessions of an otherwise empty store. */
export async function clearSessions(tx: Tx): Promise<void> {
  await tx.deleteFrom("sessions").execute();
  await tx.deleteFrom("session_ids").execute();
}
