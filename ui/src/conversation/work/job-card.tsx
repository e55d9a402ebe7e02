// Shows the result of a sub-agent as a card: its label, its outcome and its text. A click shows keys and ids,
// too.

import type { Labels } from "../../../../src/core/shapes/labels.ts";
import { safeText } from "../../../../src/core/text/safe-text.ts";
import { StepChips } from "../../labels/chips.tsx";
import { Name, SessionLink } from "../../parts/name.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
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
  const { status, result, notes, facts, plumbing } = job;
  return (
    <div class="job-card">
      <div class="line byline">
        <SessionLink sessionKey={sessionKey} />
        <State state={status} text={outcomeWord(status)} />
        {facts.map((fact) => (
          <span key={fact} class="soft number">
            <Name text={fact} />
          </span>
        ))}
        <StepChips labels={labels} />
        <Time class="soft small" at={atMs} />
      </div>
      {result === "" ? <p class="soft">No result text</p> : <Prose text={result} />}
      {notes !== "" && (
        <p class={status === "ok" ? "soft" : "entry-error"}>
          <bdi>{safeText(notes)}</bdi>
        </p>
      )}
      <details class="small plumbing">
        <summary class="soft">Details</summary>
        <dl class="facts">
          {plumbing.map(([name, value]) => (
            <>
              <dt key={name}>{name}</dt>
              <dd key={value} class="mono">
                <Name text={value} />
              </dd>
            </>
          ))}
        </dl>
      </details>
    </div>
  );
}
