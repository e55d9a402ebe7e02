// Shows the metrics of the last hour in the status tab.

import "./metrics.css";
import { useEffect, useState } from "preact/hooks";
import { ask, whenConnected } from "../../gateway.ts";
import { extremes } from "../../operations/plot-shape.ts";
import { usePolling } from "../../operations/polling.ts";
import { Table } from "../../operations/table.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { type History, inUnit, joined, plotsOf, spanOf } from "./figures.ts";
import { Lines } from "./plot.tsx";

const EVERY_MS = 10_000;

/** Returns the figures. Reads the whole last hour after each connect, and then only newer values. */
function useHistory() {
  const [history, setHistory] = useState<History>();
  const [problem, setProblem] = useState<unknown>();
  const read = async (since: number): Promise<void> => {
    try {
      const news = await ask("metrics.history", since === 0 ? {} : { since });
      setHistory((before) => (since === 0 ? news : joined(before, news)));
      setProblem(undefined);
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => whenConnected(() => void read(0)), []);
  usePolling(history?.stepMs ?? EVERY_MS, () => read(history?.times.at(-1) ?? 0));
  return { history, problem, again: () => void read(0) };
}

export function Figures() {
  const { history, problem, again } = useHistory();
  if (history === undefined) return <Awaited problem={problem} again={again} />;
  const plots = plotsOf(history);
  const span = spanOf(history.times);
  return (
    <>
      <h2 class="head-bar">This process, at most an hour</h2>
      {history.times.length === 0 && <p class="soft">The first values appear in a few seconds.</p>}
      <div class="plots">
        {plots.map((plotted) => (
          <Lines
            key={plotted.title}
            plotted={plotted}
            times={history.times}
            stepMs={history.stepMs}
            span={span}
          />
        ))}
      </div>
      <details>
        <summary class="soft">Show as table</summary>
        <Table
          label="Figures"
          rows={history.series.map((one) => ({ ...one, range: extremes([one.values]) }))}
          rowKey={({ name }) => name}
          columns={[
            { title: "Figure", isName: true, cell: ({ title }) => title },
            { title: "Now", class: "number", cell: ({ values, unit }) => inUnit(values.at(-1), unit) },
            { title: "Lowest", class: "number", cell: ({ range, unit }) => inUnit(range?.least, unit) },
            { title: "Highest", class: "number", cell: ({ range, unit }) => inUnit(range?.most, unit) },
            { title: "Description", class: "soft", cell: ({ help }) => help },
          ]}
        />
      </details>
    </>
  );
}
