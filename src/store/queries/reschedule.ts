// Moves stored due times after the system clock was set back. Otherwise the work would be late by the size of
// the change. Several processes may notice the same change, and each then moves the times. The second move
// can make a time too early, but never earlier than now.

import { sql } from "kysely";
import { type Db, kindOf, type Tx } from "../sql.ts";

/** A change of the system clock to an earlier time. */
export interface BackwardStep {
  /** Current time. */
  readonly now: number;
  /** Time before the change: `now` plus the size of the change. */
  readonly before: number;
}

/** Returns the newest time in the store, not counting due times in the future. */
export async function newestTime(db: Db): Promise<number> {
  const { rows } = await sql<{ at: number | null }>`select max(at) as at from (
    select created_at as at from (select created_at from messages order by seq desc limit 1) as m
    union all
    select created_at as at from (select created_at from deliveries order by seq desc limit 1) as d
  ) as newest`.execute(db);
  return Number(rows[0]?.at ?? 0);
}

/**
 * Moves stored due times by the size of the change, so that the remaining time stays the same. Calendar times
 * do not move: their owners compute them again. `short`: kind of the deadlines that are a short delay after
 * an event.
 */
export async function planAfterStep(
  tx: Tx,
  { now, before }: BackwardStep,
  kinds: { readonly calendar: readonly string[]; readonly short: string },
): Promise<void> {
  const back = Math.round(before - now);
  const at = Math.round(now);
  const larger = (column: string) =>
    kindOf(tx) === "sqlite"
      ? sql<number>`max(${at}, ${sql.ref(column)} - ${back})`
      : sql<number>`greatest(${at}::bigint, ${sql.ref(column)} - ${back}::bigint)`;
  await tx
    .updateTable("deadlines")
    .set({ due_at: larger("due_at") })
    .where("due_at", ">", at)
    // Other deadlines are hours or days away. They move only if they were already due before the change.
    .where((eb) => eb.or([eb("kind", "=", kinds.short), eb("due_at", "<=", at + back)]))
    .where("kind", "not in", ["", ...kinds.calendar])
    .execute();
  // After the deadlines, because the timers of the outbox follow its rows.
  await tx
    .updateTable("deliveries")
    .set({ next_attempt_at: larger("next_attempt_at") })
    .where("state", "=", "pending")
    .where("next_attempt_at", ">", at)
    .execute();
  await tx
    .updateTable("waits")
    .set((eb) => ({ deadline_at: eb("deadline_at", "-", back) }))
    .where("state", "=", "open")
    .where("deadline_at", ">", at + back)
    .execute();
}
