// Deletes the records of chains that ended long ago (`store.retention`), in steps of limited size.
// Transcripts and the usage ledger stay.
// PN1: a chain goes as a whole, and only after its last run ended before the limit. It stays while a run or a
//      flow of it is unfinished, while an inbox shows a message of it that nobody has read, or while a
//      sub-agent of it is not archived, because its requester can still list it.

import { type RawBuilder, type SqlBool, sql } from "kysely";
import { idParts } from "../../id-parts.ts";
import { heldIfFree } from "../../locks.ts";
import type { Tx } from "../../sql.ts";

/** Maximum number of chains, and of other rows of each kind, in one step. */
const CHAINS_MAX = 100;
const ROWS_MAX = 500;

const isKept = (before: number): RawBuilder<SqlBool> => sql`(
  exists (select 1 from runs r where r.chain_id = chains.chain_id
    and (r.ended_at is null or r.ended_at >= ${before}))
  or exists (select 1 from flows f where f.chain_id = chains.chain_id and f.state = 'open')
  or exists (select 1 from flows f join sessions s on s.key = f.target_key
    where f.chain_id = chains.chain_id and f.kind = 'spawn' and s.archived_at is null)
  or exists (select 1 from runs r join inbox_marks m on m.run_id = r.run_id
    join sessions s on s.session_id = m.session_id
    where r.chain_id = chains.chain_id and m.in_turn_at is null))`;

async function pruneChains(tx: Tx, before: number): Promise<boolean> {
  const old = tx
    .selectFrom("chains")
    .select("chain_id")
    .where("crossed", "in", [sql.lit(0), sql.lit(1)])
    .where("last_at", "<", before)
    .where(sql<SqlBool>`not ${isKept(before)}`)
    .limit(CHAINS_MAX);
  const chainIds = (await heldIfFree(tx, old).execute()).map((row) => row.chain_id);
  if (chainIds.length === 0) return false;
  const runs = await tx.selectFrom("runs").select("run_id").where("chain_id", "in", chainIds).execute();
  for (const runIds of idParts(runs.map((row) => row.run_id))) {
    // The usage of the chain can still be told apart.
    await sql`update ledger set chain_id = (select chain_id from runs r where r.run_id = ledger.run_id)
      where run_id in (${sql.join(runIds)})`.execute(tx);
    await tx.deleteFrom("inbox_marks").where("run_id", "in", runIds).execute();
  }
  for (const table of ["runs", "flows", "refusals", "chains"] as const)
    await tx.deleteFrom(table).where("chain_id", "in", chainIds).execute();
  return chainIds.length === CHAINS_MAX;
}

/** Deletes a limited number of rows that are older than this time. Returns whether there may be more. */
export async function pruneStep(tx: Tx, before: number): Promise<boolean> {
  const isMore = await pruneChains(tx, before);
  // Settled waits whose deadline has long passed.
  await sql`delete from waits where call_id in (
    select call_id from waits where deadline_at < ${before} and state not in ('open', 'ready')
    limit ${sql.lit(ROWS_MAX)})`.execute(tx);
  // A failed delivery stays until an operator has dismissed it.
  for (const state of ["sent", "skipped", "failed"]) {
    const time = state === "failed" ? sql`dismissed_at` : sql`settled_at`;
    // The oldest rows come first, so no index of times is needed.
    await sql`delete from deliveries where seq in (
      select seq from (select seq, ${time} as over_at from deliveries
        where state = ${sql.lit(state)} and ${time} is not null
        order by seq limit ${sql.lit(ROWS_MAX)}) as oldest where over_at < ${before})`.execute(tx);
  }
  return isMore;
}
