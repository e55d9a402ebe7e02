// The bar above a chain: choice of view, search, zoom, legend, and links to pages about the chain.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { pressed } from "../keys/table.ts";
import { Button } from "../parts/button.tsx";
import { hrefOf } from "../route.ts";
import { pagesAbout } from "./actions.tsx";
import type { Search } from "./chain.tsx";
import { Legend, SEQUENCE, WATERFALL } from "./legend.tsx";
import { FITTED } from "./sequence/layout.ts";

/** The views of a chain. `zooms`: at the first, the whole view fits. */
export const MODES = {
  sequence: { name: "Sequence", zoom: signal(1), zooms: [FITTED, 0.5, 0.75, 1, 1.5, 2.5], marks: SEQUENCE },
  waterfall: { name: "Waterfall", zoom: signal(1), zooms: [1, 2, 4, 8, 16, 32], marks: WATERFALL },
  list: { name: "Steps", zoom: signal(1), zooms: [], marks: [] },
} as const;
export type Mode = keyof typeof MODES;

/** The view that the reader chose. Undefined: a list on a narrow screen, otherwise the sequence. */
export const chosenMode = signal<Mode | undefined>(undefined);

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

function Zoom({ zoom, zooms }: Pick<(typeof MODES)[Mode], "zoom" | "zooms">) {
  const [fitted = 1, ...others]: readonly number[] = zooms;
  if (others.length === 0) return null;
  const at = [fitted, ...others].indexOf(zoom.value);
  const go = (to = zoom.value): void => {
    zoom.value = to;
  };
  const step = (text: string, name: string, to: number | undefined) => (
    <Button text={text} class="quiet" aria-label={name} disabled={to === undefined} onClick={() => go(to)} />
  );
  return (
    <span class="row">
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

export function ChainTools(props: {
  mode: Mode;
  search: Search;
  /** Merges the expanded steps again. Undefined if none are expanded. */
  onCollapse: (() => void) | undefined;
  chain: ChainRow;
}) {
  const { mode, search, onCollapse, chain } = props;
  const { marks } = MODES[mode];
  const [legend, setLegend] = useState(false);
  const hasLegend = marks.length > 0;
  return (
    <>
      <div class="bar strip flow-tools">
        <fieldset class="joined" aria-label="View of the chain">
          {(Object.keys(MODES) as Mode[]).map((one) => (
            <Button
              text={MODES[one].name}
              key={one}
              data-act={`Chain as ${MODES[one].name.toLowerCase()}`}
              aria-pressed={mode === one}
              onClick={() => {
                chosenMode.value = one;
              }}
            />
          ))}
        </fieldset>
        <Find search={search} />
        <Zoom {...MODES[mode]} />
        {onCollapse !== undefined && (
          <Button text="Collapse" class="quiet" data-act="" onClick={onCollapse} />
        )}
        {hasLegend && (
          <Button
            text="Legend"
            class="quiet"
            data-act=""
            aria-expanded={legend}
            onClick={() => setLegend(!legend)}
          />
        )}
        {pagesAbout(chain).map(({ name, at }) => {
          const href = hrefOf({ view: "flow", chainId: chain.chainId, page: at });
          return (
            <a key={at} class="button quiet" data-act="" href={href}>
              {name}
            </a>
          );
        })}
      </div>
      {legend && hasLegend && <Legend marks={marks} />}
    </>
  );
}
