// Shows the work of an agent between two texts: a row for each step. Of a long list, only the last rows are
// shown, with a button for the others.

import "./work.css";
import { useContext, useState } from "preact/hooks";
import { counted } from "../../parts/format.ts";
import type { Step } from "../items.ts";
import { OpenSession } from "../open-session.ts";
import { CallRow, type Going, ThoughtRow } from "./call-row.tsx";
import { isSpawn, Spawns } from "./spawns.tsx";

/** Maximum number of rows that are shown at once. Of a longer list, only the last rows are shown. */
const UNFOLDED_MAX = 10;
const FOLDED_ROWS = 4;

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

function Group({ group, running }: { group: readonly Step[]; running: Going }) {
  const { target } = useContext(OpenSession);
  const [step] = group;
  if (step === undefined) return null;
  const spawns = group.filter(isSpawn);
  if (spawns.length > 1)
    return (
      <li>
        <Spawns steps={spawns} running={running !== false} />
      </li>
    );
  const marks = step.messageId === target ? ({ class: "entry-marked", "aria-current": "true" } as const) : {};
  return (
    <li data-id={step.id} data-message={step.messageId} {...marks}>
      {step.kind === "thought" ? <ThoughtRow text={step.text} /> : <CallRow step={step} running={running} />}
    </li>
  );
}

export function Steps({ steps, running }: { steps: readonly Step[]; running: Going }) {
  const { target } = useContext(OpenSession);
  const [whole, setWhole] = useState(false);
  const groups = groupSteps(steps);
  const hidden = groups.length > UNFOLDED_MAX ? groups.slice(0, -FOLDED_ROWS).flat() : [];
  const open = whole || hidden.some(({ messageId }) => messageId === target);
  const failed = hidden.filter((step) => step.kind === "call" && step.result?.isError === true).length;
  const shown = hidden.length > 0 && !open ? groups.slice(-FOLDED_ROWS) : groups;
  return (
    <>
      {hidden.length > 0 && (
        <button type="button" class="quiet small" aria-expanded={open} onClick={() => setWhole(!open)}>
          {open ? "Show fewer steps" : `Show ${counted(hidden.length, "earlier step")}`}
          {failed > 0 && !open && <span class="steps-failed">{` · ${failed} failed`}</span>}
        </button>
      )}
      <ol class="steps rows small card">
        {shown.map((group) => (
          <Group key={group[0]?.id} group={group} running={running} />
        ))}
      </ol>
    </>
  );
}
