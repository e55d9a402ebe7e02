// Shows the memory of an agent, and a dialog that edits it.
// If the agent changes its memory while somebody edits it, the dialog shows the new text and saves only after
// another click, so that no change is lost unseen.

import { useState } from "preact/hooks";
import type { AgentMemoryText } from "../../../src/contract/methods/agents.ts";
import { ask, may } from "../gateway.ts";
import { Dialog, DialogButton, Form } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { size } from "../parts/format.ts";
import { Lines } from "../parts/name.tsx";
import { say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

function Edit(props: { memory: AgentMemoryText; onClose: () => void; onSaved: () => void }) {
  const { onClose, onSaved } = props;
  const [memory] = useState(props.memory);
  const { agentId, maxBytes } = memory;
  const [text, setText] = useState(memory.text);
  /** The memory that a save replaces. */
  const [base, setBase] = useState(memory);
  const bytes = bytesOf(text);
  const save = async (): Promise<void> => {
    const now = await ask("agents.memory.get", { agentId });
    if (now.revision !== base.revision) return setBase(now);
    await ask("agents.memory.set", { agentId, text, revision: base.revision });
    say("The memory was saved. The next run reads it.");
    onSaved();
    onClose();
  };
  return (
    <Dialog title={`Memory of ${agentId}`} onClose={onClose}>
      <Form
        action={base === memory ? "Save" : "Replace it"}
        disabled={bytes > maxBytes || text === base.text}
        onSubmit={save}
        onClose={onClose}
      >
        <label>
          Text
          <textarea
            class="mono"
            rows={14}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <p class={bytes > maxBytes ? "tone-bad" : "soft"}>
          {size(bytes)} of {size(maxBytes)}
        </p>
        <div role="status">
          {base !== memory && (
            <>
              <p class="tone-warn">
                The agent has changed its memory meanwhile. Nothing was saved. It is now:
              </p>
              <Lines as="pre" class="sunken out-text" text={base.text} />
            </>
          )}
        </div>
      </Form>
    </Dialog>
  );
}

export function Memory({ agentId }: { agentId: string }) {
  const read = useReading(`memory ${agentId}`, () => ask("agents.memory.get", { agentId }));
  const memory = read.value;
  if (memory === undefined) return <Awaited {...read} />;
  return (
    <>
      {memory.text === "" && "empty"}
      {memory.text !== "" && (
        <details>
          <summary>{size(bytesOf(memory.text))}</summary>
          <Lines as="pre" class="sunken out-text" text={memory.text} />
        </details>
      )}
      {may("operator.write") && (
        <p>
          <DialogButton
            text="Edit"
            aria-label={`Edit the memory of ${agentId}`}
            dialog={(onClose) => <Edit memory={memory} onClose={onClose} onSaved={() => void read.again()} />}
          />
        </p>
      )}
    </>
  );
}
