// The overview of the loaded chains: a table of who talks to whom. A row selects its chains in the list.

import { useState } from "preact/hooks";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { agentIn } from "../agents/face.ts";
import { agentName } from "../agents/known.ts";
import { AgentMark } from "../agents/mark.tsx";
import { type Sort, Table } from "../operations/table.tsx";
import { Name } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { type Pair, pairsIn } from "./pairs.ts";
import { chosenPair, nameOf } from "./state.ts";

const VERBS = { send: "talks to", spawn: "gives jobs to", refused: "could not reach" } as const;

const targetName = ({ kind, to }: Pair): string => (kind === "spawn" ? agentName(to) : nameOf(to));

type Order = "name" | "steps";

function sortPairs(pairs: readonly Pair[], { column, descending }: Sort<Order>): Pair[] {
  const turn = descending ? -1 : 1;
  const words = (pair: Pair): string => `${nameOf(pair.from)} ${targetName(pair)} ${pair.id}`;
  return [...pairs].sort((a, b) => {
    const bySteps = column === "steps" ? a.steps - b.steps : 0;
    return (bySteps || words(a).localeCompare(words(b))) * turn;
  });
}

export function PairWords({ pair }: { pair: Pair }) {
  const { kind, from, to } = pair;
  return (
    <>
      <AgentMark id={agentIn(from)} /> <Name text={nameOf(from)} /> {VERBS[kind]}{" "}
      <AgentMark id={kind === "spawn" ? to : agentIn(to)} /> <Name text={targetName(pair)} />
    </>
  );
}

export function Overview({ chains }: { chains: readonly ChainRow[] }) {
  const [sort, setSort] = useState<Sort<Order>>({ column: "name", descending: false });
  const chosen = chosenPair.value?.id;
  return (
    <div class="tab-body flow-overview stack">
      <h2>Conversations between sessions</h2>
      <Table
        label="Conversations between sessions"
        list
        rows={sortPairs(pairsIn(chains), sort)}
        rowKey={({ id }) => id}
        rowClass={({ id }) => (id === chosen ? "chosen" : undefined)}
        sort={sort}
        onSort={setSort}
        columns={[
          {
            ...{ title: "Conversation", isName: true, sort: "name" },
            cell: (pair) => (
              <button
                type="button"
                class="plain"
                aria-pressed={pair.id === chosen}
                onClick={() => {
                  chosenPair.value = pair.id === chosen ? undefined : pair;
                }}
              >
                <PairWords pair={pair} />
              </button>
            ),
          },
          {
            ...{ title: "Steps", class: "number", sort: "steps", descending: true },
            cell: ({ steps }) => steps,
          },
          {
            title: "Now",
            cell: ({ open }) => open > 0 && <State state="running" text={`${open} at work`} />,
          },
        ]}
      />
    </div>
  );
}
