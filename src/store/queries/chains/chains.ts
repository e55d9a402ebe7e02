// Owns the usage of a chain of runs (I8). A transaction that decides by a chain's figures locks its row, so
// that no two runs take its last run or the rest of its budget.

import { type Insertable, type Selectable, sql } from "kysely";
import type { Usage } from "../../../core/shapes/message.ts";
import { held } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import type { ChainTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";

/** The fields of a run that its chain counts. */
interface CountedRun {
  readonly chainId: string;
  /** Becomes the chain's root if this is its first run. */
  readonly rootSessionKey: string;
  readonly hop: number;
  readonly at: number;
  /** 0: a message to an external session, which has no runs. */
  readonly runs: 0 | 1;
}

const COUNT_RUN = prepared((tx, row: Omit<Insertable<ChainTable>, "tokens" | "cost" | "told">) =>
  tx
    .insertInto("chains")
    .values(row)
    .onConflict((conflict) =>
      conflict.column("chain_id").doUpdateSet((eb) => ({
        runs: sql<number>`chains.runs + excluded.runs`,
        last_at: eb.ref("excluded.last_at"),
        // Once a chain has crossed sessions, it stays so.
        crossed: sql<number>`case when excluded.crossed = 1 then 1 else chains.crossed end`,
      })),
    ),
);

/** Counts another run of a chain; the first one sets the chain's root (I8). */
export async function countChainRun(tx: Tx, run: CountedRun): Promise<void> {
  await COUNT_RUN(tx, {
    chain_id: run.chainId,
    runs: run.runs,
    root_session_key: run.rootSessionKey,
    last_at: run.at,
    crossed: run.hop > 0 ? 1 : 0,
  });
}

/** Records that a send or spawn between sessions was refused in a chain. */
export async function noteChainRefused(tx: Tx, chainId: string, at: number): Promise<void> {
  await tx.updateTable("chains").set({ last_at: at, crossed: 1 }).where("chain_id", "=", chainId).execute();
}

export interface Chain {
  readonly runs: number;
  readonly rootSessionKey?: string;
  readonly tokens: number;
  /** USD. */
  readonly cost: number;
}

/** Returns a chain's usage so far; zero for a new chain. */
export async function getChain(db: Db, chainId: string): Promise<Chain> {
  return chainOf(
    await db.selectFrom("chains").selectAll().where("chain_id", "=", chainId).executeTakeFirst(),
  );
}

/** Like `getChain`, but locks the row until the transaction ends. */
export async function holdChain(tx: Tx, chainId: string): Promise<Chain> {
  const query = tx.selectFrom("chains").selectAll().where("chain_id", "=", chainId);
  return chainOf(await held(tx, query).executeTakeFirst());
}

function chainOf(row: Selectable<ChainTable> | undefined): Chain {
  if (row === undefined) return { runs: 0, tokens: 0, cost: 0 };
  const root = row.root_session_key === null ? {} : { rootSessionKey: row.root_session_key };
  return { runs: row.runs, tokens: row.tokens, cost: row.cost, ...root };
}

type ChainUse = { readonly chainId: string } & {
  readonly [K in "tokens" | "cost" | "at"]: number;
};

const ADD_USAGE = prepared((tx, { chainId, tokens, cost, at }: ChainUse) =>
  tx
    .updateTable("chains")
    .set((eb) => ({ tokens: eb("tokens", "+", tokens), cost: eb("cost", "+", cost), last_at: at }))
    .where("chain_id", "=", chainId),
);

export async function addChainUsage(tx: Tx, chainId: string, usage: Usage, at: number): Promise<void> {
  // An append, or a run that ended in its queue, costs nothing and needs no write.
  if (usage.totalTokens === 0 && usage.cost.total === 0) return;
  await ADD_USAGE(tx, { chainId, tokens: usage.totalTokens, cost: usage.cost.total, at });
}

/** Whether the caller has to tell the chain's root session that the budget is used up: true once. */
export async function claimBudgetNotice(tx: Tx, chainId: string): Promise<boolean> {
  const done = await tx
    .updateTable("chains")
    .set({ told: 1 })
    .where("chain_id", "=", chainId)
    .where("told", "=", 0)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}
