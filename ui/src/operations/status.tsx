// The status tab of the gateway: state, load, processes of a cluster, and metrics.

import "./status.css";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import { tick } from "../clock.ts";
import { ask, coversAll, has, whenConnected } from "../gateway.ts";
import { Awaited } from "../parts/failure.tsx";
import { age, clockTime, counted, duration } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { type History, inUnit, joined, plotsOf, spanOf } from "./figures.ts";
import { Plot } from "./plot.tsx";
import { extremes } from "./plot-shape.ts";
import { usePolling } from "./polling.ts";

type Status = PayloadOf<"status">;

const EVERY_MS = 10_000;

export function StatusTab() {
  const status = useReading("status", () => ask("status"));
  usePolling(EVERY_MS, status.again);
  useNews("health", status.again);
  if (status.value === undefined) return <Awaited {...status} />;
  return (
    <div class="status">
      <h2>Gateway</h2>
      <Facts status={status.value} />
      <Processes status={status.value} />
      {coversAll() && has("metrics.history") && <Figures />}
    </div>
  );
}

function Facts({ status }: { status: Status }) {
  const { ok, accepting, version, uptimeMs, store, lanes, deliveries, connections, agents, models } = status;
  const word = ok ? "ready" : accepting ? "not ready" : "draining";
  return (
    <dl class="tiles">
      <Tile title="State">
        <State state={ok ? "ok" : "error"} text={word} />
      </Tile>
      <Tile title="Version">
        <Name text={version} />, up {duration(uptimeMs)}
      </Tile>
      <Tile title="Store">
        <State state={store.ok ? "ok" : "error"} text={store.reason ?? store.kind} />
      </Tile>
      <Tile title="Configured">
        {counted(agents, "agent")}, {counted(models, "model")}
      </Tile>
      {connections !== undefined && <Tile title="Connections">{counted(connections, "client")}</Tile>}
      {lanes !== undefined && (
        <>
          <Tile title="Slots taken">
            <meter min={0} max={lanes.slots.max} value={lanes.slots.taken} aria-label="Slots taken" />{" "}
            {lanes.slots.taken} of {lanes.slots.max}
          </Tile>
          <Tile title="Runs">
            {lanes.running} running, {lanes.waiting} waiting, {lanes.queued} queued
          </Tile>
        </>
      )}
      {deliveries !== undefined && (
        <Tile title="Deliveries">
          {deliveries.pending} waiting,{" "}
          <span class={deliveries.failed > 0 ? "tone-bad toned" : ""}>{deliveries.failed} failed</span>
        </Tile>
      )}
    </dl>
  );
}

function Tile({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="tile card">
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Lists the gateway processes that share the store. */
function Processes({ status: { processes, processId } }: { status: Status }) {
  if (processes === undefined) return null;
  const running = new Set(processes.filter((one) => one.alive).map((one) => one.configRevision));
  return (
    <>
      <h2>Processes</h2>
      {running.size > 1 && (
        <p>
          <State state="error" text="The processes run different settings." /> Give each the same
          configuration file.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard */}
      <section class="scroll-x card" aria-label="Processes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Process</th>
              <th>Host</th>
              <th>Version</th>
              <th>Settings</th>
              <th>Started</th>
              <th>Last heartbeat</th>
            </tr>
          </thead>
          <tbody>
            {processes.map((one) => (
              <tr key={one.processId}>
                <td>
                  <State state={one.alive ? "ok" : "error"} text={one.alive ? "alive" : "gone"} />{" "}
                  <span class="mono">{one.processId.slice(0, 8)}</span>
                  {one.processId === processId && <span class="soft"> (this one)</span>}
                </td>
                <td>
                  <Name text={one.host} />
                </td>
                <td>
                  <Name text={one.version} />
                </td>
                <td class="mono">{one.configRevision ?? "unknown"}</td>
                <td>{clockTime(one.startedAt, true)}</td>
                <td>{age(one.beatAt, tick.value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

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

function Figures() {
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
