// Owns the table of refusals: sends and spawns that runs tried and that were refused. A refused call is
// stored only once, even if a run repeats the call after a crash.

import { heldIfFree } from "../../locks.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";

/** Maximum number of old rows that are deleted per transaction. */
const FORGOTTEN_AT_ONCE = 100;

/**
 * `named`: the target as it was written in the call. `cycle`: the keys of the cycle because of which a wait
 * was refused, starting and ending with the sender.
 */
export type Refusal = RecordOf<"refusals", { readonly cycle?: readonly string[] }>;

const REFUSALS = recordsOf<Refusal>()("refusals", {
  key: ["call_id"],
  columns: [
    "chain_id",
    "run_id",
    "from_key",
    "to_key",
    "named",
    "tool",
    "code",
    "error",
    "cycle_json",
    "hop",
    "at",
  ],
});

/** Stores a refusal. Returns false if this call's refusal is already stored. */
export const addRefusal = (tx: Tx, refusal: Refusal) => REFUSALS.add(tx, refusal);

/** Deletes a limited number of refusals that are older than this time. */
export async function forgetRefusals(tx: Tx, before: number): Promise<void> {
  const old = tx
    .selectFrom("refusals")
    .select("call_id")
    .where("at", "<", before)
    .orderBy("at")
    .limit(FORGOTTEN_AT_ONCE);
  const ids = (await heldIfFree(tx, old).execute()).map((row) => row.call_id);
  if (ids.length > 0) await tx.deleteFrom("refusals").where("call_id", "in", ids).execute();
}

/** Returns the refusals of a chain, newest first. */
export const refusalsOf = (db: Db, chainId: string, limit: number) =>
  REFUSALS.all(REFUSALS.rows(db, { chainId }).orderBy("at", "desc").limit(limit));
