// Shows the work of an agent between two texts: a row for each step. Of a long list, only the last rows are
// shown, with a button for the others.

import "./work.css";
import { useState } from "preact/hooks";
import { counted } from "../../parts/format.ts";
import type { Step } from "../items.ts";
import { CallRow, type Going, ThoughtRow } from "./call-row.tsx";
import { isSpawn, Spawns } from "./spawns.tsx";

/** Maximum number of rows that are shown at once. Of a longer list, only the last rows are shown. */
const UNFOLDED_MAX = 10;
const FOLDED_ROWS = 4;

interface StepsProps {
  readonly steps: readonly Step[];
  readonly running: Going;
  readonly agentId: string;
  /** The message to which a link leads. Its step is shown and marked. */
  readonly target: string | undefined;
}

/** Puts the steps into groups: two or more spawns in a row, or one step of another kind. */
function groupSteps(steps: readonly Step[]): Step[][] {
  const groups: Step[][] = [];
  for (const step of steps) {
    const last = groups.at(-1);
    if (isSpawn(step) && last?.every(isSpawn)) last.push(step);
    else groups.push([step]);
  }
  return groups;
}

function Group(props: Omit<StepsProps, "steps"> & { group: readonly Step[] }) {
  const { group, running, agentId, target } = props;
  const [step] = group;
  if (step === undefined) return null;
  if (group.length > 1)
    return (
      <li>
        <Spawns steps={group.filter(isSpawn)} running={running !== false} agentId={agentId} target={target} />
      </li>
    );
  const marked = step.messageId === target;
  return (
    <li
      data-id={step.id}
      data-message={step.messageId}
      class={marked ? "entry-marked" : undefined}
      aria-current={marked ? "true" : undefined}
    >
      {step.kind === "thought" ? (
        <ThoughtRow text={step.text} />
      ) : (
        <CallRow step={step} running={running} agentId={agentId} />
      )}
    </li>
  );
}

export function Steps({ steps, ...rest }: StepsProps) {
  const [whole, setWhole] = useState(false);
  const groups = groupSteps(steps);
  const hidden = groups.length > UNFOLDED_MAX ? groups.slice(0, -FOLDED_ROWS).flat() : [];
  const open = whole || hidden.some(({ messageId }) => messageId === rest.target);
  const failed = hidden.filter((step) => step.kind === "call" && step.result?.isError === true).length;
  const shown = hidden.length > 0 && !open ? groups.slice(-FOLDED_ROWS) : groups;
  return (
    <>
      {hidden.length > 0 && (
        <button type="button" class="quiet steps-more" aria-expanded={open} onClick={() => setWhole(!open)}>
          {open ? "Show fewer steps" : `Show ${counted(hidden.length, "earlier step")}`}
          {failed > 0 && !open && <span class="steps-failed">{` · ${failed} failed`}</span>}
        </button>
      )}
      <ol class="steps rows small card">
        {shown.map((group) => (
          <Group key={group[0]?.id} group={group} {...rest} />
        ))}
      </ol>
    </>
  );
}
