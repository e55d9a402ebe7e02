// Owns the table of gateway processes that share a store, with their heartbeats.
// PR1: a process is alive as long as it has a row, regardless of any clock. Its row is deleted when it stops,
//      or when another process has seen no new heartbeat during a whole lease (`declareDead`).
// PR2: a heartbeat updates an existing row and never inserts one. A process whose row was deleted has lost
//      everything it held, and has to join again. Once its runs are back in their queues, its writes for them
//      fail, because each write names the owner and the attempt of the run.

import { type RawBuilder, sql } from "kysely";
import { optional } from "../../core/optional.ts";
import type { ProcessFacts, ProcessRow } from "../../core/shapes/process.ts";
import { prepared } from "../prepared.ts";
import { type Db, kindOf, type Tx } from "../sql.ts";

/** A process counts as dead after this time without a heartbeat. */
export const LEASE_MS = 3_000;

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
  const { numUpdatedRows } = await tx
    .updateTable("processes")
    .set({ beat_at: databaseNow(tx, nowMs), config_revision: configRevision ?? null })
    .where("process_id", "=", processId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * A process and the time of its last heartbeat by the database's clock. Compare that time only with the time
 * of another heartbeat.
 */
export interface Beat {
  readonly processId: string;
  readonly beatAt: number;
}

/** Returns the last heartbeat of each process. */
export async function beats(db: Db): Promise<Beat[]> {
  const rows = await db.selectFrom("processes").select(["process_id", "beat_at"]).execute();
  return rows.map((row) => ({ processId: row.process_id, beatAt: row.beat_at }));
}

/**
 * Deletes the row of a process if `beatAt` is still its last heartbeat. Returns false if there is a newer
 * heartbeat, or no row.
 */
export async function declareDead(tx: Tx, { processId, beatAt }: Beat): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom("processes")
    .where("process_id", "=", processId)
    .where("beat_at", "=", beatAt)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

const ALIVE = prepared((db, { processId }: { processId: string }) =>
  db.selectFrom("processes").select("process_id").where("process_id", "=", processId),
);

/** Returns whether a process has a row, and may therefore claim runs. */
export async function isAlive(db: Db, processId: string): Promise<boolean> {
  return (await ALIVE(db, { processId })).rows.length > 0;
}

/** Deletes the row of a process that stops. The process then loses everything that it holds (PR2). */
export async function leave(tx: Tx, processId: string): Promise<void> {
  await tx.deleteFrom("processes").where("process_id", "=", processId).execute();
}

/**
 * Lists all known processes, newest first. `alive` depends on the database's clock, so no process of the
 * deployment may rely on it (PR1).
 */
export async function listProcesses(db: Db, nowMs: number): Promise<ProcessRow[]> {
  const { rows } = await sql<{
    process_id: string;
    host: string;
    version: string;
    started_at: number;
    beat_at: number;
    config_revision: string | null;
    alive: number;
  }>`select p.*,
      case when beat_at > ${databaseNow(db, nowMs)} - ${sql.lit(LEASE_MS)} then 1 else 0 end as alive
    from processes p order by started_at desc, process_id`.execute(db);
  return rows.map((row) => ({
    processId: row.process_id,
    host: row.host,
    version: row.version,
    startedAt: row.started_at,
    beatAt: row.beat_at,
    alive: row.alive === 1,
    ...optional({ configRevision: row.config_revision ?? undefined }),
  }));
}

/**
 * Counts the processes with a recent heartbeat by the database's clock, for programs outside the deployment.
 */
export async function countFresh(db: Db, nowMs: number): Promise<number> {
  return (await listProcesses(db, nowMs)).filter((process) => process.alive).length;
}

/** Returns whether all processes have the same settings, so that no change is under way. */
export async function settingsAgree(db: Db): Promise<boolean> {
  const rows = await db.selectFrom("processes").select("config_revision").distinct().limit(2).execute();
  return rows.length < 2;
}
