// Shows the sub-agents that one run has spawned as a table: label, state, time and cost. A click stops a
// job, or shows its result.

import { useContext, useState } from "preact/hooks";
import type { ListedRow } from "../../../../src/contract/client/web.ts";
import { fieldsOf } from "../../../../src/core/json.ts";
import { isSilent } from "../../../../src/core/rules/turn-rules.ts";
import { textOf } from "../../../../src/core/shapes/message.ts";
import { tick } from "../../clock.ts";
import { ask, may } from "../../gateway.ts";
import { StepChips } from "../../labels/chips.tsx";
import { Button } from "../../parts/button.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { counted, duration } from "../../parts/format.ts";
import { lazy } from "../../parts/lazy.tsx";
import { Name, SessionLink } from "../../parts/name.tsx";
import { nameOf } from "../../parts/names.ts";
import { complain } from "../../parts/notices.tsx";
import { useNews, useReading } from "../../parts/reading.ts";
import { State } from "../../parts/state.tsx";
import { Cost } from "../../parts/time.tsx";
import type { Step } from "../items.ts";
import { OpenSession } from "../open-session.ts";
import { Prose, scrolls } from "../text/text.tsx";
import { keyFor } from "./call-row.tsx";
import { type CallStep, parsed, resultText, sessionOf, textFrom } from "./calls.ts";

const Failure = lazy(async () => (await import("./views.tsx")).Failure);

/** Maximum number of keys in one request, a limit of the gateway. */
const KEYS_MAX = 200;
/** Messages to read from the end of a transcript. They usually contain its last text. */
const LAST_MESSAGES = 8;

export function isSpawn(step: Step): step is CallStep {
  return step.kind === "call" && step.call?.name === "sessions_spawn";
}

const KINDS = { running: "busy", done: "good", stopped: "warn", failed: "bad", gone: "quiet" } as const;

interface JobState {
  readonly kind: keyof typeof KINDS;
  readonly words: string;
}

/** `row`: undefined if it is not known yet, null if the session is deleted or not visible. */
function stateOf(step: CallStep, row: ListedRow | null | undefined, running: boolean): JobState | undefined {
  const { result } = step;
  if (result === undefined)
    return running ? { kind: "running", words: "starting" } : { kind: "gone", words: "not started" };
  if (result.isError) {
    const { code } = fieldsOf(parsed(resultText(result)));
    const why = typeof code === "string" ? `: ${code.replaceAll("_", " ")}` : "";
    return { kind: "failed", words: `refused${why}` };
  }
  if (row === undefined) return undefined;
  if (row === null) return { kind: "gone", words: "deleted" };
  if (row.failure !== undefined) {
    const { code, reason = code } = row.failure;
    return { kind: "failed", words: `failed: ${reason}` };
  }
  if (row.state !== "idle") return { kind: "running", words: row.state };
  return row.abortedLastRun ? { kind: "stopped", words: "stopped" } : { kind: "done", words: "done" };
}

function Result({ step, sessionKey }: { step: CallStep; sessionKey: string | undefined }) {
  const { value, problem, again } = useReading(sessionKey ?? step.id, async () => {
    if (sessionKey === undefined) return undefined;
    const { messages } = await ask("chat.history", { sessionKey, limit: LAST_MESSAGES });
    const texts = messages.flatMap((one) => (one.role === "assistant" ? [textOf(one)] : []));
    return texts.findLast((text) => !isSilent(text)) ?? "";
  });
  if (sessionKey === undefined) return step.result && <Failure result={step.result} />;
  if (value === undefined) return <Awaited problem={problem} again={again} />;
  return value === "" ? <p class="soft">No text yet</p> : <Prose text={value} />;
}

interface JobProps {
  readonly step: CallStep;
  readonly sessionKey: string | undefined;
  readonly row: ListedRow | null | undefined;
  readonly state: JobState | undefined;
  /** True if its result is shown at first. */
  readonly opened: boolean;
}

