// The form that creates or edits a job.

import { useId, useMemo, useState } from "preact/hooks";
import { THINKING_LEVELS } from "../../../../src/core/shapes/settings/settings.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import { agents } from "../../agents/known.ts";
import { now } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { Dialog, Form } from "../../parts/dialog.tsx";
import { sessionName } from "../../parts/names.ts";
import { say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { type Option, Select } from "../../parts/select.tsx";
import { type Draft, draftOf, type Job, newJob, patchOf, scheduleOf } from "./draft.ts";
import { When, type WhenProps } from "./when.tsx";

/** Maximum number of sessions that are suggested. The reader can type any other key. */
const SESSIONS_MAX = 50;
const LEVELS: readonly Option<string>[] = [["", "Agent's default"], ...THINKING_LEVELS];
const MISSED = [
  ["once", "run once, late"],
  ["skip", "skip"],
] as const;

const CONVERSATIONS = [
  ["keep", "one for all runs"],
  ["fresh", "a new one at each run"],
] as const;
const CONVERSATIONS_OF_NEW = [["", "new at each run if the reply is sent"], ...CONVERSATIONS] as const;

/** The fields for the agent of the job, and for the destination of its reply. */
function Whom({ draft, change, fixed }: WhenProps & { fixed: boolean }) {
  const { agents: listed = [], defaultId = "" } = agents.value ?? {};
  const sessions = useReading("sessions", () => ask("sessions.list", { limit: SESSIONS_MAX }));
  const known = useId();
  return (
    <div class="pair">
      <label>
        <span>Agent</span>
        <Select
          disabled={fixed}
          value={draft.agentId || defaultId}
          options={fixed ? [draft.agentId] : listed.map(({ id }) => id)}
          onPick={(agentId) => change({ agentId })}
        />
      </label>
      <label>
        <span>
          Send the reply to <span class="soft">optional</span>
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

/** The fields that are rarely used. */
function More({ draft, change, fixed }: WhenProps & { fixed: boolean }) {
  return (
    <details class="more">
      <summary>More</summary>
      <div class="pair">
        <label>
          <span>Missed runs (gateway was down)</span>
          <Select value={draft.missed} options={MISSED} onPick={(missed) => change({ missed })} />
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
          <span>Conversation</span>
          <Select
            value={draft.session}
            options={fixed ? CONVERSATIONS : CONVERSATIONS_OF_NEW}
            onPick={(session) => change({ session })}
          />
        </label>
        <label>
          <span>Model</span>
          <input
            value={draft.model}
            placeholder="Agent's default"
            spellcheck={false}
            onInput={(event) => change({ model: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>Thinking</span>
          <Select value={draft.thinking} options={LEVELS} onPick={(thinking) => change({ thinking })} />
        </label>
      </div>
    </details>
  );
}

async function save(job: Job | undefined, before: Draft, draft: Draft): Promise<void> {
  const schedule = scheduleOf(draft);
  if (schedule === undefined) throw new Error("The schedule has an empty field. Fill it in.");
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
        <span>Message to the agent</span>
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

/** Shows the form for `job`. If `job` is undefined, the form creates a new job. */
export function JobForm({ job, onClose }: { job: Job | undefined; onClose: () => void }) {
  const before = useMemo(() => draftOf(job, now()), [job]);
  const [draft, setDraft] = useState(before);
  const change = (part: Partial<Draft>): void => setDraft((known) => ({ ...known, ...part }));
  const isNew = job === undefined;
  const submit = async (): Promise<void> => {
    await save(job, before, draft);
    say(isNew ? "Job created." : "Job changed.");
    onClose();
  };
  return (
    <Dialog title={isNew ? "New job" : "Edit job"} onClose={onClose}>
      <Form class="job-form" action={isNew ? "Create" : "Save"} onSubmit={submit} onClose={onClose}>
        <Texts draft={draft} change={change} />
        <When draft={draft} change={change} />
        <Whom draft={draft} change={change} fixed={!isNew} />
        <More draft={draft} change={change} fixed={!isNew} />
      </Form>
    </Dialog>
  );
}
