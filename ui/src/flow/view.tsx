// The flow view: the list of chains with its filters, and beside it the selected chain, or the overview.

import "./flow.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { agentName, agents } from "../agents/known.ts";
import { settled } from "../clock.ts";
import { Button } from "../parts/button.tsx";
import { Examples } from "../parts/examples.tsx";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { Select } from "../parts/select.tsx";
import { go, queries, route } from "../route.ts";
import { Chain } from "./chain.tsx";
import { ChainList } from "./list.tsx";
import { OverviewPicture } from "./overview.tsx";
import { filter, fits, nameOf, showsOverview, useChains } from "./state.ts";
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
  const { period, from, to, agentId, state } = wish.value;
  const known = (agents.value?.agents ?? []).map(({ id }) => id);
  const ids = agentId === "" || known.includes(agentId) ? known : [agentId, ...known];
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
      {period === "dates" && (
        <>
          <Day name="From" day={from} onDay={(day) => want({ from: day })} />
          <Day name="To" day={to} onDay={(day) => want({ to: day })} />
        </>
      )}
      <Select
        aria-label="Agent"
        value={agentId}
        options={[["", "Any agent"], ...ids.map((id) => [id, agentName(id)] as const)]}
        onPick={(id) => want({ agentId: id })}
      />
    </div>
  );
}

function Day({ name, day, onDay }: { name: string; day: string; onDay: (day: string) => void }) {
  return (
    <label class="small">
      {name}
      <input type="date" value={day} onChange={(event) => onDay(event.currentTarget.value)} />
    </label>
  );
}

export function FlowView() {
  const { chains: all, more, note, ...reading } = useChains();
  const { value } = reading;
  const first = useRef<string | undefined>(undefined);
  const at = route.value;
  const wantedId = at.view === "flow" ? at.chainId : undefined;
  const isFiltered = queries.flow.value !== "";
  if (value === undefined && !isFiltered) return <Awaited {...reading} />;
  const wanted = filter.value;
  const chains = all.filter((chain) => fits(chain, wanted));
  const isEmpty = all.length === 0 && wantedId === undefined && !isFiltered;
  // If no chain is selected, show the newest one, and keep it when newer chains arrive.
  if (value !== undefined && !chains.some(({ chainId }) => chainId === first.current))
    first.current = chains[0]?.chainId;
  const isOverview = wantedId === undefined && showsOverview.value && all.length > 0;
  const chosen = isOverview ? undefined : (wantedId ?? first.current);
  const choice = chosen === undefined ? "no-chain" : wantedId === undefined ? "no-choice" : "chosen";
  return (
    <div class={`flow split ${choice}`}>
      <section class="split-list flow-list" aria-labelledby="chains-title">
        <div class="bar strip flow-bar">
          <h2 id="chains-title">{`${counted(chains.length, "chain")}${more ? " and more" : ""}`}</h2>
          {wanted !== undefined && (
            <button
              type="button"
              class="chip tone-busy"
              title="Show all chains"
              onClick={() => {
                filter.value = undefined;
              }}
            >
              <Name text={nameOf(wanted.from)} />
              {wanted.to !== undefined && (
                <>
                  {" → "}
                  <Name text={nameOf(wanted.to)} />
                </>
              )}
              {" ×"}
            </button>
          )}
          <Button
            text="Overview"
            class="quiet flow-toggle"
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
        <Awaited {...reading} />
        {value !== undefined && <ChainList chains={chains} chosen={chosen} more={more} />}
      </section>
      <section class="split-main flow-main" aria-label={isOverview ? "Overview" : "Selected chain"}>
        {isOverview ? (
          <OverviewPicture chains={all} />
        ) : chosen !== undefined ? (
          <Chain key={chosen} chainId={chosen} />
        ) : isEmpty ? (
          <div class="empty stack">
            <h2>{`No conversations between sessions in the last ${TRIED.at(-1)?.name}`}</h2>
            <p>When a session sends to another one or spawns a sub-agent, its chain appears here.</p>
            <Examples />
          </div>
        ) : (
          value !== undefined && (
            <div class="empty">
              <p>No matching chains</p>
              <Button
                text="Show all chains"
                onClick={() => {
                  filter.value = undefined;
                  want({ period: "", search: "", agentId: "", state: "" });
                }}
              />
            </div>
          )
        )}
      </section>
    </div>
  );
}
