// Finds the events for programs that are due. A program receives the events of each session in order. A
// pending event blocks only later events of the same session. A query reads a limited number of rows per
// program.

import { sql } from "kysely";
import type { Db } from "../../sql.ts";
import { type Delivery, pendingRoutes, readDeliveries, routeKeyOf } from "./deliveries.ts";

/** Number of oldest pending rows per program that one query reads. */
const WINDOW = 256;

interface Head {
  readonly id: string;
  readonly session_key: string;
  readonly next_attempt_at: number;
  readonly attempt_open: number;
}

/**
 * Returns the first pending row of each session among the oldest rows of a route. Skips the sessions in
 * `behind`.
 */
async function headsOf(db: Db, routeKey: string, behind: readonly string[]): Promise<Head[]> {
  let query = db
    .selectFrom("deliveries")
    .select(["id", "session_key", "next_attempt_at", "attempt_open"])
    .where("state", "=", sql.lit("pending"))
    .where("route_key", "=", routeKey);
  if (behind.length > 0) query = query.where("session_key", "not in", behind);
  const rows = await query.orderBy("seq").limit(WINDOW).execute();
  return [...new Map(rows.toReversed().map((row) => [row.session_key, row])).values()].toReversed();
}

export interface HookLook {
  readonly due: readonly Delivery[];
  /** Time when the next unblocked row is due. */
  readonly nextAt?: number;
}

/** Number of rows that may be sent to a program now. If it is 0, `againAt` is the time to look again. */
interface Room {
  readonly rows: number;
  readonly againAt: number;
}

/**
 * Returns the due events, oldest first for each program. Skips rows for which `isUnderWay` is true, because
 * the caller is already sending them.
 */
export async function dueNews(
  db: Db,
  now: number,
  roomOf: (program: string, programs: number) => Room,
  isUnderWay: (id: string) => boolean,
): Promise<HookLook> {
  const routes = await pendingRoutes(db, "hooks");
  const ids: string[] = [];
  let nextAt = Number.POSITIVE_INFINITY;
  for (const route of routes) {
    const room = roomOf(route.to, routes.length);
    if (room.rows === 0) {
      if (room.againAt > now) nextAt = Math.min(nextAt, room.againAt);
      continue;
    }
    const key = routeKeyOf(route);
    let heads = await headsOf(db, key, []);
    const isFree = (head: Head): boolean => head.attempt_open === 0 && !isUnderWay(head.id);
    const isDue = (head: Head): boolean => isFree(head) && head.next_attempt_at <= now;
    if (heads.length > 0 && !heads.some(isDue)) {
      // No session in the window can be served yet, so the query looks for others behind the window.
      heads = [
        ...heads,
        ...(await headsOf(
          db,
          key,
          heads.map((head) => head.session_key),
        )),
      ];
    }
    ids.push(
      ...heads
        .filter(isDue)
        .slice(0, room.rows)
        .map((head) => head.id),
    );
    for (const head of heads.filter(isFree)) nextAt = Math.min(nextAt, head.next_attempt_at);
  }
  const due = await readDeliveries(db, ids);
  return nextAt === Number.POSITIVE_INFINITY ? { due } : { due, nextAt };
}
