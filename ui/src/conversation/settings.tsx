// Owns what can be changed about a session beside what is said in it: its label, who may send, its end.
// ST1: what can't be taken back is asked first.

import { useState } from "preact/hooks";
import { safeText } from "../../../src/core/safe-text.ts";
import { ask, may } from "../gateway.ts";
import { Confirm, Dialog, Form } from "../parts/dialog.tsx";
import { LABEL_MAX_CHARS, sessionName } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { type Option, Select } from "../parts/select.tsx";
import { go } from "../route.ts";
import type { Now } from "./thread.ts";

type Row = Now["session"];
type Question = "reset" | "delete";

type Policy = NonNullable<Row["sendPolicy"]> | "";

const POLICIES: readonly Option<Policy>[] = [
  ["", "as the settings say"],
  ["allow", "always allowed"],
  ["deny", "never allowed"],
];

/** Asks before a session is reset or deleted, and does it. */
function Asked({ row, about, onClose }: { row: Row; about: Question; onClose: () => void }) {
  const reset = about === "reset";
  const confirm = async (): Promise<void> => {
    try {
      await ask(reset ? "sessions.reset" : "sessions.delete", { key: row.key });
      // After a reset the conversation itself says so.
      if (reset) return;
      say("The session is deleted.");
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
        <bdi>{safeText(sessionName(row))}</bdi>
        {reset
          ? " begins with an empty conversation. What is under way in it is stopped; its settings stay."
          : " goes with its conversation. What is under way in it and below it is stopped."}
      </p>
    </Confirm>
  );
}

function Fields({ row, onClose }: { row: Row; onClose: () => void }) {
  const before = { label: row.label ?? "", policy: row.sendPolicy ?? "" } as const;
  const [label, setLabel] = useState(before.label);
  const [policy, setPolicy] = useState<Policy>(before.policy);
  const save = async (): Promise<void> => {
    const named = label.trim();
    await ask("sessions.patch", {
      key: row.key,
      ...(named === before.label ? {} : { label: named || null }),
      ...(policy === before.policy ? {} : { sendPolicy: policy || null }),
    });
    onClose();
  };
  return (
    <Form action="Save" onSubmit={save} onClose={onClose}>
      <label>
        Label
        <input
          value={label}
          maxLength={LABEL_MAX_CHARS}
          dir="auto"
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
      </label>
      {may("operator.admin") && (
        <label>
          Sending to this session
          <Select value={policy} options={POLICIES} onPick={setPolicy} />
        </label>
      )}
    </Form>
  );
}

/** The dialog of a session's settings, and the questions that it leads to. */
export function Settings({ row, onClose }: { row: Row; onClose: () => void }) {
  const [question, setQuestion] = useState<Question>();
  if (question !== undefined) return <Asked row={row} about={question} onClose={onClose} />;
  return (
    <Dialog title="Session settings" onClose={onClose}>
      <Fields row={row} onClose={onClose} />
      {may("operator.admin") && (
        <div class="settings-end">
          <button type="button" class="danger" onClick={() => setQuestion("reset")}>
            Reset…
          </button>
          {row.sessionKind !== "main" && (
            <button type="button" class="danger" onClick={() => setQuestion("delete")}>
              Delete…
            </button>
          )}
        </div>
      )}
    </Dialog>
  );
}
