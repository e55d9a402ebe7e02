// Owns the form in which a job is made or changed.

import { useId, useMemo, useState } from "preact/hooks";
import { safeLine, safeText } from "../../../../src/core/safe-text.ts";
import { now } from "../../clock.ts";
import { ask, wordsOf } from "../../gateway.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { sessionName } from "../../parts/name.tsx";
import { say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { type Draft, draftOf, type Job, newJob, patchOf, scheduleOf } from "./draft.ts";
import { When, type WhenProps } from "./when.tsx";

/** Sessions that are offered; any other may be typed. */
const SESSIONS_MAX = 50;
const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Which agent, and what its answer is for. */
function Whom({ draft, change, fixed }: WhenProps & { fixed: boolean }) {
  const agents = useReading("agents", () => ask("agents.list"));
  const sessions = useReading("sessions", () => ask("sessions.list", { limit: SESSIONS_MAX }));
  const known = useId();
  const defaultId = agents.value?.defaultId ?? "";
  return (
    <div class="pair">
      <label>
        <span>Agent</span>
        <select
          disabled={fixed}
          value={draft.agentId === "" ? defaultId : draft.agentId}
          onChange={(event) => change({ agentId: event.currentTarget.value })}
        >
          {fixed && <option value={draft.agentId}>{draft.agentId}</option>}
          {!fixed &&
            (agents.value?.agents ?? []).map(({ id }) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
        </select>
      </label>
      <label>
        <span>
          Tell the reply to <span class="soft">optional</span>
        </span>
        <input
          value={draft.deliverTo}
          placeholder="nobody"
          list={known}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => change({ deliverTo: event.currentTarget.value })}
        />
        <datalist id={known}>
          {sessions.value?.sessions.map((row) => (
            <option key={row.key} value={row.key}>
              {safeLine(sessionName(row))}
            </option>
          ))}
        </datalist>
      </label>
    </div>
  );
}

/** What is seldom set. */
function More({ draft, change }: WhenProps) {
  return (
    <details class="more">
      <summary>More</summary>
      <div class="pair">
        <label>
          <span>Dates that pass while no gateway is there</span>
          <select
            value={draft.missed}
            onChange={(event) => change({ missed: event.currentTarget.value as Draft["missed"] })}
          >
            <option value="once">are made up for, once</option>
            <option value="skip">are left out</option>
          </select>
        </label>
        <label>
          <span>
            Time limit of a run <span class="soft">seconds</span>
          </span>
          <input
            type="number"
            min={0}
            value={draft.timeout}
            placeholder="none"
            onInput={(event) => change({ timeout: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>Model</span>
          <input
            value={draft.model}
            placeholder="the agent's"
            spellcheck={false}
            onInput={(event) => change({ model: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>Thinking</span>
          <select
            value={draft.thinking}
            onChange={(event) => change({ thinking: event.currentTarget.value })}
          >
            <option value="">the agent's</option>
            {LEVELS.map((level) => (
              <option key={level} value={level}>
                {level}
              </option>
            ))}
          </select>
        </label>
      </div>
    </details>
  );
}

async function save(job: Job | undefined, before: Draft, draft: Draft): Promise<void> {
  const schedule = scheduleOf(draft);
  if (schedule === undefined) throw new Error("When is it due? A field is empty.");
  if (job === undefined) {
    await ask("cron.add", newJob(draft, schedule));
    return;
  }
  const patch = patchOf(before, draft, schedule);
  if (Object.keys(patch).length > 0) await ask("cron.update", { id: job.id, patch });
}

function Texts({ draft, change }: WhenProps) {
  return (
    <>
      <label>
        <span>
          Name <span class="soft">optional</span>
        </span>
        <input
          value={draft.name}
          maxLength={200}
          onInput={(event) => change({ name: event.currentTarget.value })}
        />
      </label>
      <label>
        <span>What the agent is told</span>
        <textarea
          required
          rows={3}
          maxLength={16_000}
          value={draft.message}
          onInput={(event) => change({ message: event.currentTarget.value })}
        />
      </label>
    </>
  );
}

/** `job`: the one that is changed; without it a new one is made. */
export function JobForm({ job, onClose }: { job: Job | undefined; onClose: (changed: boolean) => void }) {
  const before = useMemo(() => draftOf(job, now()), [job]);
  const [draft, setDraft] = useState(before);
  const [problem, setProblem] = useState<string | undefined>();
  const [busy, setBusy] = useState(false);
  const change = (part: Partial<Draft>): void => setDraft((known) => ({ ...known, ...part }));
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    save(job, before, draft)
      .then(
        () => {
          say(job === undefined ? "The job is scheduled." : "The job is changed.");
          onClose(true);
        },
        (error: unknown) => setProblem(wordsOf(error)),
      )
      .finally(() => setBusy(false));
  };
  return (
    <Dialog title={job === undefined ? "New job" : "Change the job"} onClose={() => onClose(false)}>
      <form class="job-form" onSubmit={submit}>
        <Texts draft={draft} change={change} />
        <When draft={draft} change={change} />
        <Whom draft={draft} change={change} fixed={job !== undefined} />
        <More draft={draft} change={change} />
        {problem !== undefined && (
          <p class="problem" role="alert">
            <bdi>{safeText(problem)}</bdi>
          </p>
        )}
        <div class="actions">
          <button type="button" onClick={() => onClose(false)}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy}>
            {job === undefined ? "Schedule it" : "Save"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