function Job({ step, sessionKey, row, state, opened }: JobProps) {
  const { target } = useContext(OpenSession);
  const [open, setOpen] = useState(opened);
  const given = textFrom(step.call?.arguments ?? {}, ["label", "task"]);
  const name = given ?? (sessionKey === undefined ? "sub-agent" : nameOf(sessionKey));
  const running = state?.kind === "running";
  const stops = running && !open;
  const hasButton = step.result !== undefined && state !== undefined && row !== null;
  return (
    <>
      <tr
        data-id={step.id}
        data-message={step.messageId}
        class={step.messageId === target ? "entry-marked" : undefined}
      >
        <th scope="row">
          {sessionKey === undefined || row === null ? (
            <Name text={name} />
          ) : (
            <SessionLink sessionKey={sessionKey} name={name} />
          )}
          <StepChips labels={step.labels} />
        </th>
        <td class="job-state">
          {state !== undefined && (
            <State
              state={state.kind}
              tone={state.words === "waiting" ? "waiting" : KINDS[state.kind]}
              text={<Name text={state.words} title={state.words} />}
            />
          )}
        </td>
        <td class="number">
          {row && duration(Math.max(0, (running ? tick.value : row.updatedAt) - row.createdAt))}
        </td>
        <td class="number">{row && <Cost usd={row.cost} />}</td>
        <td class="number">
          {hasButton && (!stops || may("operator.write")) && (
            <Button
              text={stops ? "Stop" : open ? "Hide" : "Result"}
              class="quiet small"
              aria-expanded={stops ? undefined : open}
              aria-label={stops ? `Stop ${name}` : `${open ? "Hide result" : "Result"} of ${name}`}
              onClick={() => {
                if (stops) ask("chat.abort", { sessionKey: sessionKey ?? "" }).catch(complain);
                else setOpen(!open);
              }}
            />
          )}
        </td>
      </tr>
      {open && (
        <tr class="job-result">
          <td colSpan={5}>
            <Result step={step} sessionKey={sessionKey} />
          </td>
        </tr>
      )}
    </>
  );
}

export function Spawns({ steps, running }: { steps: readonly CallStep[]; running: boolean }) {
  const { agentId } = useContext(OpenSession);
  const [onlyFailed, setOnlyFailed] = useState(false);
  const children = steps.map(({ call, result }) => {
    if (call === undefined || result === undefined || result.isError) return undefined;
    const key = sessionOf(call, resultText(result));
    return key === undefined ? undefined : keyFor(key, agentId);
  });
  const keys = children.filter((key) => key !== undefined).slice(0, KEYS_MAX);
  const { value, again } = useReading(keys.join("\n"), async () =>
    keys.length === 0
      ? { sessions: [] }
      : ask("sessions.list", { keys, limit: KEYS_MAX, includeArchived: true }),
  );
  useNews("sessions", again, ({ key }) => keys.includes(key));
  const jobs = steps.map((step, at) => {
    const sessionKey = children[at];
    const isKnown = value !== undefined && sessionKey !== undefined;
    const row = isKnown ? (value.sessions.find(({ key }) => key === sessionKey) ?? null) : undefined;
    return { step, sessionKey, row, state: stateOf(step, row, running) };
  });
  const cost = jobs.reduce((sum, { row }) => sum + (row?.cost ?? 0), 0);
  const count = (kind: JobState["kind"]): string => {
    const fitting = jobs.filter(({ state }) => state?.kind === kind);
    return fitting.length === 0 ? "" : `${fitting.length} ${kind}`;
  };
  const failed = count("failed");
  return (
    <div class="jobs">
      <p class="line jobs-sum soft">
        <strong>{counted(steps.length, "job")}</strong>
        {(["running", "done", "stopped"] as const)
          .map(count)
          .map((words) => words !== "" && <span key={words}>{words}</span>)}
        {failed !== "" && (
          <Button
            text={failed}
            class="quiet steps-failed"
            aria-pressed={onlyFailed}
            title="Show only these, with their errors"
            onClick={() => setOnlyFailed(!onlyFailed)}
          />
        )}
        {cost > 0 && <Cost usd={cost} />}
      </p>
      <div class="scroll-x" {...scrolls("Jobs")}>
        <table>
          <thead>
            <tr>
              <th>Job</th>
              <th>State</th>
              <th class="number">Time</th>
              <th class="number">Cost</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {jobs
              .filter(({ state }) => !onlyFailed || state?.kind === "failed")
              .map((job) => (
                <Job key={`${job.step.id} ${onlyFailed}`} {...job} opened={onlyFailed} />
              ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
