// Shows the metrics of the last hour in the status tab.

import "./metrics.css";
import { useEffect, useState } from "preact/hooks";
import { ask, whenConnected } from "../../gateway.ts";
import { extremes } from "../../operations/plot-shape.ts";
import { usePolling } from "../../operations/polling.ts";
import { Awaited } from "../../parts/failure.tsx";
import { type History, inUnit, joined, plotsOf, spanOf } from "./figures.ts";
import { Plot } from "./plot.tsx";

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
      <h2>This process, at most an hour</h2>
      {history.times.length === 0 && <p class="soft">The first values appear in a few seconds.</p>}
      <div class="plots">
        {plots.map((plotted) => (
          <Plot
            key={plotted.title}
            plotted={plotted}
            times={history.times}
            stepMs={history.stepMs}
            span={span}
          />
        ))}
      </div>
      <details class="figures-table">
        <summary>Show as table</summary>
        <FiguresTable history={history} />
      </details>
    </>
  );
}

function FiguresTable({ history }: { history: History }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard
    <section class="scroll-x card" aria-label="Figures" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Figure</th>
            <th class="number">Now</th>
            <th class="number">Lowest</th>
            <th class="number">Highest</th>
            <th>Description</th>
          </tr>
        </thead>
        <tbody>
          {history.series.map(({ name, title, unit, help, values }) => {
            const found = extremes([values]);
            return (
              <tr key={name}>
                <th scope="row">{title}</th>
                <td class="number">{inUnit(values.at(-1), unit)}</td>
                <td class="number">{inUnit(found?.least, unit)}</td>
                <td class="number">{inUnit(found?.most, unit)}</td>
                <td class="soft">{help}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
