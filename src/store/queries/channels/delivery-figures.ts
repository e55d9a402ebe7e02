// Computes figures of the outbox per channel account or hook: pending, failed, last success. Reads a limited
// number of rows: the unsettled ones and only the newest settled ones.

import { type RawBuilder, sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Db } from "../../sql.ts";

/** Maximum number of settled rows that are searched for the last success and the last failure. */
const RECENT_MAX = 2_000;

export interface DeliveryFigures {
  readonly pending: number;
  /** Number of failed deliveries that are not dismissed. */
  readonly failed: number;
  /** Number of pending deliveries with at least one failed attempt. */
  readonly retrying: number;
  /** Time at which the first of these pending deliveries is attempted again. */
  readonly nextAttemptAt?: number;
  /** Error of a delivery that is being retried, otherwise of the last failed delivery. */
  readonly lastError?: string;
  /** Time of the last failure. */
  readonly lastErrorAt?: number;
  readonly lastSentAt?: number;
}

/** Returns the index of the prefix with which a row's route key begins, or -1 if none matches. */
function wayOf(prefixes: readonly string[]): RawBuilder<number> {
  const whens = prefixes.map((prefix, way) => {
    const chars = sql.lit([...prefix].length);
    return sql`when substr(route_key, 1, ${chars}) = ${prefix} then ${sql.lit(way)}`;
  });
  return whens.length === 0 ? sql`-1` : sql`case ${sql.join(whens, sql` `)} else -1 end`;
}

/** Selects a limited number of rows in a state, the newest or the oldest. */
function some(state: "sent" | "failed" | "pending", order: "asc" | "desc"): RawBuilder<unknown> {
  return sql`(select route_key, error, settled_at, seq from deliveries
    where state = ${sql.lit(state)} order by seq ${sql.raw(order)} limit ${sql.lit(RECENT_MAX)}) as recent`;
}

interface Trouble {
  readonly way: number;
  readonly error: string;
  readonly settled_at: number | null;
}

async function troubles(
  db: Db,
  way: RawBuilder<number>,
  state: "failed" | "pending",
  order: "asc" | "desc",
): Promise<Map<number, Trouble>> {
  const query = sql<Trouble>`select ${way} as way, error, settled_at from ${some(state, order)}
    where error is not null order by seq ${sql.raw(order)}`;
  const { rows } = await query.execute(db);
  // A later entry of a Map replaces an earlier one. The rows are reversed, so that the first row of each
  // prefix is kept.
  return new Map(rows.toReversed().map((row) => [Number(row.way), row]));
}

/** Returns the figures for each prefix of route keys. The last element is for rows that match no prefix. */
export async function deliveryFigures(db: Db, prefixes: readonly string[]): Promise<DeliveryFigures[]> {
  const way = wayOf(prefixes);
  const open = await sql<Record<"way" | "pending" | "failed" | "retrying" | "next_at", number>>`
    select ${way} as way,
      count(*) filter (where state = 'pending') as pending,
      count(*) filter (where state = 'failed' and dismissed_at is null) as failed,
      count(*) filter (where state = 'pending' and error is not null) as retrying,
      min(next_attempt_at) filter (where state = 'pending' and error is not null) as next_at
    from deliveries where state in ('pending', 'failed') group by way`.execute(db);
  const sent = await sql<Record<"way" | "at", number>>`
    select ${way} as way, max(settled_at) as at from ${some("sent", "desc")} group by way`.execute(db);
  const failed = await troubles(db, way, "failed", "desc");
  const retried = await troubles(db, way, "pending", "asc");
  const counts = new Map(open.rows.map((row) => [Number(row.way), row]));
  const sentAt = new Map(sent.rows.map((row) => [Number(row.way), Number(row.at)]));
  return [...prefixes.keys(), -1].map((at) => {
    const row = counts.get(at);
    const trouble = retried.get(at) ?? failed.get(at);
    return {
      pending: Number(row?.pending ?? 0),
      failed: Number(row?.failed ?? 0),
      retrying: Number(row?.retrying ?? 0),
      ...(row?.next_at == null ? {} : { nextAttemptAt: Number(row.next_at) }),
      ...optional({ lastError: trouble?.error }),
      ...(trouble?.settled_at == null ? {} : { lastErrorAt: Number(trouble.settled_at) }),
      ...(sentAt.has(at) ? { lastSentAt: sentAt.get(at) as number } : {}),
    };
  });
}
