// Owns what can be changed about a session beside what is said in it: its label, who may send, its end.
// ST1: what can't be taken back is asked first.

import { useState } from "preact/hooks";
import { safeText } from "../../../src/core/safe-text.ts";
import { ask, may, wordsOf } from "../gateway.ts";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { LABEL_MAX_CHARS, sessionName } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { go } from "../route.ts";
import type { Now } from "./thread.ts";

type Row = Now["session"];
type Question = "reset" | "delete";

const POLICIES = [
  { value: "", text: "as the settings say" },
  { value: "allow", text: "always allowed" },
  { value: "deny", text: "never allowed" },
] as const;

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

function Form({ row, onClose }: { row: Row; onClose: () => void }) {
  const [label, setLabel] = useState(row.label ?? "");
  const [policy, setPolicy] = useState<string>(row.sendPolicy ?? "");
  const [problem, setProblem] = useState<string>();
  const save = async (): Promise<void> => {
    const named = label.trim();
    try {
      await ask("sessions.patch", {
        key: row.key,
        ...(named === (row.label ?? "") ? {} : { label: named === "" ? null : named }),
        ...(policy === (row.sendPolicy ?? "")
          ? {}
          : { sendPolicy: policy === "" ? null : (policy as "allow" | "deny") }),
      });
      onClose();
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return (
    <form
      class="settings-form"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
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
          <select value={policy} onChange={(event) => setPolicy(event.currentTarget.value)}>
            {POLICIES.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
      )}
      {problem !== undefined && (
        <p class="composer-problem" role="alert">
          <bdi>{safeText(problem)}</bdi>
        </p>
      )}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Save
        </button>
      </div>
    </form>
  );
}

/** The dialog of a session's settings, and the questions that it leads to. */
export function Settings({ row, onClose }: { row: Row; onClose: () => void }) {
  const [question, setQuestion] = useState<Question>();
  if (question !== undefined) return <Asked row={row} about={question} onClose={onClose} />;
  return (
    <Dialog title="Session settings" onClose={onClose}>
      <Form row={row} onClose={onClose} />
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
