// Creates the usage report: tokens and cost by group, and how much of each budget is used.
// UR1: a token that covers only some sessions gets the usage of these sessions. It gets no budgets, because
//      other sessions use them, too (I9).

import { createGate, seesEverything } from "../../access/token.ts";
import type { UsageReport } from "../../contract/methods/operations.ts";
import type { ParamsOf } from "../../contract/methods.ts";
import { optional } from "../../core/optional.ts";
import type { UsageGroup, UsageLine } from "../../core/shapes/usage.ts";
import { labelsOf, openingsOf, rootsOfChains } from "../../store/queries/chains/chain-lists.ts";
import { budgetStops, dayStart, usageBy, usageOfDay } from "../../store/queries/runs/ledger.ts";
import { LINE_MAX_CHARS } from "../attention/items.ts";
import type { CallContext } from "../call.ts";

const DAY_MS = 86_400_000;
const DAYS = { byDefault: 30, max: 3_660 } as const;
const LINES = { byDefault: 100, max: 5_000 } as const;

/** Adds labels, and the first session and message of chains. Names only sessions that the token covers. */
async function nameLines(ctx: CallContext, by: UsageGroup, lines: UsageLine[]): Promise<UsageLine[]> {
  const { db } = ctx.access;
  const sees = createGate(ctx.deps.settings, ctx.caller, "read");
  const line = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : ctx.deps.world.redactor.line(text, LINE_MAX_CHARS);
  const names = lines.map(({ name }) => name);
  if (by === "session" || by === "tree") {
    const labels = await labelsOf(db, names);
    return lines.map((one) => ({ ...one, ...optional({ label: line(labels.get(one.name)) }) }));
  }
  if (by !== "chain") return lines;
  const roots = await rootsOfChains(db, names);
  const labels = await labelsOf(db, [...new Set(roots.values())]);
  const openings = new Map((await openingsOf(db, names)).map((one) => [one.chainId, one]));
  return lines.map((one) => {
    const root = roots.get(one.name);
    const sessionKey = root !== undefined && sees(root) ? root : undefined;
    const opening = openings.get(one.name);
    const isShown =
      opening !== undefined && [opening.sessionKey, opening.from ?? opening.sessionKey].every(sees);
    return {
      ...one,
      ...optional({ sessionKey, opening: line(isShown ? opening.text : undefined) }),
      ...optional({ label: line(sessionKey === undefined ? undefined : labels.get(sessionKey)) }),
    };
  });
}

async function budgetsOf(ctx: CallContext): Promise<Pick<UsageReport, "budgets" | "chainBudget">> {
  const { db } = ctx.access;
  const today = dayStart(ctx.deps.engine.now());
  const { agents, session } = ctx.deps.settings;
  const { maxChainTokens: tokensMax, maxChainCost: costMax } = session.agentToAgent;
  const hasChainBudget = (tokensMax ?? costMax) !== undefined;
  if (!hasChainBudget && agents.every(({ budget }) => budget === undefined)) return { budgets: [] };
  const stops = await budgetStops(db, today);
  const stopped = (code: string, agentId?: string): number =>
    stops
      .filter((stop) => stop.code === code && (agentId ?? stop.agentId) === stop.agentId)
      .reduce((sum, { runs }) => sum + runs, 0);
  const budgets = [];
  for (const { id, budget } of agents) {
    if (budget === undefined) continue;
    const used = await usageOfDay(db, id, today);
    const sums = { tokensToday: used.totalTokens, costToday: used.cost };
    budgets.push({ agentId: id, ...budget, ...sums, stoppedToday: stopped("budget_used", id) });
  }
  if (!hasChainBudget) return { budgets };
  const chainBudget = { stoppedToday: stopped("chain_limit"), ...optional({ tokensMax, costMax }) };
  return { budgets, chainBudget };
}

export async function usageReport(ctx: CallContext, params: ParamsOf<"usage">): Promise<UsageReport> {
  const { by = "agent", days = DAYS.byDefault, order = "cost" } = params;
  const agentId = params.agentId?.trim().toLowerCase();
  const limit = Math.min(params.limit ?? LINES.byDefault, LINES.max);
  const { patterns } = ctx.caller;
  const since = dayStart(ctx.deps.engine.now()) - (Math.min(days, DAYS.max) - 1) * DAY_MS;
  const wanted = { by, since, agentId, patterns, order, limit: limit + 1 };
  const found = await usageBy(ctx.deps.engine.store.readWorker ?? ctx.access.db, wanted);
  const lines = await nameLines(ctx, by, found.slice(0, limit));
  const report = { by, since, lines, truncated: found.length > limit };
  if (!seesEverything(ctx.caller)) return { ...report, budgets: [], partial: true };
  return { ...report, ...(await budgetsOf(ctx)) };
}
