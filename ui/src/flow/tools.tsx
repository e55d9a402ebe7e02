// The bar above a chain: choice of view, search, zoom, legend, and links to pages about the chain.

import type { Signal } from "@preact/signals";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { pressed } from "../keys/table.ts";
import { Button } from "../parts/button.tsx";
import { ChainLinks } from "./actions.tsx";
import type { Search } from "./chain.tsx";
import { chosenMode, MODES, type Mode } from "./state.ts";

function Find({ search }: { search: Search }) {
  const { text, found, at } = search;
  const count = text === "" ? "" : at < 0 ? `${found.length} found` : `${at + 1} of ${found.length}`;
  return (
    <span class="row small flow-find">
      <input
        type="search"
        aria-label="Find in steps"
        placeholder="Find in steps"
        value={text}
        onInput={(event) => search.onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          const action = pressed("find", event);
          if (action === undefined) return;
          event.preventDefault();
          search.onStep(action === "next" ? 1 : -1);
        }}
      />
      <span class="soft number" role="status">
        {count}
      </span>
    </span>
  );
}

function Zoom({ zoom, zooms }: { zoom: Signal<number>; zooms: readonly number[] }) {
  const [fitted = 1] = zooms;
  const at = zooms.indexOf(zoom.value);
  const go = (to = zoom.value): void => {
    zoom.value = to;
  };
  const step = (text: string, name: string, to: number | undefined) => (
    <Button text={text} class="quiet" aria-label={name} disabled={to === undefined} onClick={() => go(to)} />
  );
  return (
    <span class="flow-zoom">
      {step("−", "Zoom out", zooms[at - 1])}
      <Button
        text="Fit"
        class="quiet"
        aria-pressed={zoom.value === fitted}
        onClick={() => go(zoom.value === fitted ? 1 : fitted)}
      />
      {step("+", "Zoom in", zooms[at + 1])}
    </span>
  );
}

interface ToolsProps {
  readonly mode: Mode;
  readonly search: Search;
  readonly zoom: Signal<number>;
  /** The levels of zoom. At the first, the whole diagram fits. Empty if the view cannot be zoomed. */
  readonly zooms: readonly number[];
  readonly legend: boolean;
  readonly onLegend: () => void;
  /** Merges the expanded steps again. Undefined if none are expanded. */
  readonly onCollapse: (() => void) | undefined;
  readonly chain: ChainRow;
}

export function ChainTools(props: ToolsProps) {
  const { mode, search, zoom, zooms, legend, onLegend, onCollapse, chain } = props;
  return (
    <div class="bar strip flow-tools">
      <fieldset class="flow-window" aria-label="View of the chain">
        {MODES.map((one) => (
          <Button
            text={one.name}
            key={one.mode}
            class="quiet"
            data-act={`Chain as ${one.name.toLowerCase()}`}
            aria-pressed={mode === one.mode}
            onClick={() => {
              chosenMode.value = one.mode;
            }}
          />
        ))}
      </fieldset>
      <Find search={search} />
      {zooms.length > 0 && <Zoom zoom={zoom} zooms={zooms} />}
      {onCollapse !== undefined && <Button text="Collapse" class="quiet" data-act="" onClick={onCollapse} />}
      {mode !== "list" && (
        <Button text="Legend" class="quiet" data-act="" aria-expanded={legend} onClick={onLegend} />
      )}
      <ChainLinks chain={chain} />
    </div>
  );
}
