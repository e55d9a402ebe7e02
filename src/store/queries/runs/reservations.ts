// Owns the amounts that unfinished runs have spent and reserved, and computes the use of budgets from them.
// A spent amount counts here until its run ends. The transaction that ends the run adds the real usage to the
// chain and the ledger. A reservation counts while its run executes. A crash therefore leaves no amount
// behind. Reading a budget and reserving are one atomic step in the whole deployment: an advisory lock of the
// chain, and of the agent if it has a daily budget.

import { sql } from "kysely";
import type { Amount } from "../../../core/rules/budget.ts";
import { takeAdvisoryLock } from "../../locks.ts";
import type { Tx } from "../../sql.ts";
import { together } from "../../transaction.ts";
import { dayStart } from "./ledger.ts";

/** Amount used of a budget, and amount that other runs have reserved. */
interface BudgetUse {
  readonly used: Amount;
  readonly reserved: Amount;
}

interface Asking {
  readonly runId: string;
  readonly chainId: string;
  readonly agentId: string;
  /** A time on the day of the agent's budget, in ms since 1970. */
  readonly at: number;
  /** Whether the agent has a daily budget. If not, its use is not read. */
  readonly hasDaily: boolean;
}

type Sums = Record<"used_tokens" | "used_cost" | "reserved_tokens" | "reserved_cost", number>;

const useOf = (row: Sums | undefined): BudgetUse => ({
  used: { tokens: row?.used_tokens ?? 0, cost: row?.used_cost ?? 0 },
  reserved: { tokens: row?.reserved_tokens ?? 0, cost: row?.reserved_cost ?? 0 },
});

/** Selects the unfinished runs that have spent or reserved. Before it starts, a run has done neither. */
const others = ({ runId, chainId, agentId }: Asking) => sql`
  select chain_id, agent_id, spent_tokens, spent_cost,
    case when state = 'running' then reserved_tokens else 0 end as reserved_tokens,
    case when state = 'running' then reserved_cost else 0 end as reserved_cost
  from runs where started_at is not null and ended_at is null
    and run_id <> ${runId} and (chain_id = ${chainId} or agent_id = ${agentId})`;

/**
 * Returns how much of the chain's budget and of the agent's budget is used, without the amounts that this run
 * has spent and reserved, and the chain's own limit of tokens (`RunInput.tokenLimit`). No other run of the
 * same budgets can reserve until the transaction ends. A single statement reads everything, so that a run
 * that ends at the same time is counted exactly once.
 */
export async function budgetUse(
  tx: Tx,
  asking: Asking,
): Promise<{ chain: BudgetUse; agent: BudgetUse; tokenLimit: number | undefined }> {
  const { chainId, agentId, at, hasDaily } = asking;
  const chains = sql`(select * from chains where chain_id = ${chainId})`;
  const days = sql`(select * from agent_days where agent_id = ${agentId} and day = ${dayStart(at)})`;
  const ofAgent = sql`union all
    select 'agent' as whose, null as token_limit,
      coalesce((select sum(tokens) from ${days} d), 0) + coalesce(sum(spent_tokens), 0) as used_tokens,
      coalesce((select sum(cost) from ${days} d), 0) + coalesce(sum(spent_cost), 0) as used_cost,
      coalesce(sum(reserved_tokens), 0) as reserved_tokens, coalesce(sum(reserved_cost), 0) as reserved_cost
    from others where agent_id = ${agentId}`;
  // A row for the chain, and one for the agent.
  const query = sql<Sums & { readonly whose: "chain" | "agent"; readonly token_limit: number | null }>`
    with others as (${others(asking)})
    select 'chain' as whose, (select token_limit from ${chains} c) as token_limit,
      coalesce((select tokens from ${chains} c), 0) + coalesce(sum(spent_tokens), 0) as used_tokens,
      coalesce((select cost from ${chains} c), 0) + coalesce(sum(spent_cost), 0) as used_cost,
      coalesce(sum(reserved_tokens), 0) as reserved_tokens, coalesce(sum(reserved_cost), 0) as reserved_cost
    from others where chain_id = ${chainId} ${hasDaily ? ofAgent : sql``}`;
  const [, , { rows }] = await together(
    takeAdvisoryLock(tx, "budgets", `chain ${chainId}`),
    hasDaily ? takeAdvisoryLock(tx, "budgets", `agent ${agentId}`) : undefined,
    query.execute(tx),
  );
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
