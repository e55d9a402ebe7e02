// The table of usage: one row for each agent, model, chain, session or day, with links to them.

import type { UsageReport } from "../../../../src/contract/methods/operations.ts";
import type { UsageGroup, UsageLine, UsageTotal } from "../../../../src/core/shapes/usage.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { exactMoney, money, tokens } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { nameOf } from "../../parts/names.ts";
import { Time } from "../../parts/time.tsx";
import { hrefOf } from "../../route.ts";
import { shortKey } from "../../sessions/own-name.ts";
import { type Column, Table } from "../table.tsx";
import { addressOf, type Choice } from "./choice.ts";
import { dayWords } from "./days.tsx";

const HEADS: Readonly<Record<UsageGroup, string>> = {
  agent: "Agent",
  model: "Model",
  chain: "Chain",
  tree: "Session with its sub-agents",
  session: "Session",
  day: "Day (UTC)",
};

function ChainName({ line: { name, label, sessionKey, opening } }: { line: UsageLine }) {
  if (name === "") return <span class="soft">Runs that are no longer stored</span>;
  return (
    <>
      <a class="clamp" href={hrefOf({ view: "flow", chainId: name })}>
        <Name text={opening || `chain ${name.slice(0, 8)}`} title={name} />
      </a>
      {sessionKey !== undefined && (
        <div class="small">
          <SessionLink sessionKey={sessionKey} name={label || nameOf(sessionKey)} />
        </div>
      )}
    </>
  );
}

function LineName({ by, line, choice }: { by: UsageGroup; line: UsageLine; choice: Choice }) {
  const { name, label } = line;
  switch (by) {
    case "chain":
      return <ChainName line={line} />;
    case "tree":
    case "session":
      return (
        <>
          <SessionLink sessionKey={name} name={label || nameOf(name)} />
          {label !== undefined && label !== shortKey(name) && (
            <Name as="div" class="small soft" text={shortKey(name)} />
          )}
        </>
      );
    case "agent":
      return (
        <a
          href={hrefOf({
            ...{ view: "operations", tab: "usage" },
            about: addressOf({ ...choice, by: "session", agentId: name }),
          })}
        >
          <Agent id={name} title="Show the agent's sessions" />
        </a>
      );
    case "day":
      return <span>{dayWords(name)}</span>;
    case "model":
      return <Name text={name} />;
  }
}

type Order = Choice["order"];

/** A column of figures, with the sum of all rows in its last row. `full`: the figure in full. */
function figures(
  total: UsageTotal,
  write: (sums: UsageTotal) => string,
  more: Partial<Column<UsageLine, Order>>,
  full?: (sums: UsageTotal) => string,
): Column<UsageLine, Order> {
  const cell = (sums: UsageTotal) => <span title={full?.(sums)}>{write(sums)}</span>;
  return { title: "", class: "number wide", cell, foot: cell(total), ...more };
}

export function UsageTable(props: {
  report: UsageReport;
  total: UsageTotal;
  choice: Choice;
  onOrder: (order: Order) => void;
}) {
  const { report, total, choice, onOrder } = props;
  const { by } = report;
  const key = choice.order === "cost" ? "cost" : "totalTokens";
  // Sort only days here, because the gateway always returns days newest first.
  const lines = by === "day" ? [...report.lines].sort((a, b) => b[key] - a[key]) : report.lines;
  return (
    <Table
      label="Usage"
      class="usage-table"
      rows={lines}
      rowKey={({ name }) => name}
      sort={{ column: choice.order, descending: true }}
      onSort={({ column }) => onOrder(column)}
      columns={[
        {
          title: HEADS[by],
          isName: true,
          cell: (line) => <LineName by={by} line={line} choice={choice} />,
          foot: "All",
        },
        figures(total, ({ runs }) => runs.toLocaleString(), { title: "Runs" }),
        figures(total, ({ input }) => tokens(input), { title: "Input" }),
        figures(total, ({ cacheRead, cacheWrite }) => tokens(cacheRead + cacheWrite), {
          ...{ title: "Cached", about: "Tokens read from or written to the provider's cache" },
        }),
        figures(total, ({ output }) => tokens(output), { title: "Output" }),
        figures(
          total,
          ({ totalTokens }) => tokens(totalTokens),
          { title: "Tokens", class: "number", sort: "tokens" },
          ({ totalTokens }) => `${totalTokens.toLocaleString()} tokens`,
        ),
        figures(
          total,
          ({ cost }) => money(cost),
          { title: "Cost", class: "number", sort: "cost" },
          ({ cost }) => exactMoney(cost),
        ),
        {
          title: "Last used",
          class: "wide soft",
          cell: ({ lastAt }) => <Time at={lastAt} as="ago" />,
        },
      ]}
    />
  );
}
