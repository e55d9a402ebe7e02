// Owns the amounts that unfinished runs have spent and reserved, and computes the use of budgets from them.
// A spent amount counts here until its run ends. The transaction that ends the run adds the real usage to the
// chain and the ledger. A reservation counts while its run executes. A crash therefore leaves no amount
// behind. Reading a budget and reserving are one atomic step in the whole deployment (advisory lock
// `budgets`).

import { sql } from "kysely";
import type { Amount } from "../../../core/rules/budget.ts";
import { takeAdvisoryLock } from "../../locks.ts";
import type { Tx } from "../../sql.ts";
import { together } from "../../transaction.ts";

/** Amount used of a budget, and amount that other runs have reserved. */
interface BudgetUse {
  readonly used: Amount;
  readonly reserved: Amount;
}

interface Asking {
  readonly runId: string;
  readonly chainId: string;
  readonly agentId: string;
  /** Start of the day of the agent's budget, in ms since 1970. */
  readonly since: number;
}

type Sums = Record<"used_tokens" | "used_cost" | "reserved_tokens" | "reserved_cost", number>;

/** A row for the chain, and one for the agent. */
type BudgetRow = Sums & { readonly whose: "chain" | "agent"; readonly token_limit: number | null };

const useOf = (row: Sums | undefined): BudgetUse => ({
  used: { tokens: Number(row?.used_tokens ?? 0), cost: Number(row?.used_cost ?? 0) },
  reserved: { tokens: Number(row?.reserved_tokens ?? 0), cost: Number(row?.reserved_cost ?? 0) },
});

/**
 * Returns how much of the chain's budget and of the agent's budget is used, without the amounts that this run
 * has spent and reserved, and the chain's own limit of tokens (`RunInput.tokenLimit`). No other run can
 * reserve until the transaction ends. A single statement reads everything, so that a run that ends at the
 * same time is counted exactly once.
 */
export async function budgetUse(
  tx: Tx,
  asking: Asking,
): Promise<{ chain: BudgetUse; agent: BudgetUse; tokenLimit: number | undefined }> {
  const { runId, chainId, agentId, since } = asking;
  const query = sql<BudgetRow>`
    with others as (
      select chain_id, agent_id, spent_tokens, spent_cost,
        case when state = 'running' then reserved_tokens else 0 end as reserved_tokens,
        case when state = 'running' then reserved_cost else 0 end as reserved_cost
      from runs where state in ('queued', 'running', 'waiting') and run_id <> ${runId}
        and (chain_id = ${chainId} or agent_id = ${agentId})
    )
    select 'chain' as whose, (select token_limit from chains where chain_id = ${chainId}) as token_limit,
      coalesce((select tokens from chains where chain_id = ${chainId}), 0)
        + coalesce(sum(spent_tokens), 0) as used_tokens,
      coalesce((select cost from chains where chain_id = ${chainId}), 0)
        + coalesce(sum(spent_cost), 0) as used_cost,
      coalesce(sum(reserved_tokens), 0) as reserved_tokens, coalesce(sum(reserved_cost), 0) as reserved_cost
    from others where chain_id = ${chainId}
    union all
    select 'agent' as whose, null as token_limit,
      coalesce((select sum(total_tokens) from ledger where agent_id = ${agentId} and at >= ${since}), 0)
        + coalesce(sum(spent_tokens), 0) as used_tokens,
      coalesce((select sum(cost) from ledger where agent_id = ${agentId} and at >= ${since}), 0)
        + coalesce(sum(spent_cost), 0) as used_cost,
      coalesce(sum(reserved_tokens), 0) as reserved_tokens, coalesce(sum(reserved_cost), 0) as reserved_cost
    from others where agent_id = ${agentId}`;
  const [, { rows }] = await together(takeAdvisoryLock(tx, "budgets"), query.execute(tx));
  const [chain, agent] = ["chain", "agent"].map((whose) => rows.find((row) => row.whose === whose));
  return { chain: useOf(chain), agent: useOf(agent), tokenLimit: chain?.token_limit ?? undefined };
}

const NOTHING: Amount = { tokens: 0, cost: 0 };

/** Stores the amount that a held run has spent so far, and the maximum amount of its next call. */
export async function noteSpending(tx: Tx, runId: string, spent: Amount, reserved = NOTHING): Promise<void> {
  await tx
    .updateTable("runs")
    .set({
      spent_tokens: Math.ceil(spent.tokens),
      spent_cost: spent.cost,
      reserved_tokens: Math.ceil(reserved.tokens),
      reserved_cost: reserved.cost,
    })
    .where("run_id", "=", runId)
    .execute();
}
