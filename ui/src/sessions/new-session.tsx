// The dialog that creates a session: its agent, its title (the label) and a part of its key.

import { useState } from "preact/hooks";
import { LABEL_CHARS_MAX } from "../../../src/core/text/label.ts";
import { agents } from "../agents/known.ts";
import { edit } from "../conversation/drafts.ts";
import { ask } from "../gateway.ts";
import { Dialog, Form } from "../parts/dialog.tsx";
import { Select } from "../parts/select.tsx";
import { go } from "../route.ts";

/** Maximum length of the part. The rest of the key must have room for the agent's id. */
const PART_MAX_CHARS = 200;

export function NewSession({ onClose }: { onClose: () => void }) {
  const { agents: listed = [], defaultId = "" } = agents.value ?? {};
  const [picked, setPicked] = useState("");
  const [title, setTitle] = useState("");
  const [part, setPart] = useState("");
  const agentId = picked || defaultId;
  const create = async (): Promise<void> => {
    const named = title.trim() === "" ? {} : { label: title.trim() };
    const own = part.trim() === "" ? {} : { key: part.trim() };
    // Enter may come before the agents are known. The gateway then takes the default agent.
    const chosen = agentId === "" ? {} : { agentId };
    const { key } = await ask("sessions.create", { ...chosen, ...named, ...own });
    onClose();
    edit(key, "");
    go({ view: "sessions", key });
  };
  return (
    <Dialog title="New session" onClose={onClose}>
      <Form action="Create" onSubmit={create} onClose={onClose}>
        <label>
          Agent
          <Select
            value={agentId}
            options={listed.map(({ id, name = id }) => [id, name === id ? id : `${name} (${id})`] as const)}
            onPick={setPicked}
          />
        </label>
        <label>
          Title
          <input
            value={title}
            maxLength={LABEL_CHARS_MAX}
            onInput={(event) => setTitle(event.currentTarget.value)}
          />
        </label>
        <details>
          <summary>More</summary>
          <label>
            Key part
            <input
              value={part}
              maxLength={PART_MAX_CHARS}
              placeholder="Random"
              onInput={(event) => setPart(event.currentTarget.value)}
            />
          </label>
        </details>
      </Form>
    </Dialog>
  );
}
