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

// Rows are added as they are needed, because the limit may change.
const ADD = prepared(
  (_, { holder, before, last }: Wanted) => sql`insert into slots (n, run_id)
    select count(*) + 1 + ${before}, ${holder} from slots where n > ${before} and n <= ${last}
    having count(*) + ${before} < ${last} on conflict do nothing`,
);

const RELEASE = prepared(
  (_, { run, subagent }: { run: string; subagent: string }) =>
    sql`update slots set run_id = null where run_id in (${run}, ${subagent})`,
);

/** Takes a slot of a pool for a run. Returns false if the first `max` slots of the pool are taken. */
export async function takeSlot(tx: Tx, runId: string, max: number, pool = SLOTS): Promise<boolean> {
  const wanted = { holder: pool.mark + runId, before: pool.before, last: pool.before + max };
  for (const take of [TAKE, ADD]) if ((await take(tx, wanted)).numAffectedRows === 1n) return true;
  return false;
}

/** Frees the slots of a run, if it has any. */
export async function releaseSlot(tx: Tx, runId: string): Promise<void> {
  await RELEASE(tx, { run: runId, subagent: SUBAGENT_SLOTS.mark + runId });
}
