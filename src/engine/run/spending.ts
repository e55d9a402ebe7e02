// Owns the budgets of an executing run: the cost of each model call is reserved before the call and settled
// after it. Both are fenced by the run's lane (I1), so a run that another process took over reserves nothing.

import {
  type Amount,
  type BudgetState,
  type CallSize,
  type CallVerdict,
  judgeCall,
  type ModelBudget,
} from "../../core/rules/budget.ts";
import type { Run } from "../../core/shapes/run.ts";
import { isHeld } from "../../store/queries/runs/claims.ts";
import { budgetUse, noteSpending } from "../../store/queries/runs/reservations.ts";
import type { Fence } from "../../store/queries/runs/runs.ts";
import { pause } from "../../world/pause.ts";
import type { EngineCore } from "../engine.ts";
import type { Unit } from "../unit.ts";
import { type AcceptLimits, dailyBudgetOf, hasChainBudget, TOKEN_LIMIT_NAME } from "./accept.ts";
import type { LaneHandle } from "./execution.ts";
import { LostLane } from "./finish.ts";
import { untilStored } from "./until-stored.ts";

/** Interval at which a model call checks again while it waits for parallel calls to settle their costs. */
const LOOK_AGAIN_MS = 1_000;

/** Returns the budgets that apply to a run's model calls, with their current values. */
export async function budgetsOf(unit: Unit, run: Run, limits: AcceptLimits): Promise<BudgetState[]> {
  const { agentId } = run;
  const daily = dailyBudgetOf(limits, agentId);
  const asking = { ...run, at: unit.now, hasDaily: daily !== undefined };
  const { chain, agent, tokenLimit } = await budgetUse(unit.tx, asking);
  const ofChain = {
    code: "chain_limit" as const,
    owner: "this conversation",
    advice: "Start a new conversation, or raise that setting.",
  };
  const ofSender = { ...ofChain, advice: "Ask again with a higher limit." };
  const ofDay = {
    code: "budget_used" as const,
    owner: `agent "${agentId}" today`,
    advice: "Try again after 00:00 UTC, or raise that setting.",
  };
  const settings = [
    ["tokens", limits.maxChainTokens, "session.agentToAgent.maxChainTokens", ofChain, chain],
    ["tokens", tokenLimit, TOKEN_LIMIT_NAME, ofSender, chain],
    ["cost", limits.maxChainCost, "session.agentToAgent.maxChainCost", ofChain, chain],
    ["tokens", daily?.dailyTokens, "its budget.dailyTokens", ofDay, agent],
    ["cost", daily?.dailyCost, "its budget.dailyCost", ofDay, agent],
  ] as const;
  return settings.flatMap(([unitOf, limit, setting, told, use]) => {
    if (limit === undefined) return [];
    const state = { unit: unitOf, limit, setting, used: use.used[unitOf], reserved: use.reserved[unitOf] };
    return [{ ...state, ...told }];
  });
}

/** Returns whether the chain or the agent of a run has a budget. */
export function hasBudget({ agentId, input }: Pick<Run, "agentId" | "input">, limits: AcceptLimits): boolean {
  return hasChainBudget(limits, input) || dailyBudgetOf(limits, agentId) !== undefined;
}

/** Returns how many tokens the chain and the agent of a run may still use. Undefined if there is no limit. */
export async function tokensLeft(unit: Unit, run: Run, limits: AcceptLimits): Promise<number | undefined> {
  const budgets = (await budgetsOf(unit, run, limits)).filter((one) => one.unit === "tokens");
  if (budgets.length === 0) return undefined;
  return Math.max(0, Math.min(...budgets.map(({ limit, used, reserved }) => limit - used - reserved)));
}

/** Creates the budget of a run, or returns undefined if it has none. `elsewhere`: see `LaneHandle`. */
export function createSpending(
  run: Run,
  fence: Fence,
  { commit, world, limits }: EngineCore,
  elsewhere: LaneHandle["elsewhere"],
  signal: AbortSignal,
): ModelBudget | undefined {
  if (!hasBudget(run, limits)) return undefined;
  const look = (call: CallSize, spent: Amount): Promise<CallVerdict | "lost"> =>
    untilStored(world, signal, () =>
      commit(async (unit) => {
        if (!(await isHeld(unit.tx, fence))) return "lost";
        const others = await budgetsOf(unit, run, limits);
        const budgets = others.map((one) => ({ ...one, used: one.used + spent[one.unit] }));
        const verdict = judgeCall(call, budgets);
        await noteSpending(unit.tx, run.runId, spent, verdict.kind === "fits" ? verdict.reserved : undefined);
        return verdict;
      }),
    );
  return {
    async reserve(call, spent) {
      for (;;) {
        const verdict = await look(call, spent);
        if (verdict === "lost" || signal.aborted) {
          throw new LostLane(`run ${run.runId} no longer holds its lane`);
        }
        if (verdict.kind !== "wait") return verdict;
        // A call that waits for others must not keep them from a slot.
        await elsewhere(() => pause(world.clock, LOOK_AGAIN_MS, signal));
      }
    },
    async settle(spent) {
      await untilStored(world, signal, () =>
        commit(async (unit) => {
          if (await isHeld(unit.tx, fence)) await noteSpending(unit.tx, run.runId, spent);
        }),
      );
    },
  };
}
