// Owns the usage figures of a chain of runs (I8). A transaction that decides by these figures first locks the
// chain's row. Otherwise two transactions could both start the last permitted run, or both use the rest of
// the budget.

import { type Insertable, sql } from "kysely";
import type { Labels } from "../../../core/shapes/labels.ts";
import type { Usage } from "../../../core/shapes/message.ts";
import { prepared } from "../../prepared.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { ChainTable } from "../../schema/tables.ts";
import { changesRows, type Db, type Tx } from "../../sql.ts";

/** Fields of a run that are counted in its chain. */
interface CountedRun {
  readonly chainId: string;
  /** Session that becomes the root of the chain if this is the chain's first run. */
  readonly rootSessionKey: string;
  readonly hop: number;
  readonly at: number;
  /** 0 for a message to an external session, because it starts no run of ours. */
  readonly runs: 0 | 1;
  readonly guest: boolean;
  /** The chain's limit of tokens from now on (`RunInput.tokenLimit`). Absent: it stays as it is. */
  readonly tokenLimit: number | undefined;
  /** Labels of the chain with those of the run. The caller has locked the chain. */
  readonly labels: Labels | undefined;
}

const COUNT_RUN = prepared((tx, row: Omit<Insertable<ChainTable>, "tokens" | "cost" | "told">) =>
  tx
    .insertInto("chains")
    .values(row)
    .onConflict((conflict) =>
      conflict.column("chain_id").doUpdateSet((eb) => ({
        runs: sql<number>`chains.runs + excluded.runs`,
        last_at: eb.ref("excluded.last_at"),
        // Never changes from 1 back to 0.
        crossed: sql<number>`case when excluded.crossed = 1 then 1 else chains.crossed end`,
        guest: sql<number>`case when excluded.guest = 1 then 1 else chains.guest end`,
        token_limit: sql<number | null>`coalesce(excluded.token_limit, chains.token_limit)`,
        labels_json: sql<string | null>`coalesce(excluded.labels_json, chains.labels_json)`,
      })),
    ),
);

/** Counts a new run in its chain. The first run sets the root session (I8). */
export async function countChainRun(tx: Tx, run: CountedRun): Promise<void> {
  await COUNT_RUN(tx, {
    chain_id: run.chainId,
    runs: run.runs,
    root_session_key: run.rootSessionKey,
    last_at: run.at,
    crossed: run.hop > 0 ? 1 : 0,
    guest: run.guest ? 1 : 0,
    token_limit: run.tokenLimit ?? null,
    labels_json: run.labels === undefined ? null : JSON.stringify(run.labels),
  });
}

/** Records that a send or spawn between sessions was refused in a chain. */
export async function noteChainRefused(tx: Tx, chainId: string, at: number): Promise<void> {
  await tx.updateTable("chains").set({ last_at: at, crossed: 1 }).where("chain_id", "=", chainId).execute();
}

/** `guest`: a guest wrote in the chain (`RunInput.guest`). `tokenLimit`: see `RunInput.tokenLimit`. */
export type Chain = Pick<ChainRecord, "runs" | "tokens" | "cost" | "guest"> &
  Pick<ChainRecord, "rootSessionKey" | "tokenLimit" | "labels">;
type ChainRecord = RecordOf<"chains", { readonly guest: boolean; readonly labels?: Labels }>;

const CHAINS = recordsOf<Chain & Pick<ChainRecord, "chainId">>()("chains", {
  key: ["chain_id"],
  columns: ["runs", "tokens", "cost", "root_session_key", "token_limit", "labels_json"],
  flags: ["guest"],
});

const NO_CHAIN: Chain = { runs: 0, tokens: 0, cost: 0, guest: false };

/** Returns the usage of a chain so far. It is zero for an unknown chain. */
export const getChain = async (db: Db, chainId: string): Promise<Chain> =>
  (await CHAINS.find(db, { chainId })) ?? NO_CHAIN;

/** Like `getChain`, but locks the row until the transaction ends. */
export const holdChain = async (tx: Tx, chainId: string): Promise<Chain> =>
  (await CHAINS.hold(tx, { chainId })) ?? NO_CHAIN;

const ADD_USAGE = prepared(
  (tx, { chainId, tokens, cost, at }: Record<"tokens" | "cost" | "at", number> & { chainId: string }) =>
    tx
      .updateTable("chains")
      .set((eb) => ({ tokens: eb("tokens", "+", tokens), cost: eb("cost", "+", cost), last_at: at }))
      .where("chain_id", "=", chainId),
);

export async function addChainUsage(tx: Tx, chainId: string, usage: Usage, at: number): Promise<void> {
  // A stored message without a turn, or a run that ended while queued, has no usage, so nothing is written.
  if (usage.totalTokens === 0 && usage.cost.total === 0) return;
  await ADD_USAGE(tx, { chainId, tokens: usage.totalTokens, cost: usage.cost.total, at });
}

/**
 * Returns true to one caller only, which must then notify the chain's root session that the budget is used
 * up.
 */
export function claimBudgetNotice(tx: Tx, chainId: string): Promise<boolean> {
  const unnoticed = tx.updateTable("chains").where("chain_id", "=", chainId).where("told", "=", 0);
  return changesRows(tx, unnoticed.set({ told: 1 }));
}
