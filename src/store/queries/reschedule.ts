// Reschedules stored dates after the wall clock was set back; otherwise they would wait for the length of the
// step. Repeating it does no harm: several processes may do it at once, and each start again.

import { sql } from "kysely";
import { type Db, kindOf, type Tx } from "../sql.ts";

/** A step of the clock. */
export interface BackwardStep {
  /** The current time. */
  readonly now: number;
  /** The time before the step: `now` plus the length of the step. */
  readonly before: number;
}

/** Kinds of stored deadlines, by the origin of their dates. */
interface Kinds {
  /** Calendar dates: their owner reschedules them. */
  readonly calendar: string;
  /** Short delays after an event. */
  readonly short: string;
}

/** Returns the newest time in the store that was not set in advance. */
export async function newestTime(db: Db): Promise<number> {
  const { rows } = await sql<{ at: number | null }>`select max(at) as at from (
    select created_at as at from (select created_at from messages order by seq desc limit 1) as m
    union all
    select created_at as at from (select created_at from deliveries order by seq desc limit 1) as d
  ) as newest`.execute(db);
  return Number(rows[0]?.at ?? 0);
}

/** After the clock was set back, moves each stored date, so that its remaining time is unchanged. */
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
    // Other deadlines last hours or days; dates that were due stay due.
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
