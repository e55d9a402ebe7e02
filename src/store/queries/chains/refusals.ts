// Owns the table of refused sends and spawns of runs. Each call is stored once, even if a crash repeats it.

import type { Selectable } from "kysely";
import { heldIfFree } from "../../locks.ts";
import type { RefusalTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";

/** Maximum number of old rows that one transaction deletes. */
const FORGOTTEN_AT_ONCE = 100;

export interface Refusal {
  readonly callId: string;
  readonly chainId: string;
  readonly runId: string;
  readonly fromKey: string;
  /** The target session, if known. */
  readonly toKey?: string;
  /** The target as the call named it. */
  readonly named?: string;
  readonly tool: string;
  readonly code: string;
  readonly error: string;
  /** For a refused wait: the keys of the cycle, from the sender back to it. */
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

/** Stores a refusal. False: it was stored before, and nothing changed. */
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

/** Deletes some refusals from before this time. */
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
