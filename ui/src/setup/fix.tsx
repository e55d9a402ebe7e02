// Mends the cause of a failed run, if the page has a form for it: the key of the provider, the model of the
// session, the budget of the agent, or the limits of chains.

import { useState } from "preact/hooks";
import { mayEditAgents } from "../agents/edit.tsx";
import { AgentForm } from "../agents/form.tsx";
import { agents } from "../agents/known.ts";
import { useModelRefs } from "../agents/model-refs.ts";
import { chainLimitChanges, chainLimitsIn } from "../agents/settings.ts";
import { ask, may } from "../gateway.ts";
import { SchemaForm } from "../inbox/form.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import type { Option } from "../parts/select.tsx";
import { hrefOf } from "../route.ts";
import { change, literal } from "./change.ts";
import { FIX_WORDS, providerIn } from "./failed-run.ts";

interface Place {
  readonly agentId: string;
  readonly sessionKey: string;
  /** The model that failed. Default: that of the agent. */
  readonly model?: string | undefined;
}
type FormProps = Place & { readonly onClose: () => void };

function Key({ agentId, model, onClose }: FormProps) {
  const failed = model ?? agents.value?.agents.find(({ id }) => id === agentId)?.model;
  const refs = useModelRefs();
  const providers = new Set([failed ?? [], refs].flat().map(providerIn));
  return (
    <SchemaForm
      action="Save"
      fields={[
        {
          ...{ name: "provider", title: "Provider", type: "choice", required: true },
          choices: [...providers],
        },
        { name: "key", title: "Key", secret: true, required: true },
      ]}
      onSubmit={async ({ provider, key = "" }) => {
        await change([{ path: `models.providers.${provider}.apiKey`, value: literal(key) }]);
        say("The key was saved. New runs use it at once.");
        onClose();
      }}
      onClose={onClose}
    >
      <p class="soft">The key is saved in the gateway's configuration file.</p>
    </SchemaForm>
  );
}

function Model({ agentId, sessionKey, onClose }: FormProps) {
  const choices: readonly Option<string>[] = [["", "That of the agent"], ...useModelRefs()];
  return (
    <SchemaForm
      action="Save"
      fields={[{ name: "model", title: "Model of this conversation", type: "choice", choices }]}
      onSubmit={async ({ model }) => {
        await ask("sessions.patch", { key: sessionKey, model: model || null });
        say("The conversation uses the model from its next run on.");
        onClose();
      }}
      onClose={onClose}
    >
      <p class="soft">
        For all conversations of the agent, change <a href={hrefOf({ view: "agents", agentId })}>its model</a>
        .
      </p>
    </SchemaForm>
  );
}

function Budget({ agentId, onClose }: FormProps) {
  const read = useReading("agents", () => ask("agents.describe"));
  const agent = read.value?.agents.find(({ id }) => id === agentId);
  if (agent === undefined) return <Awaited {...read} />;
  return (
    <>
      <AgentForm agent={agent} only="Budget" onSaved={onClose} />
      <div class="actions">
        <Button text="Close" onClick={onClose} />
      </div>
    </>
  );
}

function ChainLimits({ onClose }: FormProps) {
  const read = useReading("chain limits", async () => {
    const [{ settings }, { text }] = await Promise.all([ask("config.schema"), ask("config.get")]);
    return chainLimitsIn(settings, text);
  });
  const fields = read.value;
  if (fields === undefined) return <Awaited {...read} />;
  return (
    <SchemaForm
      action="Save"
      fields={fields}
      onSubmit={async (entries) => {
        const changes = chainLimitChanges(fields, entries);
        if (changes.length > 0) await change(changes);
        say("Conversations between sessions use the limits at once.");
        onClose();
      }}
      onClose={onClose}
    />
  );
}

/** By the code of the failure. */
const FORMS: Readonly<Record<string, typeof Key>> = {
  model_unauthorized: Key,
  invalid_model: Model,
  budget_used: Budget,
  chain_limit: ChainLimits,
};

/** A button that opens the form. Draws nothing if the reader may not save it. */
export function Fix({ code, ...place }: Place & { code: string }) {
  const [open, setOpen] = useState(false);
  const { [code]: Content } = FORMS;
  // The others change the configuration file.
  const mayEdit = Content === Model ? may("operator.write") : mayEditAgents();
  if (Content === undefined || !mayEdit) return null;
  const { [code]: words = "" } = FIX_WORDS;
  const close = (): void => setOpen(false);
  return (
    <>
      <Button text={words} data-act="" onClick={() => setOpen(true)} />
      {open && (
        <Dialog title={words} onClose={close}>
          <Content {...place} onClose={close} />
        </Dialog>
      )}
    </>
  );
}
