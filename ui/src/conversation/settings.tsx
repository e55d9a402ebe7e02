// The settings of a session: title, send policy, reset and delete. Reset and delete ask for confirmation.

import { useState } from "preact/hooks";
import { INSTRUCTIONS_CHARS_MAX } from "../../../src/core/shapes/session.ts";
import { LABEL_CHARS_MAX } from "../../../src/core/text/label.ts";
import { safeText } from "../../../src/core/text/safe-text.ts";
import { ask, may } from "../gateway.ts";
import { type Field, SchemaForm, type Texts } from "../inbox/form.tsx";
import { Button } from "../parts/button.tsx";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { nameOf } from "../parts/names.ts";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import type { Option } from "../parts/select.tsx";
import { go } from "../route.ts";
import type { Now } from "./thread.ts";

type Row = Now["session"];
type Question = "reset" | "delete";

type Policy = NonNullable<Row["sendPolicy"]> | "";

const POLICIES: readonly Option<Policy>[] = [
  ["", "as configured"],
  ["allow", "always allowed"],
  ["deny", "never allowed"],
];

function ConfirmChange({ row, about, onClose }: { row: Row; about: Question; onClose: () => void }) {
  const reset = about === "reset";
  const confirm = async (): Promise<void> => {
    try {
      await ask(reset ? "sessions.reset" : "sessions.delete", { key: row.key });
      // Say nothing here after a reset, because the conversation shows a notice.
      if (reset) return;
      say("Session deleted.");
      go({ view: "sessions" });
    } catch (error) {
      complain(error);
    }
  };
  return (
    <Confirm
      title={reset ? "Reset this session?" : "Delete this session?"}
      action={reset ? "Reset" : "Delete"}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      <p>
        <bdi>{safeText(nameOf(row.key))}</bdi>
        {reset
          ? " starts an empty conversation. Its runs are stopped; its settings stay."
          : " is deleted with its conversation. Its runs and those of its sub-agents are stopped."}
      </p>
    </Confirm>
  );
}

/** `before`: the session's instructions for its model. */
function Fields({ row, before, onClose }: { row: Row; before: string; onClose: () => void }) {
  const shared = { setting: true, placeholder: "" } as const;
  const fields: readonly Field[] = [
    { ...shared, name: "label", title: "Title", maxChars: LABEL_CHARS_MAX, default: row.label ?? "" },
    {
      ...{ ...shared, name: "instructions", title: "Instructions for the model in this session" },
      ...{ lines: 4, maxChars: INSTRUCTIONS_CHARS_MAX, default: before },
    },
    {
      ...{ ...shared, name: "policy", title: "Sending to this session" },
      ...{ type: "choice", choices: POLICIES, default: row.sendPolicy ?? "" },
    },
  ];
  const save = async ({ label = "", instructions = "", policy }: Texts): Promise<void> => {
    await ask("sessions.patch", {
      key: row.key,
      ...(label.trim() === (row.label ?? "") ? {} : { label: label.trim() || null }),
      ...(instructions === before ? {} : { instructions: instructions.trim() || null }),
      ...(policy === undefined || policy === (row.sendPolicy ?? "")
        ? {}
        : { sendPolicy: (policy as Policy) || null }),
    });
    onClose();
  };
  return (
    <SchemaForm
      action="Save"
      fields={may("operator.admin") ? fields : fields.filter(({ name }) => name !== "policy")}
      onSubmit={save}
      onClose={onClose}
    />
  );
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
