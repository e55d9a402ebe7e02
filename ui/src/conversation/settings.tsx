// The settings of a session: title, send policy, reset and delete. Reset and delete ask for confirmation.

import { useState } from "preact/hooks";
import { optional } from "../../../src/core/optional.ts";
import { INSTRUCTIONS_CHARS_MAX } from "../../../src/core/shapes/session.ts";
import { LABEL_CHARS_MAX } from "../../../src/core/text/label.ts";
import { ask, may } from "../gateway.ts";
import { type Field, SchemaForm, type Texts } from "../inbox/form.tsx";
import { Button } from "../parts/button.tsx";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import type { Option } from "../parts/select.tsx";
import { go } from "../route.ts";
import type { Now } from "./thread.ts";

type Row = Now["session"];

const QUESTIONS = {
  reset: {
    title: "Reset this session?",
    action: "Reset",
    text: " starts an empty conversation. Its runs are stopped; its settings stay.",
  },
  delete: {
    title: "Delete this session?",
    action: "Delete",
    text: " is deleted with its conversation. Its runs and those of its sub-agents are stopped.",
  },
} as const;
type Question = keyof typeof QUESTIONS;

type Policy = NonNullable<Row["sendPolicy"]> | "";

const POLICIES: readonly Option<Policy>[] = [
  ["", "as configured"],
  ["allow", "always allowed"],
  ["deny", "never allowed"],
];

function ConfirmChange({ row, about, onClose }: { row: Row; about: Question; onClose: () => void }) {
  const { text, ...question } = QUESTIONS[about];
  const confirm = async (): Promise<void> => {
    try {
      await ask(`sessions.${about}`, { key: row.key });
      // Say nothing here after a reset, because the conversation shows a notice.
      if (about === "reset") return;
      say("Session deleted.");
      go({ view: "sessions" });
    } catch (error) {
      complain(error);
    }
  };
  return (
    <Confirm {...question} onConfirm={() => void confirm()} onClose={onClose}>
      <p>
        <Name text={nameOf(row.key)} />
        {text}
      </p>
    </Confirm>
  );
}

/** `before`: the session's instructions for its model. */
function Fields({ row, before, onClose }: { row: Row; before: string; onClose: () => void }) {
  const text = { setting: true, placeholder: "" } as const;
  const title = { name: "label", title: "Title", maxChars: LABEL_CHARS_MAX, default: row.label ?? "" };
  const instructions = { name: "instructions", title: "Instructions for the model in this session" };
  const policy = { name: "policy", title: "Sending to this session", default: row.sendPolicy ?? "" };
  const fields: readonly Field[] = [
    { ...text, ...title },
    { ...text, ...instructions, lines: 4, maxChars: INSTRUCTIONS_CHARS_MAX, default: before },
    ...(may("operator.admin") ? [{ ...policy, type: "choice", choices: POLICIES } as const] : []),
  ];
  const save = async ({ label = "", instructions = "", policy = row.sendPolicy ?? "" }: Texts) => {
    const changes = {
      label: label.trim() === (row.label ?? "") ? undefined : label.trim() || null,
      instructions: instructions === before ? undefined : instructions.trim() || null,
      sendPolicy: policy === (row.sendPolicy ?? "") ? undefined : (policy as Policy) || null,
    };
    await ask("sessions.patch", { key: row.key, ...optional(changes) });
    onClose();
  };
  return <SchemaForm action="Save" fields={fields} onSubmit={save} onClose={onClose} />;
}

export function Settings({ row, onClose }: { row: Row; onClose: () => void }) {
  const [question, setQuestion] = useState<Question>();
  const read = useReading(`instructions ${row.key}`, () =>
    ask("chat.history", { sessionKey: row.key, limit: 1 }),
  );
  if (question !== undefined) return <ConfirmChange row={row} about={question} onClose={onClose} />;
  return (
    <Dialog title="Session settings" onClose={onClose}>
      <Awaited {...read} />
      {read.value !== undefined && (
        <Fields row={row} before={read.value.instructions ?? ""} onClose={onClose} />
      )}
      {may("operator.admin") && (
        <div class="row settings-end">
          <Button text="Reset…" class="danger" onClick={() => setQuestion("reset")} />
          {row.sessionKind !== "main" && (
            <Button text="Delete…" class="danger" onClick={() => setQuestion("delete")} />
          )}
        </div>
      )}
    </Dialog>
  );
}
