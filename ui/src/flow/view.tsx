// The flow view. The overview is at the top; below it are the list of chains and the diagram of the selected
// chain.

import "./flow.css";
import { useRef } from "preact/hooks";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { Examples } from "../parts/examples.tsx";
import { Awaited } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { Select } from "../parts/select.tsx";
import { route } from "../route.ts";
import { Chain } from "./chain.tsx";
import { ChainList } from "./list.tsx";
import { OverviewPicture } from "./overview.tsx";
import {
  agent,
  agentsIn,
  chainState,
  clearFilters,
  emptyWindow,
  filter,
  isShown,
  minutes,
  nameOf,
  showsOverview,
  useChains,
  WINDOWS,
} from "./state.ts";

function WindowChoice() {
  return (
    <fieldset class="flow-window" aria-label="Time window">
      {WINDOWS.map((one) => (
        <button
          key={one.minutes}
          type="button"
          class="quiet"
          data-act={`Chains of the last ${one.name}`}
          aria-pressed={minutes.value === one.minutes}
          onClick={() => {
            emptyWindow.value = undefined;
            minutes.value = one.minutes;
          }}
        >
          {one.name}
        </button>
      ))}
    </fieldset>
  );
}

/** Says that the page looked further back by itself. */
function LookedFurther() {
  if (emptyWindow.value === undefined) return null;
  return (
    <p class="flow-note soft" role="status">
      {`None within ${emptyWindow.value}`}
    </p>
  );
}

function OverviewToggle() {
  return (
    <button
      type="button"
      class="quiet flow-toggle"
      data-act=""
      aria-pressed={showsOverview.value}
      onClick={() => {
        showsOverview.value = !showsOverview.value;
      }}
    >
      Overview
    </button>
  );
}

function FilterWords() {
  const wanted = filter.value;
  if (wanted === undefined) return null;
  return (
    <button
      type="button"
      class="chip flow-filter"
      aria-label="Show all chains"
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
  );
}

const STATES = [
  ["", "Any state"],
  ["running", "Running"],
  ["failed", "Failed"],
] as const;

function Choices({ chains }: { chains: readonly ChainRow[] }) {
  const agents = agentsIn(chains);
  const chosen = agent.value;
  // Keep the chosen agent in the list if its chains have left the time window.
  const options = chosen === "" || agents.includes(chosen) ? agents : [chosen, ...agents];
  return (
    <div class="flow-choices">
      <Select
        aria-label="Agent"
        value={chosen}
        options={[["", "Any agent"], ...options]}
        onPick={(id) => {
          agent.value = id;
        }}
      />
      <Select
        aria-label="State"
        value={chainState.value}
        options={STATES}
        onPick={(state) => {
          chainState.value = state;
        }}
      />
    </div>
  );
}

function Nothing() {
  return (
    <div class="empty flow-empty">
      <h2>{`No conversations between sessions in the last ${WINDOWS.at(-1)?.name}`}</h2>
      <p>When a session sends to another one or spawns a sub-agent, its chain appears here.</p>
      <Examples />
    </div>
  );
}

function NoMatches() {
  return (
    <div class="empty">
      <p>No matching chains</p>
      <button type="button" onClick={clearFilters}>
        Show all chains
      </button>
    </div>
  );
}

export function FlowView() {
  const reading = useChains();
  const { value } = reading;
  const first = useRef<string | undefined>(undefined);
  const at = route.value;
  const wantedId = at.view === "flow" ? at.chainId : undefined;
  if (value === undefined) return <Awaited {...reading} />;
  const all = value.chains;
  const chains = all.filter(isShown);
  if (all.length === 0 && wantedId === undefined) {
    return (
      <div class="flow">
        <div class="flow-bar">
          <WindowChoice />
        </div>
        <Nothing />
      </div>
    );
  }
  // If no chain is selected, show the newest one, and keep it when newer chains arrive.
  if (!chains.some(({ chainId }) => chainId === first.current)) first.current = chains[0]?.chainId;
  const chosen = wantedId ?? first.current;
  return (
    <div class={`flow ${wantedId === undefined ? "no-choice" : "chosen"}`}>
      {showsOverview.value && <OverviewPicture chains={all} />}
      <div class="flow-split">
        <section class="flow-list" aria-labelledby="chains-title">
          <div class="flow-bar">
            <h2 id="chains-title">{counted(chains.length, "chain")}</h2>
            <FilterWords />
            <OverviewToggle />
            <WindowChoice />
            <LookedFurther />
            <Choices chains={all} />
          </div>
          <ChainList chains={chains} chosen={chosen} />
          {value.nextCursor !== undefined && <p class="soft flow-more">Newest chains only</p>}
        </section>
        <section class="flow-main" aria-label="Selected chain">
          {chosen === undefined ? <NoMatches /> : <Chain chainId={chosen} />}
        </section>
      </div>
    </div>
  );
}
