// Shows one job of the list: its message, the time of its next run, the outcome of its last run, and its
// actions.

import { cut } from "../../../../src/core/text/cut.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { now, tick } from "../../clock.ts";
import { ask, may } from "../../gateway.ts";
import type { ResourceRow, RowAction } from "../../operations/resource-list.tsx";
import { ago } from "../../parts/format.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { go } from "../../route.ts";
import { aheadWords, dateWords, elsewhere } from "./dates.ts";
import type { Job } from "./draft.ts";
import { JobForm } from "./form.tsx";
import { History, TurnState } from "./history.tsx";

const MESSAGE_SHOWN_MAX = 200;

/** Names a job in the labels of its buttons. */
const shortenName = (job: Job): string => cut(safeLine(job.name ?? job.message), 60);

function Switch({ job }: { job: Job }) {
  const { id, enabled } = job;
  if (!may("operator.admin")) return <span class="chip">{enabled ? "on" : "off"}</span>;
  return (
    <input
      type="checkbox"
      // biome-ignore lint/a11y/useAriaPropsForRole: a checkbox has its state
      role="switch"
      checked={enabled}
      aria-label={`On: ${shortenName(job)}`}
      onChange={({ currentTarget: box }) => {
        ask("cron.update", { id, patch: { enabled: !enabled } }).then(
          () => say(enabled ? "Job paused." : "Job resumed."),
          (problem: unknown) => {
            box.checked = enabled;
            complain(problem);
          },
        );
      }}
    />
  );
}

function Next({ job: { schedule, state } }: { job: Job }) {
  const { nextRunAtMs: atMs, last } = state;
  const isOver = schedule.kind === "at" && last !== undefined;
  if (atMs === undefined) return <span class="soft">{isOver ? "finished" : "paused"}</span>;
  const there = elsewhere(atMs, now(), schedule.kind === "cron" ? schedule.tz : undefined);
  return (
    <>
      {dateWords(atMs, now())} <span class="soft">{aheadWords(atMs, tick.value)}</span>
      {there !== undefined && <div class="soft small">{there}</div>}
    </>
  );
}

function Last({ job: { key, state } }: { job: Job }) {
  const { last } = state;
  if (last === undefined) return <span class="soft">no run yet</span>;
  return (
    <>
      <TurnState turn={last} /> <span class="soft">{ago(last.firedAtMs, tick.value)}</span>{" "}
      {last.runId !== undefined && <SessionLink sessionKey={key} name="conversation" />}
    </>
  );
}

function actionsOf(job: Job, isOpen: boolean): RowAction[] {
  const { id, state } = job;
  const about = shortenName(job);
  const quiet = { about, class: "quiet" } as const;
  const history: RowAction = {
    ...{ ...quiet, label: "History", expanded: isOpen },
    run: () => go({ view: "operations", tab: "schedules", about: isOpen ? undefined : id }, true),
  };
  if (!may("operator.admin")) return [history];
  return [
    history,
    {
      ...{ ...quiet, label: "Run now", done: "Job started." },
      disabled: state.last?.status === "running" || state.last?.status === "queued",
      run: () => ask("cron.run", { id }),
    },
    { ...quiet, label: "Edit", dialog: (props) => <JobForm job={job} {...props} /> },
    {
      ...{ ...quiet, label: "Remove", done: "Job removed." },
      run: () => ask("cron.remove", { id }),
      question: {
        title: "Remove this job?",
        text: (
          <p>
            <Name as="b" text={about} /> will not run again, and its history is removed. A running run
            continues; the conversation stays.
          </p>
        ),
      },
    },
  ];
}

/** `isOpen`: the history of the job is shown. */
export function jobRow(job: Job, isOpen: boolean): ResourceRow {
  const { id, name, message, schedule, words, agentId, deliver, enabled, problem, madeBy, session } = job;
  return {
    key: id,
    class: `job${enabled ? "" : " off"}`,
    state: <Switch job={job} />,
    name: name ?? cut(message, MESSAGE_SHOWN_MAX),
    body: (
      <>
        {name !== undefined && <Name as="p" class="soft cut" text={cut(message, MESSAGE_SHOWN_MAX)} />}
        {problem !== undefined && (
          <p class="tone-warn" role="note">
            Each run fails: <Name text={problem} />
          </p>
        )}
        <p class="line">
          <span>
            {words}
            {schedule.kind === "cron" && <span class="soft"> {schedule.tz}</span>}
          </span>{" "}
          <span>
            <Agent id={agentId} />
          </span>
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
      </>
    ),
    when: (
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
    ),
    actions: actionsOf(job, isOpen),
    below: isOpen && <History job={job} />,
  };
}
