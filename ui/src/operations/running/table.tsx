// The table of unfinished runs: sortable, with a checkbox for each run that the reader may stop.

import type { ActiveRun } from "../../../../src/contract/methods/attention.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { tick } from "../../clock.ts";
import { Held } from "../../inbox/held.tsx";
import { awaitedPermission, permissionsOf } from "../../inbox/model.ts";
import { age, exactMoney, money, tokens } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { nameOf } from "../../parts/names.ts";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { hrefOf } from "../../route.ts";
import { ActionButton } from "../resource-list.tsx";
import { type Column, type Sort, Table } from "../table.tsx";

export type Order = "age" | "session" | "agent" | "state" | "tokens" | "cost";

export const STATES: readonly ActiveRun["state"][] = ["running", "waiting", "queued"];

export const nameOfRun = ({ sessionKey, label }: ActiveRun): string => label || nameOf(sessionKey);

const COMPARE: Readonly<Record<Order, (a: ActiveRun, b: ActiveRun) => number>> = {
  age: (a, b) => b.acceptedAt - a.acceptedAt,
  session: (a, b) => nameOfRun(a).localeCompare(nameOfRun(b)),
  agent: (a, b) => a.agentId.localeCompare(b.agentId),
  state: (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || a.since - b.since,
  tokens: (a, b) => (a.tokens ?? 0) - (b.tokens ?? 0),
  cost: (a, b) => (a.cost ?? 0) - (b.cost ?? 0),
};

/** Sorts runs. Runs with equal values have a fixed order, so that rows do not move. */
export function sorted(runs: readonly ActiveRun[], { column, descending }: Sort<Order>): ActiveRun[] {
  const turn = descending ? -1 : 1;
  return [...runs].sort(
    (a, b) => COMPARE[column](a, b) * turn || b.acceptedAt - a.acceptedAt || (a.runId < b.runId ? -1 : 1),
  );
}

interface TableProps {
  runs: readonly ActiveRun[];
  sort: Sort<Order>;
  onSort: (sort: Sort<Order>) => void;
  chosen: ReadonlySet<string>;
  onTurn: (runId: string, range: boolean) => void;
  onAll: (all: boolean) => void;
  onStop: (run: ActiveRun) => Promise<void>;
}

/** The column of boxes. Absent if the reader may stop none of the runs. */
function boxes({ runs, chosen, onTurn, onAll }: TableProps): Column<ActiveRun, Order>[] {
  const count = runs.filter(({ mayStop }) => mayStop).length;
  if (count === 0) return [];
  return [
    {
      class: "runs-check",
      title: (
        <input
          type="checkbox"
          aria-label="Select all runs"
          checked={chosen.size > 0 && chosen.size === count}
          indeterminate={chosen.size > 0 && chosen.size < count}
          onClick={() => onAll(chosen.size < count)}
        />
      ),
      cell: (run) =>
        run.mayStop && (
          <input
            type="checkbox"
            aria-label={`Select ${safeLine(nameOfRun(run))}`}
            checked={chosen.has(run.runId)}
            onClick={(event) => onTurn(run.runId, event.shiftKey)}
          />
        ),
    },
  ];
}

function RunName({ run }: { run: ActiveRun }) {
  const { sessionKey, summary, model, waitingFor: [waits] = [], waitingForCount = 0 } = run;
  const name = nameOfRun(run);
  return (
    <>
      <SessionLink sessionKey={sessionKey} name={name} />
      {summary !== name && <Name as="span" class="runs-summary clamp small soft" text={summary} />}
      {waits !== undefined && (
        <div class="runs-waits tone-waiting toned small">
          waits for <SessionLink sessionKey={waits} />
          {waitingForCount > 1 && ` and ${waitingForCount - 1} more`}
        </div>
      )}
      <span class="runs-narrow soft small">
        <Name text={model} />
        {run.tokens !== undefined && run.tokens > 0 && ` · ${tokens(run.tokens)} tokens`}
      </span>
    </>
  );
}

/** Shows a figure of a run that has begun. */
const figure = (run: ActiveRun, value: number | undefined, write: (value: number) => string): string =>
  value === undefined || run.state === "queued" ? "—" : write(value);

export function RunsTable(props: TableProps) {
  const { runs, sort, onSort, chosen, onStop } = props;
  const wide = { class: "number wide" };
  return (
    <Table
      label="Unfinished runs"
      class="runs-table"
      list
      rows={runs}
      rowKey={({ runId }) => runId}
      rowClass={({ runId }) => (chosen.has(runId) ? "chosen" : undefined)}
      sort={sort}
      onSort={onSort}
      columns={[
        ...boxes(props),
        { title: "Session", isName: true, sort: "session", cell: (run) => <RunName run={run} /> },
        {
          title: "State",
          sort: "state",
          cell: ({ sessionKey, hold, state, since, acceptedAt }) => {
            const asked = permissionsOf(sessionKey);
            const words = asked.length > 0 ? awaitedPermission(asked) : state;
            const isAge = age(since, tick.value) === age(acceptedAt, tick.value);
            return (
              <>
                <State {...(hold === "held" ? { state: hold } : { state, text: words })} />
                <Time class={`runs-since small soft${isAge ? " runs-narrow" : ""}`} at={since} as="age" />
              </>
            );
          },
        },
        {
          ...wide,
          title: "Age",
          sort: "age",
          cell: ({ acceptedAt: at }) => <Time at={at} as="age" />,
        },
        { title: "Agent", class: "wide", sort: "agent", cell: ({ agentId }) => <Agent id={agentId} /> },
        { title: "Model", class: "wide soft", cell: ({ model }) => <Name text={model} /> },
        {
          ...wide,
          title: "Tokens",
          sort: "tokens",
          descending: true,
          cell: (run) => figure(run, run.tokens, tokens),
        },
        {
          ...{ ...wide, title: "Cost", sort: "cost", descending: true },
          cell: (run) => (
            <span title={run.cost === undefined ? undefined : exactMoney(run.cost)}>
              {figure(run, run.cost, money)}
            </span>
          ),
        },
        {
          title: <span class="visually-hidden">Actions</span>,
          class: "runs-actions",
          cell: (run) => {
            const about = safeLine(nameOfRun(run));
            return (
              <>
                <a href={hrefOf({ view: "flow", chainId: run.chainId })} aria-label={`Flow of ${about}`}>
                  Flow
                </a>
                {run.mayStop && (
                  <Held of={run.runId}>
                    {(isHeld) => (
                      <ActionButton
                        action={{ label: "Stop", about, disabled: isHeld, run: () => onStop(run) }}
                      />
                    )}
                  </Held>
                )}
              </>
            );
          },
        },
      ]}
    />
  );
}
