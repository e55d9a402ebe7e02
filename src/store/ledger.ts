// Owns the usage ledger: what each run consumed. It outlives sessions and transcripts.

import type { Usage } from "../core/message.ts";
import type { Db, Tx } from "./sql.ts";

interface UsageRow {
  readonly runId: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  /** ms since 1970. */
  readonly at: number;
}

export async function addUsageRow(tx: Tx, row: UsageRow): Promise<void> {
  const { usage } = row;
  await tx
    .insertInto("ledger")
    .values({
      run_id: row.runId,
      session_key: row.sessionKey,
      agent_id: row.agentId,
      provider: row.provider,
      model: row.model,
      input: usage.input,
      output: usage.output,
      cache_read: usage.cacheRead,
      cache_write: usage.cacheWrite,
      total_tokens: usage.totalTokens,
      cost: usage.cost.total,
      at: row.at,
    })
    .execute();
}

export interface UsageSum {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
  /** USD. */
  readonly cost: number;
}

/**
 * What a session consumed in all its transcripts; without a session, everything (which reads the whole
 * ledger).
 */
export async function usageOf(db: Db, of: { sessionKey?: string }): Promise<UsageSum> {
  let query = db
    .selectFrom("ledger")
    .select(({ fn, lit }) => [
      fn.coalesce(fn.sum<number>("input"), lit(0)).as("input"),
      fn.coalesce(fn.sum<number>("output"), lit(0)).as("output"),
      fn.coalesce(fn.sum<number>("cache_read"), lit(0)).as("cacheRead"),
      fn.coalesce(fn.sum<number>("cache_write"), lit(0)).as("cacheWrite"),
      fn.coalesce(fn.sum<number>("total_tokens"), lit(0)).as("totalTokens"),
      fn.coalesce(fn.sum<number>("cost"), lit(0)).as("cost"),
    ]);
  if (of.sessionKey !== undefined) query = query.where("session_key", "=", of.sessionKey);
  return await query.executeTakeFirstOrThrow();
}
