// Words about the work and the budget of an agent. Pure.

import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { money, tokens } from "../parts/format.ts";

export function workWords({ work }: AgentDetails): { state: string; text: string } {
  const { running = 0, waiting = 0, queued = 0 } = work ?? {};
  const words = [
    running > 0 ? `${running} running` : "",
    waiting > 0 ? `${waiting} waiting` : "",
    queued > 0 ? `${queued} queued` : "",
  ].filter((one) => one !== "");
  const state = running > 0 ? "running" : waiting > 0 ? "waiting" : queued > 0 ? "queued" : "idle";
  return { state, text: words.join(", ") || "idle" };
}

/** Returns today's usage and limits of the agent, like `12.3k of 100k tokens`. */
export function budgetWords({ budget = {}, today }: AgentDetails): string[] {
  const { dailyTokens, dailyCost } = budget;
  const describeUse = (spent: string | undefined, limit: string): string =>
    spent === undefined ? `at most ${limit} a day` : `${spent} of ${limit} today`;
  return [
    dailyCost === undefined
      ? today && `${money(today.cost)} today`
      : describeUse(today && money(today.cost), money(dailyCost)),
    dailyTokens === undefined
      ? today && `${tokens(today.totalTokens)} tokens`
      : describeUse(today && tokens(today.totalTokens), `${tokens(dailyTokens)} tokens`),
  ].filter((one) => one !== undefined);
}

export function isSpent({ budget, today }: AgentDetails): boolean {
  if (budget === undefined || today === undefined) return false;
  const { dailyTokens = Number.POSITIVE_INFINITY, dailyCost = Number.POSITIVE_INFINITY } = budget;
  return today.totalTokens >= dailyTokens || today.cost >= dailyCost;
}
