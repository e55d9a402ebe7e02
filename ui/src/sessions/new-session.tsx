// The dialog that creates a session: its agent, its title (the label) and a part of its key.

import { useState } from "preact/hooks";
import { LABEL_CHARS_MAX } from "../../../src/core/text/label.ts";
import { agents } from "../agents/known.ts";
import { openToWrite } from "../conversation/drafts.ts";
import { ask } from "../gateway.ts";
import { SchemaForm } from "../inbox/form.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";

/** Maximum length of the part. The rest of the key must have room for the agent's id. */
const PART_MAX_CHARS = 200;

export function NewSession({ onClose }: { onClose: () => void }) {
  const { agents: listed = [], defaultId = "" } = agents.value ?? {};
  const [hasPart, setHasPart] = useState(false);
  const choices = listed.map(({ id, name = id }) => [id, name === id ? id : `${name} (${id})`] as const);
  const part = { name: "part", title: "Key part", setting: true, placeholder: "Random" } as const;
  return (
    <Dialog title="New session" onClose={onClose}>
      <SchemaForm
        action="Create"
        fields={[
          { name: "agentId", title: "Agent", type: "choice", choices, default: defaultId },
          { name: "label", title: "Title", setting: true, placeholder: "", maxChars: LABEL_CHARS_MAX },
          ...(hasPart ? [{ ...part, maxChars: PART_MAX_CHARS }] : []),
        ]}
        onSubmit={async ({ agentId, label, part: own }) => {
          // Enter may come before the agents are known. The gateway then takes the default agent.
          const wanted = { agentId, label: label?.trim(), key: own?.trim() };
          const given = Object.entries(wanted).filter(([, text]) => text);
          const { key } = await ask("sessions.create", Object.fromEntries(given));
          onClose();
          openToWrite(key);
        }}
        onClose={onClose}
      >
        <Button
          text="More"
          class="quiet at-start"
          aria-expanded={hasPart}
          onClick={() => setHasPart(!hasPart)}
        />
      </SchemaForm>
    </Dialog>
  );
}
