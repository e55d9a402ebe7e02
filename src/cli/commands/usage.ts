// Implements `parley usage`: shows tokens and cost, and the used part of each daily budget.

import type { UsageReport } from "../../contract/methods/operations.ts";
import { optional } from "../../core/optional.ts";
import { totalUsage, type UsageGroup, type UsageTotal } from "../../core/shapes/usage.ts";
import { quoted } from "../../core/text/cut.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { type Cli, EXIT } from "../cli.ts";
import { type Link, withLink } from "../gateway-link.ts";
import { table } from "../layout.ts";

interface UsageOptions {
  readonly by: UsageGroup;
  readonly days: number;
  readonly agent?: string;
  readonly limit: number;
}

const number = (value: number): string => Math.round(value).toLocaleString("en-US");
/** Four decimals, because a single run may cost less than a cent. */
const usd = (value: number): string => value.toFixed(4);

function rowOf(name: string, sum: UsageTotal): string[] {
  const cached = sum.cacheRead + sum.cacheWrite;
  return [name, ...[sum.runs, sum.input, cached, sum.output, sum.totalTokens].map(number), usd(sum.cost)];
}

function budgetLine({ agentId, dailyTokens, dailyCost, ...today }: UsageReport["budgets"][number]): string {
  const parts = [
    dailyTokens === undefined ? "" : `${number(today.tokensToday)} of ${number(dailyTokens)} tokens`,
    dailyCost === undefined ? "" : `${usd(today.costToday)} of ${usd(dailyCost)} USD`,
  ].filter((part) => part !== "");
  return `${agentId} today: ${parts.join(", ")}`;
}

/**
 * Explains an empty list: the agent does not exist, or nothing was used. A removed agent may still have
 * usage.
 */
async function nothing(link: Link, { agent, days }: UsageOptions): Promise<string> {
  const answer = agent === undefined ? undefined : await link.request("agents.list", {});
  const ids = answer?.ok === true ? answer.value.agents.map(({ id }) => id) : undefined;
  if (agent === undefined || ids === undefined || ids.includes(agent.trim().toLowerCase()))
    return `(no usage in ${days} days)`;
  const named = quoted(agent, 64);
  const there = ids.join(", ");
  return `(no usage in ${days} days: no agent ${named} is configured; agents: ${there})`;
}

export async function showUsage(cli: Cli, _args: readonly string[], options: UsageOptions): Promise<number> {
  const { by, days, agent, limit } = options;
  return withLink(cli, async (link) => {
    const answer = await link.request("usage", { by, days, limit, ...optional({ agentId: agent }) });
    if (!answer.ok) return cli.fail(answer);
    const { lines, truncated, budgets } = answer.value;
    if (lines.length === 0) cli.line(cli.style("dim", safeLine(await nothing(link, options))));
    else {
      const rows = [
        ...lines.map((line) => rowOf(line.name, line)),
        rowOf(truncated ? "shown" : "all", totalUsage(lines)),
      ];
      const names = [by.toUpperCase(), "RUNS", "INPUT", "CACHED", "OUTPUT", "TOKENS", "USD"];
      for (const line of table(names, rows)) cli.line(line);
    }
    if (truncated) cli.note(`There are more than ${limit} lines. Show more with --limit.`);
    for (const budget of budgets) cli.line(safeLine(budgetLine(budget)));
    cli.document(answer.value);
    return EXIT.done;
  });
}
