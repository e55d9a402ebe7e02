// The flow view: the list of chains with its filters, and beside it the selected chain, or the overview.

import "./flow.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { agentName, agents } from "../agents/known.ts";
import { settled } from "../clock.ts";
import { Button } from "../parts/button.tsx";
import { Examples } from "../parts/examples.tsx";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Select } from "../parts/select.tsx";
import { go, queries, route } from "../route.ts";
import { Chain } from "./chain.tsx";
import { ChainList } from "./list.tsx";
import { Overview, PairWords } from "./overview.tsx";
import { hasPair } from "./pairs.ts";
import { chosenPair, showsOverview, useChains } from "./state.ts";
import { PERIODS, TRIED, want, wish } from "./wish.ts";

const STATES = [
  ["", "Any state"],
  ["running", "Running"],
  ["failed", "Failed"],
] as const;

const PERIOD_OPTIONS = [
  ["", "Recent"],
  ...PERIODS.map(({ id, name }) => [id, name] as const),
  ["dates", "Dates…"],
] as const;

/** Maximum length of a search text, a limit of the gateway. */
const SEARCH_CHARS_MAX = 500;
const SEARCH_AFTER_MS = 300;
const searchSoon = settled<string>(SEARCH_AFTER_MS, (search) => want({ search }));

function SearchField() {
  const { search } = wish.value;
  const [text, setText] = useState(search);
  useEffect(() => setText(search), [search]);
  return (
    <input
      type="search"
      aria-label="Search chains"
      placeholder="Search texts and sessions"
      maxLength={SEARCH_CHARS_MAX}
      value={text}
      onInput={(event) => {
        setText(event.currentTarget.value);
        searchSoon(event.currentTarget.value);
      }}
    />
  );
}

function Choices() {
  const { period, agent, state, ...days } = wish.value;
  const known = (agents.value?.agents ?? []).map(({ id }) => id);
  const ids = agent === "" || known.includes(agent) ? known : [agent, ...known];
  return (
    <div class="flow-choices">
      <SearchField />
      <Select
        aria-label="Period"
        value={period}
        options={PERIOD_OPTIONS}
        onPick={(id) => want({ period: id })}
      />
      <Select aria-label="State" value={state} options={STATES} onPick={(to) => want({ state: to })} />
      {period === "dates" &&
        (["from", "to"] as const).map((name) => (
          <label key={name} class="small">
            {name === "from" ? "From" : "To"}
            <input
              type="date"
              value={days[name]}
              onChange={(event) => want({ [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      <Select
        aria-label="Agent"
        value={agent}
        options={[["", "Any agent"], ...ids.map((id) => [id, agentName(id)] as const)]}
        onPick={(id) => want({ agent: id })}
      />
    </div>
  );
}

/** Says why there is no chain. */
function Empty({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered)
    return (
      <div class="empty stack">
        <h2>{`No conversations between sessions in the last ${TRIED.at(-1)?.name}`}</h2>
        <p>When a session sends to another one or spawns a sub-agent, its chain appears here.</p>
        <Examples />
      </div>
    );
  const showAll = (): void => {
    chosenPair.value = undefined;
    want({ period: "", search: "", agent: "", state: "" });
  };
  return (
    <div class="empty">
      <p>No matching chains</p>
      <Button text="Show all chains" onClick={showAll} />
    </div>
  );
}

export function FlowView() {
  const { chains: all, more, note, value, ...reading } = useChains();
  const first = useRef<string | undefined>(undefined);
  const at = route.value;
  const wantedId = at.view === "flow" ? at.chainId : undefined;
  const isFiltered = queries.flow.value !== "";
  if (value === undefined && !isFiltered) return <Awaited {...reading} />;
  const pair = chosenPair.value;
  const chains = all.filter((chain) => hasPair(chain, pair));
  // If no chain is selected, show the newest one, and keep it when newer chains arrive.
  if (value !== undefined && !chains.some(({ chainId }) => chainId === first.current))
    first.current = chains[0]?.chainId;
  const isOverview = wantedId === undefined && showsOverview.value && all.length > 0;
  const chosen = isOverview ? undefined : (wantedId ?? first.current);
  const choice = wantedId === undefined ? "no-choice" : "chosen";
  return (
    <div class={`flow split ${chosen === undefined ? "no-chain" : choice}`}>
      <section class="split-list flow-list" aria-labelledby="chains-title">
        <div class="bar strip flow-bar">
          <h2 id="chains-title">{`${counted(chains.length, "chain")}${more ? " and more" : ""}`}</h2>
          {pair !== undefined && (
            <button
              type="button"
              class="chip tone-busy"
              title="Show all chains"
              onClick={() => {
                chosenPair.value = undefined;
              }}
            >
              <PairWords pair={pair} /> ×
            </button>
          )}
          <Button
            text="Overview"
            class="quiet"
            data-act=""
            aria-pressed={isOverview}
            onClick={() => {
              showsOverview.value = !isOverview;
              go({ view: "flow" });
            }}
          />
          <Choices />
          {all.length > 0 && note && (
            <p class="small soft" role="status">
              {note}
            </p>
          )}
        </div>
        <Awaited value={value} {...reading} />
        {value !== undefined && <ChainList chains={chains} chosen={chosen} more={more} />}
      </section>
      <section class="split-main flow-main" aria-label={isOverview ? "Overview" : "Selected chain"}>
        {isOverview && <Overview chains={all} />}
        {chosen !== undefined && <Chain key={chosen} chainId={chosen} />}
        {chosen === undefined && !isOverview && value !== undefined && (
          <Empty isFiltered={isFiltered || all.length > 0} />
        )}
      </section>
    </div>
  );
}
