// Owns the table of refusals: sends and spawns that runs tried and that were refused. A refused call is
// stored only once, even if a run repeats the call after a crash.

import type { Selectable } from "kysely";
import { heldIfFree } from "../../locks.ts";
import type { RefusalTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";

/** Maximum number of old rows that are deleted per transaction. */
const FORGOTTEN_AT_ONCE = 100;

export interface Refusal {
  readonly callId: string;
  readonly chainId: string;
  readonly runId: string;
  readonly fromKey: string;
  /** Key of the target session, if it is known. */
  readonly toKey?: string;
  /** Target as it was written in the call. */
  readonly named?: string;
  readonly tool: string;
  readonly code: string;
  readonly error: string;
  /** If a wait was refused: the keys of the cycle, starting and ending with the sender. */
  readonly cycle?: readonly string[];
  readonly hop: number;
  readonly at: number;
}

function toRefusal(row: Selectable<RefusalTable>): Refusal {
  return {
    callId: row.call_id,
    chainId: row.chain_id,
    runId: row.run_id,
    fromKey: row.from_key,
    ...(row.to_key === null ? {} : { toKey: row.to_key }),
    ...(row.named === null ? {} : { named: row.named }),
    tool: row.tool,
    code: row.code,
    error: row.error,
    ...(row.cycle_json === null ? {} : { cycle: JSON.parse(row.cycle_json) as string[] }),
    hop: row.hop,
    at: row.at,
  };
}

/** Stores a refusal. Returns false if this call's refusal is already stored. */
export async function addRefusal(tx: Tx, refusal: Refusal): Promise<boolean> {
  const done = await tx
    .insertInto("refusals")
    .values({
      call_id: refusal.callId,
      chain_id: refusal.chainId,
      run_id: refusal.runId,
      from_key: refusal.fromKey,
      to_key: refusal.toKey ?? null,
      named: refusal.named ?? null,
      tool: refusal.tool,
      code: refusal.code,
      error: refusal.error,
      cycle_json: refusal.cycle === undefined ? null : JSON.stringify(refusal.cycle),
      hop: refusal.hop,
      at: refusal.at,
    })
    .onConflict((conflict) => conflict.column("call_id").doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

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
export async function refusalsOf(db: Db, chainId: string, limit: number): Promise<Refusal[]> {
  const rows = await db
    .selectFrom("refusals")
    .selectAll()
    .where("chain_id", "=", chainId)
    .orderBy("at", "desc")
    .limit(limit)
    .execute();
  return rows.map(toRefusal);
}
