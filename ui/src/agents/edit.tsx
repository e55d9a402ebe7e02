// Adds and removes agents, and changes their models: edits the gateway's configuration file, which the
// gateway applies at once.

import { useState } from "preact/hooks";
import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { showPath } from "../../../src/core/text/value-path.ts";
import { settled } from "../clock.ts";
import { ask, coversAll, has, may } from "../gateway.ts";
import { SchemaForm } from "../inbox/form.tsx";
import { Confirm, Dialog, DialogButton } from "../parts/dialog.tsx";
import { Name } from "../parts/name.tsx";
import { complain, say } from "../parts/notices.tsx";
import { Select } from "../parts/select.tsx";
import { go } from "../route.ts";
import { change, literal } from "../setup/change.ts";
import { useModelRefs } from "./model-refs.ts";
import { changesOf, type Entries, entriesIn } from "./settings.ts";

export const mayEditAgents = (): boolean => may("operator.admin") && coversAll() && has("config.patch");

/** The ids that the settings schema accepts. */
const ID = /^[a-zA-Z0-9_-]{1,64}$/;

const pathOf = (id: string): string => showPath(["agents", "list", id]);

const ID_WORDS = "An id has 1 to 64 letters a to z, digits, - and _. The name may have any.";

/** `taken`: ids of the agents. */
export function NewAgent({ taken, onClose }: { taken: readonly string[]; onClose: () => void }) {
  const refs = useModelRefs();
  const add = async ({ id = "", name = "", model = "", workspace = "" }: Entries): Promise<void> => {
    const own = id.trim();
    if (!ID.test(own)) throw new Error(ID_WORDS);
    if (taken.includes(own.toLowerCase())) throw new Error(`There is an agent ${own} already.`);
    const entries = { name: literal(name), model: literal(model), workspace: literal(workspace) };
    const value = Object.fromEntries(Object.entries(entries).filter(([, text]) => text !== ""));
    await change([{ path: pathOf(own), value }]);
    say(`The agent ${own} was added.`);
    onClose();
  };
  return (
    <Dialog title="Add an agent" onClose={onClose}>
      <SchemaForm
        action="Add"
        fields={[
          { name: "id", title: "Id", required: true, placeholder: "research" },
          { name: "name", title: "Name for people", setting: true, placeholder: "The id" },
          { name: "model", title: "Model", type: "choice", choices: [["", "Default"], ...refs] },
          { name: "workspace", title: "Workspace", setting: true, placeholder: "A folder of its own" },
        ]}
        onSubmit={add}
        onClose={onClose}
      >
        <p class="soft">The agent is added to the gateway's configuration file.</p>
      </SchemaForm>
    </Dialog>
  );
}

/** Time after the last choice at which it is saved, because the arrow keys pass several models. */
const CHOSEN_MS = 600;
const MODEL_FIELD = { name: "model", title: "Model", type: "string", required: false } as const;

async function saveModel(agentId: string, model: string): Promise<string> {
  const { text, revision } = await ask("config.get");
  const { own: before } = entriesIn(text, agentId);
  const changes = changesOf([MODEL_FIELD], agentId, { model }, before !== undefined);
  await ask("config.patch", { changes, revision });
  return before?.model ?? "";
}

/** The model of an agent as a list to choose from, which saves the choice. */
export function ModelChoice({ agent, onSaved }: { agent: AgentDetails; onSaved: () => Promise<void> }) {
  const { id, name = id, model } = agent;
  const refs = useModelRefs();
  const [chosen, setChosen] = useState<string>();
  const done = (): Promise<void> => onSaved().finally(() => setChosen(undefined));
  const [save] = useState(() =>
    settled<string>(CHOSEN_MS, (wanted) => {
      const undo = (before: string): void => void saveModel(id, before).then(done, complain);
      saveModel(id, wanted)
        .then((before) => say(`${safeLine(name)} uses ${safeLine(wanted)} from now on.`, () => undo(before)))
        .catch(complain)
        .then(done, complain);
    }),
  );
  return (
    <Select
      aria-label={`Model of ${name}`}
      value={chosen ?? model}
      options={refs.includes(model) ? refs : [model, ...refs]}
      onPick={(wanted) => {
        setChosen(wanted);
        save(wanted);
      }}
    />
  );
}

export function RemoveAgent({ agent: { id, name = id, workspace } }: { agent: AgentDetails }) {
  const remove = (): void => {
    change([{ path: pathOf(id), unset: true }]).then(() => {
      say(`The agent ${id} was removed.`);
      go({ view: "agents" });
    }, complain);
  };
  return (
    <DialogButton
      text="Remove agent"
      class="danger at-start"
      data-act=""
      aria-label={`Remove agent ${id}`}
      dialog={(onClose) => (
        <Confirm title="Remove this agent?" action="Remove" onConfirm={remove} onClose={onClose}>
          <p>
            <Name as="b" text={name} /> leaves the configuration file. Its sessions stay in the store
            {workspace !== undefined && (
              <>
                , and its files in <Name text={workspace} />
              </>
            )}
            . Its scheduled jobs fail from now on.
          </p>
        </Confirm>
      )}
    />
  );
}
