// Owns the table of gateway processes that share a store, with their heartbeats.
// PR1: a process is alive as long as it has a row, regardless of any clock. Its row is deleted when it stops,
//      or when another process has seen no new heartbeat during a whole lease (`declareDead`).
// PR2: a heartbeat updates an existing row and never inserts one. A process whose row was deleted has lost
//      everything it held, and has to join again. Once its runs are back in their queues, its writes for them
//      fail, because each write names the owner and the attempt of the run.

import { type RawBuilder, sql } from "kysely";
import type { ProcessFacts, ProcessRow } from "../../core/shapes/process.ts";
import { recordsOf } from "../records.ts";
import type { ProcessTable } from "../schema/tables.ts";
import { changesRows, type Db, kindOf, type Tx } from "../sql.ts";

/** A process counts as dead after this time without a heartbeat. */
export const LEASE_MS = 3_000;

type Stored = Omit<ProcessRow, "alive">;
const PROCESSES = recordsOf<Stored>()("processes", {
  key: ["process_id"],
  columns: ["host", "version", "started_at", "beat_at", "config_revision"],
});

/** Returns the time by the database's clock, in ms since 1970. For an embedded database, returns `nowMs`. */
function databaseNow(db: Db, nowMs: number): RawBuilder<number> {
  return kindOf(db) === "postgres"
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql<number>`${Math.round(nowMs)}`;
}

/** Returns a subquery that selects the ids of living processes. */
export function livingProcesses(): RawBuilder<string> {
  return sql<string>`(select process_id from processes)`;
}

/** Inserts the row of a process, or updates its heartbeat. */
export async function joinProcesses(tx: Tx, facts: ProcessFacts, nowMs: number): Promise<void> {
  const now = databaseNow(tx, nowMs);
  const { processId, host, version, configRevision } = facts;
  const changing = { beat_at: now, config_revision: configRevision ?? null };
  await tx
    .insertInto("processes")
    .values({ process_id: processId, host, version, started_at: now, ...changing })
    .onConflict((conflict) => conflict.column("process_id").doUpdateSet(changing))
    .execute();
}

/** Updates the heartbeat and the revision of a process. Returns false if its row was deleted (PR2). */
export async function beat(
  tx: Tx,
  { processId, configRevision }: ProcessFacts,
  nowMs: number,
): Promise<boolean> {
  const row = tx.updateTable("processes").where("process_id", "=", processId);
  return changesRows(
    tx,
    row.set({ beat_at: databaseNow(tx, nowMs), config_revision: configRevision ?? null }),
  );
}

/**
 * A process and the time of its last heartbeat by the database's clock. Compare that time only with the time
 * of another heartbeat.
 */
export type Beat = Pick<Stored, "processId" | "beatAt">;

/** Returns the last heartbeat of each process. */
export const beats = (db: Db): Promise<Beat[]> =>
  db.selectFrom("processes").select(["process_id as processId", "beat_at as beatAt"]).execute();

/**
 * Deletes the row of a process if `beatAt` is still its last heartbeat. Returns false if there is a newer
 * heartbeat, or no row.
 */
export const declareDead = (tx: Tx, { processId, beatAt }: Beat) =>
  PROCESSES.remove(tx, { processId, beatAt });

/** Returns whether a process has a row, and may therefore claim runs. */
export const isAlive = async (db: Db, processId: string) =>
  (await PROCESSES.find(db, { processId })) !== undefined;

/** Deletes the row of a process that stops. The process then loses everything that it holds (PR2). */
export const leave = (tx: Tx, processId: string) => PROCESSES.remove(tx, { processId });

/**
 * Lists all known processes, newest first. `alive` depends on the database's clock, so no process of the
 * deployment may rely on it (PR1).
 */
export async function listProcesses(db: Db, nowMs: number): Promise<ProcessRow[]> {
  const { rows } = await sql<ProcessTable & { readonly is_alive: number }>`select p.*,
      case when beat_at > ${databaseNow(db, nowMs)} - ${sql.lit(LEASE_MS)} then 1 else 0 end as is_alive
    from processes p order by started_at desc, process_id`.execute(db);
  return rows.map((row) => ({ ...PROCESSES.read(row), alive: row.is_alive === 1 }));
}

/**
 * Counts the processes with a recent heartbeat by the database's clock, for programs outside the deployment.
 */
export const countFresh = async (db: Db, nowMs: number) =>
  (await listProcesses(db, nowMs)).filter((process) => process.alive).length;

/** Returns whether all processes have the same settings, so that no change is under way. */
export async function settingsAgree(db: Db): Promise<boolean> {
  const rows = await db.selectFrom("processes").select("config_revision").distinct().limit(2).execute();
  return rows.length < 2;
}
