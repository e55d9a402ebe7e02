// The table of usage: one row for each agent, model, chain, session or day, with links to them.

import type { UsageReport } from "../../../../src/contract/methods/operations.ts";
import type { UsageGroup, UsageLine, UsageTotal } from "../../../../src/core/shapes/usage.ts";
import { tick } from "../../clock.ts";
import { ago, exactMoney, money, tokens } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { nameOf } from "../../parts/names.ts";
import { Time } from "../../parts/time.tsx";
import { hrefOf } from "../../route.ts";
import { shortKey } from "../../sessions/own-name.ts";
import { type Sort, SortHeading } from "../sort-button.tsx";
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

export function ChainName({ line: { name, label, sessionKey, opening } }: { line: UsageLine }) {
  if (name === "") return <span class="soft">Runs that are no longer stored</span>;
  return (
    <>
      <a class="usage-chain" href={hrefOf({ view: "flow", chainId: name })}>
        <Name text={opening || `chain ${name.slice(0, 8)}`} title={name} />
      </a>
      {sessionKey !== undefined && (
        <span class="usage-of">
          <SessionLink sessionKey={sessionKey} name={label || nameOf(sessionKey)} />
        </span>
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
            <span class="usage-of soft">
              <Name text={shortKey(name)} />
            </span>
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
          <Name text={name} title="Show the agent's sessions" />
        </a>
      );
    case "day":
      return <span>{dayWords(name)}</span>;
    case "model":
      return <Name text={name} />;
  }
}

function Figures({ sums }: { sums: UsageTotal }) {
  return (
    <>
      <td class="number wide">{sums.runs.toLocaleString()}</td>
      <td class="number wide">{tokens(sums.input)}</td>
      <td class="number wide">{tokens(sums.cacheRead + sums.cacheWrite)}</td>
      <td class="number wide">{tokens(sums.output)}</td>
      <td class="number" title={`${sums.totalTokens.toLocaleString()} tokens`}>
        {tokens(sums.totalTokens)}
      </td>
      <td class="number" title={exactMoney(sums.cost)}>
        {money(sums.cost)}
      </td>
    </>
  );
}

function Head(props: { by: UsageGroup; order: Choice["order"]; onOrder: (order: Choice["order"]) => void }) {
  const { by, order, onOrder } = props;
  const sort: Sort<Choice["order"]> = { column: order, descending: true };
  const heading = {
    sort,
    onSort: (next: typeof sort) => onOrder(next.column),
    descending: true,
    fixed: true,
  };
  return (
    <thead>
      <tr>
        <th scope="col">{HEADS[by]}</th>
        <th scope="col" class="number wide">
          Runs
        </th>
        <th scope="col" class="number wide">
          Input
        </th>
        <th scope="col" class="number wide" title="Tokens read from or written to the provider's cache">
          Cached
        </th>
        <th scope="col" class="number wide">
          Output
        </th>
        <SortHeading {...heading} column="tokens" class="number">
          Tokens
        </SortHeading>
        <SortHeading {...heading} column="cost" class="number">
          Cost
        </SortHeading>
        <th scope="col" class="wide">
          Last used
        </th>
      </tr>
    </thead>
  );
}

export function UsageTable(props: {
  report: UsageReport;
  total: UsageTotal;
  choice: Choice;
  onOrder: (order: Choice["order"]) => void;
}) {
  const { report, total, choice, onOrder } = props;
  const { by } = report;
  const key = choice.order === "cost" ? "cost" : "totalTokens";
  // Sort only days here, because the gateway always returns days newest first.
  const lines = by === "day" ? [...report.lines].sort((a, b) => b[key] - a[key]) : report.lines;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
    <section class="scroll-x card" aria-label="Usage" tabIndex={0}>
      <table class="usage-table">
        <Head by={by} order={choice.order} onOrder={onOrder} />
        <tbody>
          {lines.map((line) => (
            <tr key={line.name}>
              <th scope="row">
                <LineName by={by} line={line} choice={choice} />
              </th>
              <Figures sums={line} />
              <td class="wide soft">
                <Time at={line.lastAt}>{ago(line.lastAt, tick.value)}</Time>
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">All</th>
            <Figures sums={total} />
            <td class="wide" />
          </tr>
        </tfoot>
      </table>
    </section>
  );
}
