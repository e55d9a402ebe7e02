// Shows the steps of one chain as a list. On a phone it replaces the diagram; elsewhere the reader can choose
// it.

import { useMemo } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { StepChips } from "../labels/chips.tsx";
import { clockTime } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { Latest } from "./latest.tsx";
import type { ChainViewProps } from "./sequence/diagram.tsx";
import { useKeys } from "./sequence/keys.ts";
import { useGrowth, useSight } from "./sequence/sight.ts";
import { hasRun, isFailed, label, outcomeWords, sentence, slowestOf, title } from "./words.ts";

const ROW_HEIGHT = 64;

export function StepList(props: ChainViewProps) {
  const { steps, around, chosen, onChoose, wanted, found, active } = props;
  const scrolled = useSight(active);
  const { box, sight, look, rowsNear, toEnd } = scrolled;
  useGrowth(scrolled, steps.length);
  const rows = useMemo(() => steps.map(({ id }, at) => ({ id, y: at * ROW_HEIGHT })), [steps]);
  const keys = useKeys({ rows, box, look, chosen, onChoose, wanted });
  const slowest = useMemo(() => slowestOf(steps.filter((step) => hasRun(step))), [steps]);
  const inTab = steps.findIndex(({ id }) => id === keys.inTab);
  return (
    <div class="flow-sight">
      {/* biome-ignore-start lint/a11y/useKeyWithClickEvents: its rows are buttons */}
      {/* biome-ignore-start lint/a11y/noStaticElementInteractions: its rows are buttons */}
      <div
        class="flow-scroll flow-rows"
        ref={box}
        onScroll={look}
        onKeyDown={keys.onKeyDown}
        onClick={keys.onClick}
      >
        {/* biome-ignore-end lint/a11y/noStaticElementInteractions: its rows are buttons */}
        {/* biome-ignore-end lint/a11y/useKeyWithClickEvents: its rows are buttons */}
        <div class="flow-rows-space" style={{ height: `${steps.length * ROW_HEIGHT}px` }}>
          {rowsNear(steps, ROW_HEIGHT, inTab).map(({ row: step, at }) => {
            const { id, kind, state } = step;
            const outcome = outcomeWords(step, around);
            const said = label(step, around);
            const failed = isFailed(step);
            const marks = `${failed ? " is-failed" : ""}${id === chosen ? " chosen" : ""}`;
            return (
              <button
                key={id}
                type="button"
                class={`flow-row step kind-${kind}${marks}${found.has(id) ? " found" : ""}`}
                style={{ top: `${at * ROW_HEIGHT}px` }}
                data-step={id}
                tabIndex={id === keys.inTab ? 0 : -1}
              >
                <span class="visually-hidden">
                  {safeLine(sentence(step, around)) + (id === slowest ? " Slowest run of the chain." : "")}
                </span>
                <span class="flow-row-head" aria-hidden="true">
                  <Name text={title(step, around)} />
                  {id === slowest && <span class="chip tone-warn">slowest</span>}
                  <span class="soft">{clockTime(step.at)}</span>
                </span>
                <span class="flow-row-text" aria-hidden="true">
                  <StepChips labels={optional({ outside: step.labels?.outside })} />
                  <Name text={said} />
                  {outcome !== "" && !said.endsWith(outcome) && (
                    <State state={state} text={outcome} {...optional({ tone: failed ? "bad" : undefined })} />
                  )}
                </span>
              </button>
            );
          })}
        </div>
      </div>
      <Latest atEnd={sight.atEnd} toEnd={toEnd} />
    </div>
  );
}
