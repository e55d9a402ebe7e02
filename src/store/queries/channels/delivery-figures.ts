// Computes figures of the outbox per channel account or hook: pending, failed, last success. Reads a limited
// number of rows: the unsettled ones and only the newest settled ones.

import { type RawBuilder, sql } from "kysely";
import { type Db, type Nulls, withoutNulls } from "../../sql.ts";

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

function some(state: "sent" | "failed" | "pending", order: "asc" | "desc"): RawBuilder<unknown> {
  return sql`(select route_key, error, settled_at, seq from deliveries
    where state = ${sql.lit(state)} order by seq ${sql.raw(order)} limit ${sql.lit(RECENT_MAX)}) as recent`;
}

type Counts = Pick<DeliveryFigures, "pending" | "failed" | "retrying" | "nextAttemptAt">;

/** Returns the first row of each prefix, by its index. */
async function byWay<T extends object>(
  db: Db,
  query: RawBuilder<Nulls<T> & { way: number }>,
): Promise<Map<number, T>> {
  const { rows } = await query.execute(db);
  // A later entry of a Map replaces an earlier one, so the rows are reversed.
  return new Map(rows.reverse().map(({ way, ...row }) => [way, withoutNulls(row as unknown as Nulls<T>)]));
}

/** Returns the figures for each prefix of route keys. The last element is for rows that match no prefix. */
export async function deliveryFigures(db: Db, prefixes: readonly string[]): Promise<DeliveryFigures[]> {
  const whens = prefixes.map((prefix, way) => {
    const chars = sql.lit([...prefix].length);
    return sql`when substr(route_key, 1, ${chars}) = ${prefix} then ${sql.lit(way)}`;
  });
  const way = whens.length === 0 ? sql`-1` : sql`case ${sql.join(whens, sql` `)} else -1 end`;
  const counts = await byWay<Counts>(
    db,
    sql`select ${way} as way,
      count(*) filter (where state = 'pending') as pending,
      count(*) filter (where state = 'failed' and dismissed_at is null) as failed,
      count(*) filter (where state = 'pending' and error is not null) as retrying,
      min(next_attempt_at) filter (where state = 'pending' and error is not null) as "nextAttemptAt"
    from deliveries where state in ('pending', 'failed') group by way`,
  );
  const sent = await byWay<Pick<DeliveryFigures, "lastSentAt">>(
    db,
    sql`select ${way} as way, max(settled_at) as "lastSentAt" from ${some("sent", "desc")} group by way`,
  );
  const troubles = (state: "failed" | "pending", order: "asc" | "desc") =>
    byWay<Pick<DeliveryFigures, "lastError" | "lastErrorAt">>(
      db,
      sql`select ${way} as way, error as "lastError", settled_at as "lastErrorAt" from ${some(state, order)}
        where error is not null order by seq ${sql.raw(order)}`,
    );
  const failed = await troubles("failed", "desc");
  const retried = await troubles("pending", "asc");
  return [...prefixes.keys(), -1].map((at) => ({
    ...{ pending: 0, failed: 0, retrying: 0 },
    ...counts.get(at),
    ...(retried.get(at) ?? failed.get(at)),
    ...sent.get(at),
  }));
}
