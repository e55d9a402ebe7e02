// Shows the result of a sub-agent as a card: its label, its outcome and its text. A click shows keys and ids,
// too.

import type { Labels } from "../../../../src/core/shapes/labels.ts";
import { StepChips } from "../../labels/chips.tsx";
import { Lines, Name, SessionLink } from "../../parts/name.tsx";
import { State } from "../../parts/state.tsx";
import { Cost, Time } from "../../parts/time.tsx";
import { outcomeWord } from "../../parts/words.ts";
import { Prose } from "../text/text.tsx";
import type { jobResultOf } from "./job-result.ts";

export function JobCard(props: {
  job: NonNullable<ReturnType<typeof jobResultOf>>;
  sessionKey: string;
  atMs: number;
  labels: Labels | undefined;
}) {
  const { job, sessionKey, atMs, labels } = props;
  const { status, result, notes, facts, cost, plumbing } = job;
  return (
    <div class="job-card">
      <div class="line byline">
        <SessionLink sessionKey={sessionKey} />
        <State state={status} text={outcomeWord(status)} />
        {facts.map((fact) => (
          <Name as="span" key={fact} class="soft number" text={fact} />
        ))}
        {cost !== undefined && <Cost class="soft number" usd={cost} />}
        <StepChips labels={labels} />
        <Time class="number end soft small" at={atMs} />
      </div>
      {result === "" ? <p class="soft">No result text</p> : <Prose text={result} />}
      {notes !== "" && (
        <Lines class={["ok", "aborted"].includes(status) ? "soft" : "entry-error"} text={notes} />
      )}
      <details class="small plumbing">
        <summary class="soft">Details</summary>
        <dl class="facts">
          {plumbing.map(([name, value]) => (
            <>
              <dt key={name}>{name}</dt>
              <Name as="dd" key={value} class="mono" text={value} />
            </>
          ))}
        </dl>
      </details>
    </div>
  );
}
