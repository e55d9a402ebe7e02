// The usage tab: tokens and cost of a period by day, and by agent, model, chain or session; budgets; export.

import { Agent } from "../../agents/agent-name.tsx";
import { Button } from "../../parts/button.tsx";
import "./usage.css";
import { useState } from "preact/hooks";
import { optional } from "../../../../src/core/optional.ts";
import { totalUsage, type UsageTotal } from "../../../../src/core/shapes/usage.ts";
import { now } from "../../clock.ts";
import { download } from "../../conversation/text/download.ts";
import { ask } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { counted, tokens } from "../../parts/format.ts";
import { complain, say } from "../../parts/notices.tsx";
import { Select } from "../../parts/select.tsx";
import { Cost } from "../../parts/time.tsx";
import { go } from "../../route.ts";
import { usePolled } from "../polling.ts";
import { More } from "../resource-list.tsx";
import { Tile } from "../status.tsx";
import { Budgets } from "./budgets.tsx";
import { addressOf, type Choice, choiceIn, daysFrom, daysOf, GROUP_WORDS, PERIODS } from "./choice.ts";
import { Days } from "./days.tsx";
import { csvOf } from "./export.ts";
import { UsageTable } from "./table.tsx";

const EVERY_MS = 15_000;
const LINES = 100;
const MORE_LINES = 400;
/** Maximum number of lines in one answer, a limit of the gateway. */
const LINES_MAX = 5_000;
/** Maximum number of days in a report. No period has more days. */
const DAYS_MAX = 40;

function paramsOf({ period, agentId }: Choice) {
  return { days: daysOf(period, now()), ...optional({ agentId }) };
}

function Exports({ choice }: { choice: Choice }) {
  const [busy, setBusy] = useState(false);
  const save = async (kind: "csv" | "json"): Promise<void> => {
    if (busy) return;
    setBusy(true);
    try {
      const { by, order } = choice;
      const report = await ask("usage", { by, order, limit: LINES_MAX, ...paramsOf(choice) });
      const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
      const name = `parley-usage-${by}-${day(report.since)}-${day(now())}.${kind}`;
      if (kind === "csv") download(name, csvOf(report), "text/csv");
      else download(name, `${JSON.stringify(report, undefined, 2)}\n`, "application/json");
      const count = counted(report.lines.length, "line");
      say(report.truncated ? `The file contains only the first ${count}.` : `Exported ${count}.`);
    } catch (problem) {
      complain(problem);
    }
    setBusy(false);
  };
  return (
    <span class="row usage-export">
      {(["csv", "json"] as const).map((kind) => (
        <Button
          text={`Export ${kind.toUpperCase()}`}
          key={kind}
          aria-disabled={busy}
          onClick={() => void save(kind)}
        />
      ))}
    </span>
  );
}

function Choices({ choice, onChoose }: { choice: Choice; onChoose: (next: Partial<Choice>) => void }) {
  return (
    <div class="bar out-filters">
      <fieldset class="joined">
        <legend class="visually-hidden">Period</legend>
        {PERIODS.map(([period, words]) => (
          <Button
            text={words}
            key={period}
            aria-pressed={choice.period === period}
            onClick={() => onChoose({ period })}
          />
        ))}
      </fieldset>
      <label class="out-field">
        <span>Group by</span>
        <Select value={choice.by} options={GROUP_WORDS} onPick={(by) => onChoose({ by })} />
      </label>
      {choice.agentId !== undefined && (
        <button type="button" onClick={() => onChoose({ agentId: undefined })}>
          Only <Agent id={choice.agentId} /> <span aria-hidden="true">×</span>
          <span class="visually-hidden">: show all agents</span>
        </button>
      )}
      <Exports choice={choice} />
    </div>
  );
}

function Totals({ total }: { total: UsageTotal }) {
  const cached = total.cacheRead + total.cacheWrite;
  return (
    <dl class="tiles">
      <Tile title="Cost">
        <p class="usage-figure">
          <Cost usd={total.cost} />
        </p>
        {total.cost === 0 && total.totalTokens > 0 && (
          <p class="soft small">These models have no prices in the configuration.</p>
        )}
      </Tile>
      <Tile title="Tokens">
        <p class="usage-figure">{tokens(total.totalTokens)}</p>
        <p class="soft small">
          {tokens(total.input)} input, {tokens(cached)} cached, {tokens(total.output)} output
        </p>
      </Tile>
      <Tile title="Runs">
        <p class="usage-figure">{total.runs.toLocaleString()}</p>
      </Tile>
    </dl>
  );
}

export function UsageTab({ about }: { about: string | undefined }) {
  const choice = choiceIn(about);
  const { by, order } = choice;
  const [limit, setLimit] = useState(LINES);
  const filter = `${choice.period} ${choice.agentId ?? ""}`;
  const days = usePolled(filter, EVERY_MS, () =>
    ask("usage", { by: "day", limit: DAYS_MAX, ...paramsOf(choice) }),
  );
  const lines = usePolled(`${filter} ${by} ${order} ${limit}`, EVERY_MS, () =>
    ask("usage", { by, order, limit, ...paramsOf(choice) }),
  );
  const onChoose = (next: Partial<Choice>): void => {
    setLimit(LINES);
    go({ view: "operations", tab: "usage", about: addressOf({ ...choice, ...next }) }, true);
  };
  const total = days.value === undefined ? undefined : totalUsage(days.value.lines);
  const report = lines.value;
  const isEmpty = total?.runs === 0;
  return (
    <div class="stack usage">
      <h2>Usage</h2>
      <p class="soft">Tokens and cost of ended runs, also of deleted sessions. Days are in UTC.</p>
      {days.value?.partial === true && (
        <p class="note tone-warn">
          Your token covers only some sessions. Usage of others is not counted, and budgets are not shown.
        </p>
      )}
      <Choices choice={choice} onChoose={onChoose} />
      <Awaited value={days.value ?? report} problem={days.problem ?? lines.problem} again={days.again} />
      {days.value !== undefined && total !== undefined && (
        <div class={days.isOld ? "usage-old" : ""} aria-busy={days.isOld}>
          {isEmpty ? (
            <div class="empty">
              <p>
                <strong>No usage {choice.agentId === undefined ? "" : "of this agent "}in this period</strong>
              </p>
              <p>
                When an agent has answered, the tokens and the cost of its model calls are counted here. Send
                a message to an agent, or choose a longer period. Costs are in USD, by the prices in the
                configuration.
              </p>
            </div>
          ) : (
            <>
              <Totals total={total} />
              <div class="usage-top">
                <Days
                  days={daysFrom(days.value.since, now())}
                  lines={days.value.lines}
                  measure={order === "cost" && total.cost > 0 ? "cost" : "tokens"}
                />
                {days.value.partial !== true && <Budgets report={days.value} />}
              </div>
            </>
          )}
        </div>
      )}
      {report !== undefined && total !== undefined && !isEmpty && (
        <div class={lines.isOld ? "usage-old" : ""} aria-busy={lines.isOld}>
          <UsageTable
            report={report}
            total={total}
            choice={choice}
            onOrder={(next) => onChoose({ order: next })}
          />
          {report.truncated && limit < LINES_MAX && (
            <More onClick={() => setLimit(Math.min(limit + MORE_LINES, LINES_MAX))} />
          )}
        </div>
      )}
    </div>
  );
}
