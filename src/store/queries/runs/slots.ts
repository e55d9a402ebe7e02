// Owns the slots of the whole deployment: each row is a permit to execute one run. A transaction takes the
// first free row that no other transaction has locked, so claims do not wait for each other.

import { sql } from "kysely";
import { prepared } from "../../prepared.ts";
import { kindOf, type Tx } from "../../sql.ts";

interface Wanted {
  readonly runId: string;
  readonly max: number;
}

const TAKE = prepared((tx, { runId, max }: Wanted) => {
  const skip = kindOf(tx) === "postgres" ? sql`for update skip locked` : sql``;
  return sql`update slots set run_id = ${runId} where n = (
    select n from slots where run_id is null and n <= ${max} order by n limit 1 ${skip})`;
});

// Rows are added as they are needed, because the limit may change.
const ADD = prepared(
  (_, { runId, max }: Wanted) => sql`insert into slots (n, run_id)
    select coalesce(max(n), 0) + 1, ${runId} from slots having coalesce(max(n), 0) < ${max}
    on conflict do nothing`,
);

const RELEASE = prepared(
  (_, { runId }: { runId: string }) => sql`update slots set run_id = null where run_id = ${runId}`,
);

/** Takes a slot for a run. Returns false if all `max` slots are taken. */
export async function takeSlot(tx: Tx, runId: string, max: number): Promise<boolean> {
  for (const take of [TAKE, ADD]) if ((await take(tx, { runId, max })).numAffectedRows === 1n) return true;
  return false;
}

/** Frees the slot of a run, if it has one. */
export async function releaseSlot(tx: Tx, runId: string): Promise<void> {
  await RELEASE(tx, { runId });
}

/** Frees the slots of these runs. */
export async function releaseSlots(tx: Tx, runIds: readonly string[]): Promise<void> {
  await sql`update slots set run_id = null where run_id in (${sql.join([...runIds])})`.execute(tx);
}
