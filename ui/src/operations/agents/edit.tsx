// Adds and removes agents: changes the gateway's configuration file, which the gateway applies at once.

import { useState } from "preact/hooks";
import type { AgentDetails } from "../../../../src/contract/methods/agents.ts";
import { optional } from "../../../../src/core/optional.ts";
import { showPath } from "../../../../src/core/text/value-path.ts";
import { ask, coversAll, has, may } from "../../gateway.ts";
import { Confirm, Dialog, Form } from "../../parts/dialog.tsx";
import { Name } from "../../parts/name.tsx";
import { complain, say } from "../../parts/notices.tsx";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { change, literal } from "../../setup/change.ts";

/** Returns whether the reader may change the configuration file. */
export const mayEditAgents = (): boolean => may("operator.admin") && coversAll() && has("config.patch");

const pathOf = (id: string): string => showPath(["agents", "list", id]);

interface Field {
  readonly title: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly onText: (text: string) => void;
}

function TextField({ title, value, placeholder, required = false, onText }: Field) {
  return (
    <label>
      {title}
      <input
        value={value}
        placeholder={placeholder}
        required={required}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    </label>
  );
}

function NewAgent({ taken, onClose }: { taken: readonly string[]; onClose: () => void }) {
  const models = useReading("models", () => ask("models.list"));
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const [model, setModel] = useState("");
  const [workspace, setWorkspace] = useState("");
  const refs = (models.value?.models ?? []).map((one) => `${one.provider}/${one.id}`);
  const options = [["", "Default"] as const, ...refs.map((ref) => [ref, ref] as const)];
  const add = async (): Promise<void> => {
    const own = id.trim();
    if (taken.includes(own.toLowerCase())) throw new Error(`There is an agent ${own} already.`);
    const given = (text: string): string | undefined => literal(text) || undefined;
    const value = optional({ name: given(name), model: given(model), workspace: given(workspace) });
    await change([{ path: pathOf(own), value }]);
    say(`The agent ${own} was added.`);
    onClose();
  };
  return (
    <Dialog title="Add an agent" onClose={onClose}>
      <Form action="Add" onSubmit={add} onClose={onClose}>
        <TextField title="Id" value={id} placeholder="research" required onText={setId} />
        <TextField title="Name for people" value={name} placeholder="The id" onText={setName} />
        <label>
          Model
          <Select value={model} options={options} onPick={setModel} />
        </label>
        <TextField
          title="Workspace"
          value={workspace}
          placeholder="A folder of its own"
          onText={setWorkspace}
        />
        <p class="soft">The agent is added to the gateway's configuration file.</p>
      </Form>
    </Dialog>
  );
}

/** A button with the form for a new agent. `taken`: ids of the agents. */
export function AddAgent({ taken }: { taken: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="primary" data-act="" onClick={() => setOpen(true)}>
        Add agent
      </button>
      {isOpen && <NewAgent taken={taken} onClose={() => setOpen(false)} />}
    </>
  );
}

/** A button that removes an agent after a question. */
export function RemoveAgent({ agent: { id, name = id, workspace } }: { agent: AgentDetails }) {
  const [isAsking, setAsking] = useState(false);
  const remove = (): void => {
    change([{ path: pathOf(id), unset: true }]).then(() => say(`The agent ${id} was removed.`), complain);
  };
  return (
    <div class="bar">
      <button type="button" onClick={() => setAsking(true)}>
        Remove agent<span class="visually-hidden"> {id}</span>
      </button>
      {isAsking && (
        <Confirm
          title="Remove this agent?"
          action="Remove"
          onConfirm={remove}
          onClose={() => setAsking(false)}
        >
          <p>
            <b>
              <Name text={name} />
            </b>{" "}
            leaves the configuration file. Its sessions stay in the store
            {workspace !== undefined && (
              <>
                , and its files in <Name text={workspace} />
              </>
            )}
            . Its scheduled jobs fail from now on.
          </p>
        </Confirm>
      )}
    </div>
  );
}
