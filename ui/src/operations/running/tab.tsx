// The runs tab: all unfinished runs, which the reader can sort, select and stop.
// RT1: the list stays visible while it is read again, and a row keeps its place and its selection.

import { Button } from "../../parts/button.tsx";
import "./running.css";
import { useState } from "preact/hooks";
import type { ActiveRun } from "../../../../src/contract/methods/attention.ts";
import { ask } from "../../gateway.ts";
import { Awaited } from "../../parts/failure.tsx";
import { counted } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { useNews } from "../../parts/reading.ts";
import { usePolled } from "../polling.ts";
import { ActionButton, More, type RowAction, useOpened } from "../resource-list.tsx";
import type { Sort } from "../table.tsx";
import { useSelection } from "./selection.ts";
import { stopRuns } from "./stop.ts";
import { nameOfRun, type Order, RunsTable, STATES, sorted } from "./table.tsx";

/** Interval at which the runs are read. Events announce each change of a run's state, but not its tokens. */
const EVERY_MS = 10_000;
const RUNS = 200;
/** Maximum number of runs in one answer, a limit of the gateway. */
const RUNS_MAX = 1_000;

/** Asks before several runs are stopped. */
function askToStop(runs: readonly ActiveRun[]): RowAction["question"] {
  if (runs.length < 2) return undefined;
  const text = (
    <>
      <p>Their agents stop now, and so do the jobs of these runs. This cannot be undone.</p>
      <ul class="bullets">
        {runs.slice(0, 5).map((run) => (
          <Name as="li" key={run.runId} text={nameOfRun(run)} />
        ))}
        {runs.length > 5 && <li>and {runs.length - 5} more</li>}
      </ul>
    </>
  );
  return { title: `Stop ${counted(runs.length, "run")}?`, text };
}

export function RunsTab() {
  const [limit, setLimit] = useState(RUNS);
  const [sort, setSort] = useState<Sort<Order>>({ column: "state", descending: false });
  const list = usePolled(String(limit), EVERY_MS, () => ask("runs.list", { limit }));
  const { value, again } = list;
  useNews("attention", again);
  const [progress, setProgress] = useState<string>();
  const { opened, onOpen } = useOpened();
  const runs = sorted(value?.runs ?? [], sort);
  const stoppable = runs.filter(({ mayStop }) => mayStop);
  const selection = useSelection(stoppable.map(({ runId }) => runId));
  const chosen = stoppable.filter(({ runId }) => selection.chosen.has(runId));
  /** Stops runs, and reports the result even if the reader has left the tab. */
  const stop = async (some: readonly ActiveRun[]): Promise<void> => {
    let done = 0;
    const report = (): void => setProgress(`Stopping: ${done++} of ${some.length}`);
    report();
    const { words, hasFailed } = await stopRuns(some, report);
    if (hasFailed) complain(words);
    else say(`${words}.`);
    setProgress(undefined);
    await again();
  };
  const stopping = { class: "danger", question: askToStop(chosen), run: () => stop(chosen) } as const;
  return (
    <div class="stack runs">
      <h2>Runs</h2>
      <p class="soft">Turns of agents that are running, waiting or queued.</p>
      <Awaited {...list} />
      {value !== undefined && runs.length === 0 && (
        <div class="empty">
          <p>
            <strong>Nothing is running</strong>
          </p>
          <p>
            Each turn of an agent is a run. While it runs, waits for another session or is queued, it is
            listed here, and you can stop it alone or together with others. The inbox shows what has ended.
          </p>
        </div>
      )}
      {runs.length > 0 && (
        <>
          <p>
            {STATES.map((one) => `${runs.filter(({ state }) => state === one).length} ${one}`).join(" · ")}
          </p>
          {stoppable.length === 0 ? (
            <p class="soft">Your token lets you see these runs but not stop them.</p>
          ) : (
            <div class={`bar runs-chosen ${progress === undefined && chosen.length === 0 ? "" : "box card"}`}>
              <span role="status">{progress}</span>
              {progress === undefined && chosen.length === 0 && (
                <span class="soft">
                  Select runs to stop them together<span class="runs-keys">, a range with Shift</span>.
                </span>
              )}
              {progress === undefined && chosen.length > 0 && (
                <>
                  <span>{counted(chosen.length, "run")} selected</span>
                  <ActionButton action={{ label: `Stop ${chosen.length}`, ...stopping }} onOpen={onOpen} />
                  <Button text="Clear" class="quiet" onClick={() => selection.choose([])} />
                </>
              )}
            </div>
          )}
          <RunsTable
            {...{ runs, sort, chosen: selection.chosen }}
            onSort={setSort}
            onTurn={selection.turn}
            onAll={(all) => selection.choose(all ? stoppable.map(({ runId }) => runId) : [])}
            onStop={(run) => stop([run])}
          />
        </>
      )}
      {value?.truncated === true &&
        (limit < RUNS_MAX ? (
          <More onClick={() => setLimit(RUNS_MAX)} />
        ) : (
          <p class="out-more">
            These are {RUNS_MAX.toLocaleString()} of the unfinished runs. Others follow when they have ended.
          </p>
        ))}
      {opened}
    </div>
  );
}
