// The form that creates or edits a job.

import { useState } from "preact/hooks";
import { THINKING_LEVELS } from "../../../../src/core/shapes/settings/settings.ts";
import { agents } from "../../agents/known.ts";
import { now } from "../../clock.ts";
import { ask } from "../../gateway.ts";
import { type Field, FormFields } from "../../inbox/form.tsx";
import { Dialog, Form } from "../../parts/dialog.tsx";
import { sessionName } from "../../parts/names.ts";
import { say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import type { Option } from "../../parts/select.tsx";
import { changedSettings, type Draft, draftOf, type Job, newJob, scheduleOf } from "./draft.ts";
import { When } from "./when.tsx";

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

async function save(job: Job | undefined, before: Draft, draft: Draft): Promise<void> {
  if (scheduleOf(draft) === undefined) throw new Error("The schedule has an empty field. Fill it in.");
  if (job === undefined) {
    await ask("cron.add", newJob(draft));
    return;
  }
  const patch = changedSettings(before, draft);
  if (Object.keys(patch).length > 0) await ask("cron.update", { id: job.id, patch });
}

const TEXTS: readonly Field[] = [
  { name: "name", title: "Name", maxChars: 200 },
  { name: "message", title: "Message to the agent", required: true, lines: 3, maxChars: 16_000 },
];

function whom({ agentId }: Draft, isNew: boolean, sessions: readonly Option<string>[]): readonly Field[] {
  const { agents: listed = [], defaultId = "" } = agents.value ?? {};
  const known = isNew
    ? [defaultId, ...listed.map(({ id }) => id).filter((id) => id !== defaultId)]
    : [agentId];
  return [
    { name: "agentId", title: "Agent", type: "choice", choices: known, disabled: !isNew },
    { name: "deliverTo", title: "Send the reply to", placeholder: "nobody", suggestions: sessions },
  ];
}

const more = (isNew: boolean): readonly Field[] => [
  { name: "missed", title: "Missed runs (gateway was down)", type: "choice", choices: MISSED },
  {
    name: "timeout",
    title: "Time limit of a run (seconds)",
    type: "integer",
    placeholder: "none",
    setting: true,
  },
  {
    ...{ name: "session", title: "Conversation", type: "choice" },
    choices: isNew ? CONVERSATIONS_OF_NEW : CONVERSATIONS,
  },
  { name: "model", title: "Model", placeholder: "Agent's default", setting: true },
  { name: "thinking", title: "Thinking", type: "choice", choices: LEVELS },
];

export function JobForm({ job, onClose }: { job: Job | undefined; onClose: () => void }) {
  const [before] = useState(() => draftOf(job, now()));
  const [draft, setDraft] = useState(before);
  const change = (part: Partial<Draft>): void => setDraft((known) => ({ ...known, ...part }));
  const isNew = job === undefined;
  const sessions = useReading("sessions", () => ask("sessions.list", { limit: SESSIONS_MAX }));
  const known = (sessions.value?.sessions ?? []).map((row) => [row.key, sessionName(row)] as const);
  const { defaultId = "" } = agents.value ?? {};
  const fieldsOf = (fields: readonly Field[]) => (
    <FormFields
      fields={fields}
      entries={{ ...draft, agentId: draft.agentId || defaultId }}
      onChange={change}
    />
  );
  return (
    <Dialog title={isNew ? "New job" : "Edit job"} onClose={onClose}>
      <Form
        class="job-form"
        action={isNew ? "Create" : "Save"}
        disabled={draft.message.trim() === ""}
        onSubmit={async () => {
          await save(job, before, draft);
          say(isNew ? "Job created." : "Job changed.");
          onClose();
        }}
        onClose={onClose}
      >
        {fieldsOf(TEXTS)}
        <When draft={draft} change={change} />
        <div class="pair">{fieldsOf(whom(draft, isNew, known))}</div>
        <details class="more">
          <summary>More</summary>
          <div class="pair">{fieldsOf(more(isNew))}</div>
        </details>
      </Form>
    </Dialog>
  );
}
