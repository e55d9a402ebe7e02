// Shows the steps of one chain as a list. On a phone it replaces the diagram; elsewhere the reader can choose
// it.

import { optional } from "../../../src/core/optional.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { StepChips } from "../labels/chips.tsx";
import { clockTime } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { State } from "../parts/state.tsx";
import { type ChainViewProps, Frame } from "./sequence/frame.tsx";
import { useKeys } from "./sequence/keys.ts";
import { useSight } from "./sequence/sight.ts";
import { hasRun, isFailed, label, outcomeWords, sentence, slowestOf, title } from "./words.ts";

const ROW_HEIGHT = 64;

export function StepList(props: ChainViewProps) {
  const { steps, around, chosen, found, active } = props;
  const sight = useSight(active);
  const keys = useKeys({ ...props, ids: steps.map(({ id }) => id), box: sight.box });
  const slowest = slowestOf(steps.filter((step) => hasRun(step)));
  const height = steps.length * ROW_HEIGHT;
  return (
    <Frame sight={sight} keys={keys} height={height} grows>
      <div class="flow-rows" style={{ height: `${height}px` }}>
        {sight
          .rowsNear(steps, ROW_HEIGHT, ({ id }) => id === keys.inTab)
          .map(({ row: step, at }) => {
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
                <span class="row" aria-hidden="true">
                  <Name as="span" class="cut flow-row-title" text={title(step, around)} />
                  {id === slowest && <span class="chip tone-warn">slowest</span>}
                  <span class="soft">{clockTime(step.at)}</span>
                </span>
                <span class="row flow-row-text" aria-hidden="true">
                  <StepChips labels={optional({ outside: step.labels?.outside })} />
                  <Name as="span" class="cut" text={said} />
                  {outcome !== "" && !said.endsWith(outcome) && (
                    <State state={state} text={outcome} {...optional({ tone: failed ? "bad" : undefined })} />
                  )}
                </span>
              </button>
            );
          })}
      </div>
    </Frame>
  );
}
