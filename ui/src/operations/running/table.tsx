// The table of unfinished runs: sortable, with a checkbox for each run that the reader may stop.

import type { ActiveRun } from "../../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { tick } from "../../clock.ts";
import { age, exactMoney, money, tokens } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { nameOf } from "../../parts/names.ts";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefOf } from "../../route.ts";
import { type Sort, SortHeading } from "../sort-button.tsx";

export type Column = "age" | "session" | "agent" | "state" | "tokens" | "cost";

export const COLUMN_WORDS: Readonly<Record<Column, string>> = {
  age: "Age",
  session: "Session",
  agent: "Agent",
  state: "State",
  tokens: "Tokens",
  cost: "Cost",
};

const STATES: readonly ActiveRun["state"][] = ["running", "waiting", "queued"];

export const nameOfRun = ({ sessionKey, label }: ActiveRun): string => label || nameOf(sessionKey);

function compare(a: ActiveRun, b: ActiveRun, column: Column): number {
  switch (column) {
    case "age":
      return b.acceptedAt - a.acceptedAt;
    case "session":
      return nameOfRun(a).localeCompare(nameOfRun(b));
    case "agent":
      return a.agentId.localeCompare(b.agentId);
    case "state":
      return STATES.indexOf(a.state) - STATES.indexOf(b.state) || a.since - b.since;
    case "tokens":
      return (a.tokens ?? 0) - (b.tokens ?? 0);
    case "cost":
      return (a.cost ?? 0) - (b.cost ?? 0);
  }
}

/** Sorts runs. Runs with equal values have a fixed order, so that rows do not move. */
export function sorted(runs: readonly ActiveRun[], { column, descending }: Sort<Column>): ActiveRun[] {
  const turn = descending ? -1 : 1;
  return [...runs].sort(
    (a, b) => compare(a, b, column) * turn || b.acceptedAt - a.acceptedAt || (a.runId < b.runId ? -1 : 1),
  );
}

function Waits({ run: { waitingFor = [], waitingForCount = 0 } }: { run: ActiveRun }) {
  const [first] = waitingFor;
  if (first === undefined) return null;
  return (
    <span class="runs-waits">
      waits for <SessionLink sessionKey={first} name={nameOf(first)} />
      {waitingForCount > 1 && ` and ${waitingForCount - 1} more`}
    </span>
  );
}

const figure = (value: number | undefined, write: (value: number) => string): string =>
  value === undefined ? "—" : write(value);

interface RowUse {
  readonly isChosen: boolean;
  readonly isStopping: boolean;
  readonly onTurn: (range: boolean) => void;
  readonly onStop: () => void;
}

function Row({ run, mayStop, use }: { run: ActiveRun; mayStop: boolean; use: RowUse }) {
  const { state, since, acceptedAt, agentId, model, sessionKey, chainId, summary } = run;
  const name = safeLine(nameOfRun(run));
  const now = tick.value;
  return (
    <tr data-item class={use.isChosen ? "chosen" : undefined}>
      {mayStop && (
        <td class="runs-check">
          {run.mayStop && (
            <input
              type="checkbox"
              aria-label={`Select ${name}`}
              checked={use.isChosen}
              onClick={(event) => use.onTurn(event.shiftKey)}
            />
          )}
        </td>
      )}
      <th scope="row">
        <SessionLink sessionKey={sessionKey} name={nameOfRun(run)} />
        {summary !== nameOfRun(run) && (
          <span class="runs-summary soft">
            <Name text={summary} />
          </span>
        )}
        <Waits run={run} />
        <span class="runs-narrow soft">
          <Name text={model} />
          {run.tokens !== undefined && run.tokens > 0 && ` · ${tokens(run.tokens)} tokens`}
        </span>
      </th>
      <td>
        <State state={run.hold === "held" ? "held" : state} />
        <Time class="runs-since soft" at={since}>
          {age(since, now)}
        </Time>
      </td>
      <td class="number wide">
        <Time at={acceptedAt}>{age(acceptedAt, now)}</Time>
      </td>
      <td class="wide">
        <Name text={agentId} />
      </td>
      <td class="wide soft">
        <Name text={model} />
      </td>
      <td class="number wide">{figure(state === "queued" ? undefined : run.tokens, tokens)}</td>
      <td class="number wide" title={run.cost === undefined ? undefined : exactMoney(run.cost)}>
        {figure(state === "queued" ? undefined : run.cost, money)}
      </td>
      <td class="runs-actions">
        <a href={hrefOf({ view: "flow", chainId })} aria-label={`Flow of ${name}`}>
          Flow
        </a>
        {run.mayStop && (
          <button
            type="button"
            aria-label={`Stop ${name}`}
            aria-disabled={use.isStopping}
            onClick={use.onStop}
          >
            Stop
          </button>
        )}
      </td>
    </tr>
  );
}

interface TableProps {
  /** The runs in the order in which they are shown. */
  runs: readonly ActiveRun[];
  sort: Sort<Column>;
  onSort: (sort: Sort<Column>) => void;
  chosen: ReadonlySet<string>;
  stopping: ReadonlySet<string>;
  /** True if the reader may stop at least one of the runs. */
  mayStop: boolean;
  onTurn: (runId: string, range: boolean) => void;
  onAll: (all: boolean) => void;
  onStop: (run: ActiveRun) => void;
}

function Head({ runs, sort, onSort, chosen, mayStop, onAll }: TableProps) {
  const count = runs.filter((run) => run.mayStop).length;
  const heading = { sort, onSort };
  return (
    <thead>
      <tr>
        {mayStop && (
          <th class="runs-check" scope="col">
            <input
              type="checkbox"
              aria-label="Select all runs"
              checked={chosen.size > 0 && chosen.size === count}
              indeterminate={chosen.size > 0 && chosen.size < count}
              onClick={() => onAll(chosen.size < count)}
            />
          </th>
        )}
        <SortHeading {...heading} column="session">
          Session
        </SortHeading>
        <SortHeading {...heading} column="state">
          State
        </SortHeading>
        <SortHeading {...heading} column="age" class="number wide">
          Age
        </SortHeading>
        <SortHeading {...heading} column="agent" class="wide">
          Agent
        </SortHeading>
        <th scope="col" class="wide">
          Model
        </th>
        <SortHeading {...heading} column="tokens" class="number wide" descending>
          Tokens
        </SortHeading>
        <SortHeading {...heading} column="cost" class="number wide" descending>
          Cost
        </SortHeading>
        <th scope="col">
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}

export function RunsTable(props: TableProps) {
  const { runs, chosen, stopping, mayStop, onTurn, onStop } = props;
  return (
    <section class="card runs-box" aria-label="Unfinished runs">
      <table class="runs-table" data-list>
        <Head {...props} />
        <tbody>
          {runs.map((run) => (
            <Row
              key={run.runId}
              run={run}
              mayStop={mayStop}
              use={{
                isChosen: chosen.has(run.runId),
                isStopping: stopping.has(run.runId),
                onTurn: (range) => onTurn(run.runId, range),
                onStop: () => onStop(run),
              }}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}
