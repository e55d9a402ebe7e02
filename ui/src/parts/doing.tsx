// Shows how a session is doing: its state or last failure, the sessions that it waits for, and its jobs. Its
// row and the header of its conversation show the same.

import type { ListedRow } from "../../../src/contract/client/web.ts";
import { tick } from "../clock.ts";
import { needOf, permissionsOf } from "../inbox/model.ts";
import { Button } from "./button.tsx";
import { clockTime, failureWords } from "./format.ts";
import { Name, SessionLink } from "./name.tsx";
import { State } from "./state.tsx";

const WAITS_SHOWN_MAX = 2;
/** Maximum number of children that the gateway counts. */
const CHILDREN_COUNTED_MAX = 1_000;

function LastFailure({ failure }: { failure: NonNullable<ListedRow["failure"]> }) {
  const { endedAt, code, reason = code } = failure;
  return (
    <span class="session-failed">
      <State
        state="failed"
        text={
          <Name
            text={failureWords(failure, tick.value)}
            title={`${clockTime(endedAt, true)}, ${code}: ${reason}`}
          />
        }
      />
    </span>
  );
}

function Now({ row, tabIndex }: DoingProps) {
  const { state, queuedRuns, failure, jobs, waitingOn = [] } = row;
  if (permissionsOf(row.key).length > 0)
    return <State state="waiting" text="needs you: permission" tone="warn" />;
  if (failure !== undefined) return <LastFailure failure={failure} />;
  const need = state === "idle" ? needOf(row.key) : undefined;
  if (need !== undefined) return <State state="waiting" text={`needs you: ${need}`} />;
  if (state === "idle") return jobs === undefined ? <State state={state} /> : null;
  const queued = queuedRuns > 0 ? `, ${queuedRuns} queued` : "";
  if (state === "queued") return <State state={state} text={`queued ${queuedRuns}`} />;
  if (row.hold === "held") return <State state="held" text={`held${queued}`} />;
  if (state === "running" || waitingOn.length === 0)
    return <State state={state} text={`${state}${queued}`} />;
  return (
    <span class="session-waits">
      <State state={state} text="waiting on" />{" "}
      {waitingOn.slice(0, WAITS_SHOWN_MAX).map((key, index) => (
        <span key={key}>
          {index > 0 && ", "}
          <SessionLink sessionKey={key} tabIndex={tabIndex} />
        </span>
      ))}
      {waitingOn.length > WAITS_SHOWN_MAX && ` +${waitingOn.length - WAITS_SHOWN_MAX}`}
      {queued}
    </span>
  );
}

/** Shows how many spawned sessions are in each state: "12 running · 17 done · 2 stopped · 1 failed". */
function Jobs({ row: { children = 0, jobs }, onFailed }: DoingProps) {
  if (jobs === undefined) return null;
  const more = children >= CHILDREN_COUNTED_MAX ? "+" : "";
  const parts = [
    { count: jobs.running, words: `${jobs.running} running`, tone: "tone-busy" },
    { count: jobs.done, words: `${jobs.done}${more} done`, tone: "" },
    { count: jobs.stopped, words: `${jobs.stopped} stopped`, tone: "" },
    { count: jobs.failed, words: `${jobs.failed} failed`, tone: "tone-bad" },
  ].filter(({ count }) => count > 0);
  return (
    <span class="session-jobs" title="Spawned sessions">
      {parts.map(({ words, tone }, at) => (
        <span key={at}>
          {at > 0 && " · "}
          {tone === "tone-bad" && onFailed !== undefined ? (
            <Button text={words} class={`quiet ${tone}`} title="Show the failed jobs" onClick={onFailed} />
          ) : (
            <span class={tone}>{words}</span>
          )}
        </span>
      ))}
    </span>
  );
}

interface DoingProps {
  readonly row: ListedRow;
  /** Of the links to the sessions for which this one waits. */
  readonly tabIndex?: -1 | undefined;
  /** Shows the failed jobs. Without it, their count is text. */
  readonly onFailed?: (() => void) | undefined;
}

export function Doing(props: DoingProps) {
  return (
    <>
      <Now {...props} />
      <Jobs {...props} />
    </>
  );
}
