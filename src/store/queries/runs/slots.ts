// Owns the slots of the whole deployment: each row is a permit to execute one run. A run of a sub-agent has a
// second row, from the pool of sub-agents. A transaction takes the first free row that no other transaction
// has locked, so claims do not wait for each other.

import { sql } from "kysely";
import { prepared } from "../../prepared.ts";
import { kindOf, type Tx } from "../../sql.ts";

interface Wanted {
  readonly holder: string;
  /** The rows of the pool have numbers greater than this, up to `last`. */
  readonly before: number;
  readonly last: number;
}

const SLOTS = { before: 0, mark: "" };
export const SUBAGENT_SLOTS = { before: 1_000_000, mark: "sub-agent " };

const TAKE = prepared((tx, { holder, before, last }: Wanted) => {
  const skip = kindOf(tx) === "postgres" ? sql`for update skip locked` : sql``;
  return sql`update slots set run_id = ${holder} where n = (
    select n from slots where run_id is null and n > ${before} and n <= ${last} order by n limit 1 ${skip})`;
});

/** Adds rows as they are needed, several at once, because the limit may change. */
const ADD = prepared((_, { before, last }: Pick<Wanted, "before" | "last">) => {
  const first = sql`cast(${before} as integer)`;
  return sql`insert into slots (n) with recursive number (n, most) as (
      select most + 1, 2 * most - ${first} + 64
        from (select coalesce(max(n), ${first}) as most from slots where n > ${first} and n <= ${last}) as s
        where most < ${last}
      union all select n + 1, most from number where n < ${last} and n < most
    ) select n from number where true on conflict do nothing`;
});

const RELEASE = prepared(
  (_, { run, subagent }: { run: string; subagent: string }) =>
    sql`update slots set run_id = null where run_id in (${run}, ${subagent})`,
);

/** Takes a slot of a pool for a run. Returns false if the first `max` slots of the pool are taken. */
export async function takeSlot(tx: Tx, runId: string, max: number, pool = SLOTS): Promise<boolean> {
  const wanted = { holder: pool.mark + runId, before: pool.before, last: pool.before + max };
  const take = async () => (await TAKE(tx, wanted)).numAffectedRows === 1n;
  if (await take()) return true;
  await ADD(tx, wanted);
  return take();
}

/** Frees the slots of a run, if it has any. */
export async function releaseSlot(tx: Tx, runId: string): Promise<void> {
  await RELEASE(tx, { run: runId, subagent: SUBAGENT_SLOTS.mark + runId });
}
