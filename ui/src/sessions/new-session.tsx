// The dialog that creates a session: its agent, name and label.

import { useState } from "preact/hooks";
import { LABEL_CHARS_MAX } from "../../../src/core/text/label.ts";
import { ask } from "../gateway.ts";
import { Dialog, Form } from "../parts/dialog.tsx";
import { useReading } from "../parts/reading.ts";
import { Select } from "../parts/select.tsx";
import { go } from "../route.ts";

/** Maximum length of the name. The rest of the key must have room for the agent's id. */
const NAME_MAX_CHARS = 200;

export function NewSession({ onClose }: { onClose: () => void }) {
  const { agents = [], defaultId = "" } = useReading("agents", () => ask("agents.list")).value ?? {};
  const [picked, setPicked] = useState("");
  const [label, setLabel] = useState("");
  const [name, setName] = useState("");
  const agentId = picked || defaultId;
  const create = async (): Promise<void> => {
    const named = label.trim() === "" ? {} : { label: label.trim() };
    const own = name.trim() === "" ? {} : { key: name.trim() };
    // Enter may come before the agents are known. The gateway then takes the default agent.
    const chosen = agentId === "" ? {} : { agentId };
    const { key } = await ask("sessions.create", { ...chosen, ...named, ...own });
    onClose();
    go({ view: "sessions", key });
  };
  return (
    <Dialog title="New session" onClose={onClose}>
      <Form action="Create" onSubmit={create} onClose={onClose}>
        <label>
          Agent
          <Select
            value={agentId}
            options={agents.map(({ id, name = id }) => [id, name === id ? id : `${name} (${id})`] as const)}
            onPick={setPicked}
          />
        </label>
        <label>
          Name
          <input
            value={name}
            maxLength={NAME_MAX_CHARS}
            placeholder="Random"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Label
          <input
            value={label}
            maxLength={LABEL_CHARS_MAX}
            placeholder="None"
            onInput={(event) => setLabel(event.currentTarget.value)}
          />
        </label>
      </Form>
    </Dialog>
  );
}
