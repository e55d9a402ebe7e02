// Owns the table of gateway processes that share a store: who is alive, by the database's clock.
// PR1: a process is alive while its last beat is younger than the lease; what the dead ones held is free.
// PR2: only a process with a fresh beat claims; what a stale one still holds is fenced by owner and attempt.

import { type RawBuilder, sql } from "kysely";
import { type Db, kindOf, type Tx } from "./sql.ts";

/** A process that has not beaten for this long counts as dead. */
export const LEASE_MS = 3_000;
/** Rows of the dead are kept this long, for people to see. */
const DEAD_KEPT_MS = 3_600_000;

export interface ProcessFacts {
  readonly processId: string;
  readonly host: string;
  readonly version: string;
}

/** ms since 1970 by the database's clock; on a store without one, `nowMs`. */
function databaseNow(db: Db, nowMs: number): RawBuilder<number> {
  return kindOf(db) === "postgres"
    ? sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql<number>`${Math.round(nowMs)}`;
}

/** Processes that are alive, as a query for their ids. */
export function livingProcesses(db: Db, nowMs: number): RawBuilder<string> {
  return sql<string>`(select process_id from processes
    where beat_at > ${databaseNow(db, nowMs)} - ${sql.lit(LEASE_MS)})`;
}

/** Says that a process is alive, and makes its row if there is none. */
export async function beat(tx: Tx, facts: ProcessFacts, nowMs: number): Promise<void> {
  const now = databaseNow(tx, nowMs);
  const { processId, host, version } = facts;
  await tx
    .insertInto("processes")
    .values({ process_id: processId, host, version, started_at: now, beat_at: now })
    .onConflict((conflict) => conflict.column("process_id").doUpdateSet({ beat_at: now }))
    .execute();
}

/** Beats for a process that has a row. */
export async function beatAgain(tx: Tx, processId: string, nowMs: number): Promise<void> {
  await tx
    .updateTable("processes")
    .set({ beat_at: databaseNow(tx, nowMs) })
    .where("process_id", "=", processId)
    .execute();
}

/** Whether a process's beat is fresh, so that it may claim. */
export async function isAlive(tx: Tx, processId: string, nowMs: number): Promise<boolean> {
  const row = await tx
    .selectFrom("processes")
    .select("process_id")
    .where("process_id", "=", processId)
    .where("beat_at", ">", sql<number>`${databaseNow(tx, nowMs)} - ${sql.lit(LEASE_MS)}`)
    .executeTakeFirst();
  return row !== undefined;
}

/** The process ends: nothing is its own any more. */
export async function leave(tx: Tx, processId: string): Promise<void> {
  await tx.deleteFrom("processes").where("process_id", "=", processId).execute();
}

/** Forgets those that died long ago. */
export async function forgetDead(tx: Tx, nowMs: number): Promise<void> {
  await tx
    .deleteFrom("processes")
    .where("beat_at", "<", sql<number>`${databaseNow(tx, nowMs)} - ${sql.lit(DEAD_KEPT_MS)}`)
    .execute();
}

export interface ProcessRow extends ProcessFacts {
  readonly startedAt: number;
  readonly beatAt: number;
  readonly alive: boolean;
}

/** Every process that is known, newest first. */
export async function listProcesses(db: Db, nowMs: number): Promise<ProcessRow[]> {
  const { rows } = await sql<{
    process_id: string;
    host: string;
    version: string;
    started_at: number;
    beat_at: number;
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
  }));
}
