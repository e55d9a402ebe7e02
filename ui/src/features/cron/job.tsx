// Shows one job of the list: its message, the time of its next run, the outcome of its last run, and its
// actions.

import { useState } from "preact/hooks";
import { cut } from "../../../../src/core/text/cut.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { now, tick } from "../../clock.ts";
import { ask, may } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/dialog.tsx";
import { ago } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { go } from "../../route.ts";
import { aheadWords, dateWords, elsewhere } from "./dates.ts";
import type { Job } from "./draft.ts";
import { History, TurnState } from "./history.tsx";

const MESSAGE_SHOWN_MAX = 200;

/**
 * Returns a short name of a job for the labels of buttons. The name is escaped, because it may come from
 * anybody.
 */
const called = (job: Job): string => cut(safeLine(job.name ?? job.message), 60);

async function attempt(work: Promise<unknown>, done: string): Promise<void> {
  try {
    await work;
    say(done);
  } catch (error) {
    complain(error);
  }
}

function Switch({ job }: { job: Job }) {
  const { id, enabled } = job;
  if (!may("operator.admin")) return <span class="chip">{enabled ? "on" : "off"}</span>;
  const flip = (): Promise<void> =>
    attempt(
      ask("cron.update", { id, patch: { enabled: !enabled } }),
      enabled ? "Job paused." : "Job resumed.",
    );
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={enabled}
      aria-label={`On: ${called(job)}`}
      onClick={flip}
    >
      <span class="knob" aria-hidden="true" />
    </button>
  );
}

function Next({ job }: { job: Job }) {
  const atMs = job.state.nextRunAtMs;
  const zone = job.schedule.kind === "cron" ? job.schedule.tz : undefined;
  if (atMs === undefined) {
    const over = job.schedule.kind === "at" && job.state.last !== undefined;
    return <span class="soft">{over ? "finished" : "paused"}</span>;
  }
  const there = elsewhere(atMs, now(), zone);
  return (
    <>
      <div>
        {dateWords(atMs, now())} <span class="soft">{aheadWords(atMs, tick.value)}</span>
      </div>
      {there !== undefined && <div class="soft small">{there}</div>}
    </>
  );
}

function Last({ job }: { job: Job }) {
  const { last } = job.state;
  if (last === undefined) return <span class="soft">no run yet</span>;
  return (
    <>
      <TurnState turn={last} /> <span class="soft">{ago(last.firedAtMs, tick.value)}</span>
      {last.runId !== undefined && (
        <>
          {" "}
          <SessionLink sessionKey={job.key} name="conversation" />
        </>
      )}
    </>
  );
}

function Actions(props: { job: Job; open: boolean; onEdit: () => void }) {
  const { job, open, onEdit } = props;
  const [asking, setAsking] = useState(false);
  const { id } = job;
  const show = (): void => go({ view: "operations", tab: "schedules", about: open ? undefined : id }, true);
  const busy = job.state.last?.status === "running" || job.state.last?.status === "queued";
  const remove = (): void => void attempt(ask("cron.remove", { id }), "Job removed.");
  return (
    <div class="job-actions bar">
      <Button
        text="History"
        class="quiet"
        aria-expanded={open}
        aria-label={`History: ${called(job)}`}
        onClick={show}
      />
      {may("operator.admin") && (
        <>
          <Button
            text="Run now"
            class="quiet"
            disabled={busy}
            aria-label={`Run now: ${called(job)}`}
            onClick={() => attempt(ask("cron.run", { id }), "Job started.")}
          />
          <Button text="Edit" class="quiet" aria-label={`Edit: ${called(job)}`} onClick={onEdit} />
          <Button
            text="Remove"
            class="quiet"
            aria-label={`Remove: ${called(job)}`}
            onClick={() => setAsking(true)}
          />
        </>
      )}
      {asking && (
        <Confirm title="Remove this job?" action="Remove" onConfirm={remove} onClose={() => setAsking(false)}>
          <p>
            <Name as="b" text={called(job)} /> will not run again, and its history is removed. A running run
            continues; the conversation stays.
          </p>
        </Confirm>
      )}
    </div>
  );
}

export function JobCard(props: { job: Job; open: boolean; onEdit: () => void }) {
  const { job, open } = props;
  const { name, message, schedule, words, agentId, deliver, enabled, problem, madeBy, session } = job;
  return (
    <li class={`card job${enabled ? "" : " off"}`}>
      <Switch job={job} />
      <div class="job-what">
        <Name as="h3" text={name ?? cut(message, MESSAGE_SHOWN_MAX)} />
        {name !== undefined && <Name as="p" class="soft one-line" text={cut(message, MESSAGE_SHOWN_MAX)} />}
        {problem !== undefined && (
          <p class="tone-warn" role="note">
            Each run fails: <Name text={problem} />
          </p>
        )}
        <p class="job-when">
          <span>
            {words}
            {schedule.kind === "cron" && <span class="soft"> {schedule.tz}</span>}
          </span>{" "}
          <span class="chip">{agentId}</span>
          {madeBy !== undefined && (
            <span class="soft">
              made by the agent in <SessionLink sessionKey={madeBy} />
            </span>
          )}
          {session === "fresh" && <span class="soft">new conversation at each run</span>}
          {deliver !== undefined && (
            <span class="soft">
              reply to <SessionLink sessionKey={deliver.to} />
            </span>
          )}
        </p>
      </div>
      <dl class="job-dates">
        <dt>Next</dt>
        <dd>
          <Next job={job} />
        </dd>
        <dt>Last</dt>
        <dd>
          <Last job={job} />
        </dd>
      </dl>
      <Actions {...props} />
      {open && <History job={job} />}
    </li>
  );
}
