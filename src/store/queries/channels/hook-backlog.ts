// Limits how many outbox rows may wait for a program or a chat. If events for a program are dropped, one row
// records their number.

import { sql } from "kysely";
import type { Route } from "../../../core/shapes/route.ts";
import { held } from "../../locks.ts";
import { countRows, type Db, type Tx } from "../../sql.ts";
import { deletePiece } from "../delete-piece.ts";
import { BACKLOG_FULL, routeKeyOf } from "./deliveries.ts";

/** Counts the waiting rows of a route, up to `max`. */
export function countWaiting(db: Db, route: Route, max: number): Promise<number> {
  const waiting = db
    .selectFrom("deliveries")
    .select("seq")
    .where("state", "=", sql.lit("pending"))
    .where("route_key", "=", routeKeyOf(route))
    .limit(max);
  return countRows(db.selectFrom(waiting.as("waiting")));
}

/** Selects the unsettled rows that record dropped events. */
const fullRows = (db: Db) =>
  db
    .selectFrom("deliveries")
    .select(["id", "text"])
    .where("state", "=", "failed")
    .where("code", "=", BACKLOG_FULL)
    .where("dismissed_at", "is", null);

/** Counts the dropped events of all programs. Rows that an operator has settled no longer count. */
export async function countDropped(db: Db): Promise<number> {
  const rows = await fullRows(db).execute();
  return rows.reduce(
    (sum, { text }) => sum + (JSON.parse(text) as { data: { events: number } }).data.events,
    0,
  );
}

/**
 * Returns the row that records a route's dropped events, unless an operator has settled it. Locks the row
 * until the transaction ends, so that concurrent transactions do not lose each other's counts.
 */
export async function backlogRow(tx: Tx, route: Route): Promise<{ id: string; text: string } | undefined> {
  const query = fullRows(tx).where("route_key", "=", routeKeyOf(route)).orderBy("seq", "desc").limit(1);
  return await held(tx, query).executeTakeFirst();
}

/** Rewrites the row of `backlogRow` with a new number of dropped events. */
export async function rewriteBacklogRow(
  tx: Tx,
  id: string,
  row: { text: string; error: string },
): Promise<void> {
  await tx.updateTable("deliveries").set(row).where("id", "=", id).where("state", "=", "failed").execute();
}

/** Deletes events that were delivered, or not wanted, before the given time: see `deletePiece`. */
export async function forgetSentHooks(tx: Tx, before: number): Promise<boolean> {
  const forget = (state: "sent" | "skipped"): Promise<boolean> => {
    const which = sql`state = ${state} and kind = 'hook' and settled_at < ${before} order by seq`;
    return deletePiece(tx, "deliveries", ["seq"], which);
  };
  return (await forget("sent")) || forget("skipped");
}
