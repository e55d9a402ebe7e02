// The reader's choices in the usage tab (period, grouping, agent, order). They are stored in the page's
// address.

import { USAGE_GROUPS, type UsageGroup, type UsageOrder } from "../../../../src/core/shapes/usage.ts";
import { DAY_MS } from "../../parts/format.ts";
import type { Option } from "../../parts/select.tsx";

export const PERIODS = [
  ["1", "Today"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["month", "This month"],
] as const;
export type Period = (typeof PERIODS)[number][0];

export const GROUP_WORDS: readonly Option<UsageGroup>[] = [
  ["agent", "agent"],
  ["model", "model"],
  ["chain", "chain"],
  ["tree", "session with its sub-agents"],
  ["session", "session"],
  ["day", "day"],
];

export interface Choice {
  readonly period: Period;
  readonly by: UsageGroup;
  readonly order: UsageOrder;
  readonly agentId: string | undefined;
}

const BETWEEN = "~";

export function choiceIn(about: string | undefined): Choice {
  const [wanted, by, order, agentId] = (about ?? "").split(BETWEEN);
  return {
    period: PERIODS.find(([period]) => period === wanted)?.[0] ?? "7",
    by: USAGE_GROUPS.find((one) => one === by) ?? "agent",
    order: order === "tokens" ? "tokens" : "cost",
    agentId: agentId || undefined,
  };
}

export function addressOf({ period, by, order, agentId = "" }: Choice): string {
  return [period, by, order, agentId].join(BETWEEN);
}

/** Returns the number of days of a period, in UTC, including today. */
export function daysOf(period: Period, nowMs: number): number {
  return period === "month" ? new Date(nowMs).getUTCDate() : Number(period);
}

/** Returns all days from `since` until today, each like `2027-03-01`. */
export function daysFrom(since: number, nowMs: number): string[] {
  const count = Math.max(1, Math.floor((nowMs - since) / DAY_MS) + 1);
  return Array.from({ length: count }, (_, at) => new Date(since + at * DAY_MS).toISOString().slice(0, 10));
}
