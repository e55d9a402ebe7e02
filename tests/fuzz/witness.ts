// Detects unwanted writes: compares the rows of the store and the files of a folder before and after an
// input.

import { type Dirent, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import type { Store } from "../../src/store/sql.ts";
import { must } from "./target.ts";

/**
 * Tables with data of people and agents. Other tables, for example of heartbeats and slots, are changed by
 * the gateway itself.
 */
const TABLES = [
  "sessions",
  "session_ids",
  "messages",
  "runs",
  "waits",
  "flows",
  "chains",
  "deadlines",
  "deliveries",
  "ledger",
  "idempotency",
] as const;

/** Maximum number of reads until two reads in a row return the same. */
const LOOKS_MAX = 50;

/** Returns the number of rows in each table. Leaves out the rows of some sessions. */
export async function rowCounts(store: Store): Promise<string> {
  const counts = TABLES.map((table) => sql`select count(*) as n from ${sql.table(table)}`);
  const { rows } = await sql<{ n: number }>`${sql.join(counts, sql` union all `)}`.execute(store.db);
  return TABLES.map((table, index) => `${table}: ${rows[index]?.n}`).join(", ");
}

/**
 * Returns the number of rows after all changes have ended, because requests of closed connections may still
 * run.
 */
export async function settledCounts(store: Store): Promise<string> {
  let last = "";
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    await untilSettled(store);
    const counts = await rowCounts(store);
    if (counts === last) return counts;
    last = counts;
  }
  return last;
}

/** Returns all data of a session: the row, the messages and the runs. */
export async function rowsOfSession(store: Store, key: string): Promise<string> {
  const { db } = store;
  const session = await db.selectFrom("sessions").selectAll().where("key", "=", key).execute();
  const messages = await db
    .selectFrom("messages")
    .select(["id", "entry_json"])
    .where("session_key", "=", key)
    .execute();
  const runs = await db
    .selectFrom("runs")
    .select(["run_id", "state"])
    .where("session_key", "=", key)
    .execute();
  const deliveries = await db
    .selectFrom("deliveries")
    .select(["id", "state"])
    .where("session_key", "=", key)
    .execute();
  return JSON.stringify({ session, messages, runs, deliveries });
}

const ACTIVE = ["queued", "running", "waiting"];
const TURNS_MAX = 2_000_000;

/** Waits until no run is active. Fails if a run never ends. */
export async function untilIdle(store: Store): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const active = await store.db
      .selectFrom("runs")
      .select(["run_id"])
      .where("state", "in", ACTIVE)
      .executeTakeFirst();
    if (active === undefined) return;
    must(turn < TURNS_MAX, `run ${active.run_id} never ends`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Number of event loop turns after which requests on closed connections have ended. */
const SETTLING_TURNS = 25;

/** Waits until no run is active and the requests of closed connections have ended. */
export async function untilSettled(store: Store): Promise<void> {
  await untilIdle(store);
  for (let turn = 0; turn < SETTLING_TURNS; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    // Waits for earlier transactions, because transactions run one after the other.
    await store.transaction(async () => {});
  }
  await untilIdle(store);
}

function describe(path: string, entry: Dirent): string {
  if (entry.isSymbolicLink()) return `-> ${readlinkSync(path)}`;
  const { size, mode, mtimeMs } = lstatSync(path);
  return entry.isDirectory()
    ? `folder ${mode.toString(8)}`
    : `${size} bytes, ${mode.toString(8)}, ${mtimeMs}`;
}

/** Returns all files of a folder, at any depth, with sizes and times. */
export function filesIn(folder: string, above = ""): string[] {
  return readdirSync(join(folder, above), { withFileTypes: true }).flatMap((entry) => {
    const shown = join(above, entry.name);
    const line = `${shown}: ${describe(join(folder, shown), entry)}`;
    return entry.isDirectory() ? [line, ...filesIn(folder, shown)] : [line];
  });
}
