// Owns the making of a session by hand: whose it is, and what it is called.

import { useState } from "preact/hooks";
import { safeLine } from "../../../src/core/safe-text.ts";
import { ask } from "../gateway.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Failed } from "../parts/failure.tsx";
import { LABEL_MAX_CHARS } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { go } from "../route.ts";

export function NewSession({ onClose }: { onClose: () => void }) {
  const agents = useReading("agents", () => ask("agents.list", {}));
  const [agentId, setAgentId] = useState<string>();
  const [label, setLabel] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const chosen = agentId ?? agents.value?.defaultId;
  const create = (event: Event): void => {
    event.preventDefault();
    if (busy || chosen === undefined) return;
    setBusy(true);
    const named = label.trim() === "" ? {} : { label: label.trim() };
    ask("sessions.create", { agentId: chosen, ...named }).then(
      ({ key }) => {
        onClose();
        go({ view: "sessions", key });
      },
      (failure: unknown) => {
        setBusy(false);
        setProblem(failure);
      },
    );
  };
  return (
    <Dialog title="New session" onClose={onClose}>
      <form class="session-form" onSubmit={create}>
        <label>
          Agent
          <select value={chosen} onChange={(event) => setAgentId(event.currentTarget.value)}>
            {agents.value?.agents.map(({ id, name }) => (
              <option key={id} value={id}>
                {safeLine(name === undefined || name === id ? id : `${name} (${id})`)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Label
          <input
            value={label}
            maxLength={LABEL_MAX_CHARS}
            placeholder="None"
            onInput={(event) => setLabel(event.currentTarget.value)}
          />
        </label>
        {problem !== undefined && <Failed problem={problem} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || chosen === undefined}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
