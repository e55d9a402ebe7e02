// Owns how the outbox stands for each way out: what waits, what failed, when something last arrived.
// DF1: what is read is bounded: what is not settled by its index, and of the settled rows the newest only.

import { type RawBuilder, sql } from "kysely";
import type { Db } from "./sql.ts";

/** Settled rows that are looked at for the last success and the last failure. */
const RECENT_MAX = 2_000;

export interface DeliveryFigures {
  readonly pending: number;
  /** Not dismissed. */
  readonly failed: number;
  /** Pending, after an attempt that failed. */
  readonly retrying: number;
  /** Of what is tried again: the first date. */
  readonly nextAttemptAt?: number;
  /** Of what is tried again, else of the last one that failed. */
  readonly lastError?: string;
  /** Of a failed one. */
  readonly lastErrorAt?: number;
  readonly lastSentAt?: number;
}

/** The number of the way whose routes begin like the row's; -1: of none. */
function wayOf(prefixes: readonly string[]): RawBuilder<number> {
  const whens = prefixes.map((prefix, way) => {
    const chars = sql.lit([...prefix].length);
    return sql`when substr(route_key, 1, ${chars}) = ${prefix} then ${sql.lit(way)}`;
  });
  return whens.length === 0 ? sql`-1` : sql`case ${sql.join(whens, sql` `)} else -1 end`;
}

/** The newest, or oldest, rows of a state, of which a query reads no more. */
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
  // The first of each way counts: written last, it stays.
  return new Map(rows.toReversed().map((row) => [Number(row.way), row]));
}

/**
 * The figures of each way out, which is told by what the keys of its routes begin with, and behind them those
 * of all rows that go none of these ways.
 */
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
      ...(trouble === undefined ? {} : { lastError: trouble.error }),
      ...(trouble?.settled_at == null ? {} : { lastErrorAt: Number(trouble.settled_at) }),
      ...(sentAt.has(at) ? { lastSentAt: sentAt.get(at) as number } : {}),
    };
  });
}
