// Owns the new plan of what was planned by a clock that was ahead: stored dates are wall-clock times, and a
// clock that is set back would have them wait for as long as it was ahead.
// RP1: doing it twice does no harm: several processes may do it at once, and each start may do it again.

import { sql } from "kysely";
import { type Db, kindOf, type Tx } from "./sql.ts";

/** A step of the clock. */
export interface BackwardStep {
  /** The time as it is now. */
  readonly now: number;
  /** The time as it was before the step: `now` and the length of the step. */
  readonly before: number;
}

/** Kinds of stored deadlines, by how their dates came about. */
interface Kinds {
  /** By a calendar: these are planned anew by whoever owns it. */
  readonly calendar: string;
  /** A moment after something happened. */
  readonly short: string;
}

/** The newest time in the store that nobody sets in advance. */
export async function newestTime(db: Db): Promise<number> {
  const { rows } = await sql<{ at: number | null }>`select max(at) as at from (
    select created_at as at from (select created_at from messages order by seq desc limit 1) as m
    union all
    select created_at as at from (select created_at from deliveries order by seq desc limit 1) as d
  ) as newest`.execute(db);
  return Number(rows[0]?.at ?? 0);
}

/** Has everything fall due as long after now as it would have after the moment before the step. */
export async function planAfterStep(tx: Tx, { now, before }: BackwardStep, kinds: Kinds): Promise<void> {
  const back = Math.round(before - now);
  const at = Math.round(now);
  const larger = (column: string) =>
    kindOf(tx) === "sqlite"
      ? sql<number>`max(${at}, ${sql.ref(column)} - ${back})`
      : sql<number>`greatest(${at}::bigint, ${sql.ref(column)} - ${back}::bigint)`;
  await tx
    .updateTable("deliveries")
    .set({ next_attempt_at: larger("next_attempt_at") })
    .where("state", "=", "pending")
    .where("next_attempt_at", ">", at)
    .execute();
  await tx
    .updateTable("deadlines")
    .set({ due_at: larger("due_at") })
    .where("due_at", ">", at)
    // The others are about hours and days; those that had been due are due.
    .where((eb) => eb.or([eb("kind", "=", kinds.short), eb("due_at", "<=", at + back)]))
    .where("kind", "!=", kinds.calendar)
    .execute();
  for (const table of ["waits", "job_waits"] as const) {
    await tx
      .updateTable(table)
      .set((eb) => ({ deadline_at: eb("deadline_at", "-", back) }))
      .where("state", "=", "open")
      .where("deadline_at", ">", at + back)
      .execute();
  }
}
