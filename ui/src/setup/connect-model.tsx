// The dialog that connects a model: first a provider with its key, then one of its models. The agents use the
// model only after it has answered once. If none answers, the file is as it was before.

import { useState } from "preact/hooks";
import { ask } from "../gateway.ts";
import { type Field, SchemaForm, type Texts } from "../inbox/form.tsx";
import { Button } from "../parts/button.tsx";
import { Dialog, Form } from "../parts/dialog.tsx";
import { Awaited } from "../parts/failure.tsx";
import { complain, say } from "../parts/notices.tsx";
import { useReading } from "../parts/reading.ts";
import { Select } from "../parts/select.tsx";
import { change, literal } from "./change.ts";
import { plainHint } from "./failed-run.ts";

/** Name of the provider in the configuration whose address the reader gives. */
const SERVER = "server";
const PROVIDERS = [
  ["anthropic", "Anthropic"],
  ["openai", "OpenAI"],
  ["google", "Google"],
  [SERVER, "Ollama, or another server with the OpenAI API"],
] as const;

const SERVER_FIELDS: readonly Field[] = [
  { name: "url", title: "Address, up to the version", required: true, default: "http://127.0.0.1:11434/v1" },
  { name: "model", title: "Id of the model", required: true, placeholder: "qwen3:8b" },
];

/** Setting with the model of all agents that have no own one. */
const MODEL_PATH = "agents.defaults.model";

/** A provider in the file, and a function that removes it. */
interface Saved {
  readonly provider: string;
  readonly undo: () => Promise<void>;
}

function ProviderStep({ onDone, onClose }: { onDone: (saved: Saved) => void; onClose: () => void }) {
  const { value } = useReading("local-servers", () => ask("models.discover"));
  const locals = value?.servers ?? [];
  const choices = [
    ...locals.map(({ id, title }) => [id, `${title} on the gateway's machine`] as const),
    ...PROVIDERS,
  ];
  const fields = ({ provider = choices[0]?.[0] }: Texts): Field[] => {
    const isServer = provider === SERVER;
    const choice: Field = { name: "provider", title: "Provider", type: "choice", choices };
    if (locals.some(({ id }) => id === provider)) return [choice];
    const key: Field = { name: "key", title: "Key", secret: true, setting: true };
    return [
      choice,
      ...(isServer ? SERVER_FIELDS : []),
      isServer ? { ...key, placeholder: "None" } : { ...key, placeholder: "", required: true },
    ];
  };
  const save = async ({ provider = "", key = "", url = "", model = "" }: Texts): Promise<void> => {
    const local = locals.find(({ id }) => id === provider);
    const at = `models.providers.${provider}`;
    const apiKey = literal(key);
    const models = (local?.models ?? [model]).map((id) => ({ id: literal(id) }));
    const baseUrl = literal(local?.baseUrl ?? url).replace(/\/+$/, "");
    const server = { api: "openai-completions", baseUrl, models, ...(apiKey && { apiKey }) };
    const { agents } = await ask("agents.list");
    // Without a model of their own, the agents would use the provider before the test.
    const kept = { path: MODEL_PATH, value: literal(agents[0]?.model ?? "") };
    const undo = await change([
      kept,
      local || provider === SERVER ? { path: at, value: server } : { path: `${at}.apiKey`, value: apiKey },
    ]);
    onDone({ provider, undo });
  };
  return (
    <SchemaForm action="Continue" fields={fields} onSubmit={save} onClose={onClose}>
      <p class="soft">
        A key is saved in the gateway's configuration file. The agents use the model after a test.
      </p>
    </SchemaForm>
  );
}

function ModelStep(props: { provider: string; onUsed: () => void; onBack: () => void; onClose: () => void }) {
  const { provider, onUsed, onBack, onClose } = props;
  const read = useReading("models", () => ask("models.list"));
  const [picked, setPicked] = useState("");
  const models = (read.value?.models ?? []).filter((one) => one.provider === provider);
  const id = picked || (models[0]?.id ?? "");
  const use = async (): Promise<void> => {
    const model = `${provider}/${id}`;
    const { ok, error, hint } = await ask("models.test", { model });
    if (!ok) throw new Error([error ?? "The model did not answer.", plainHint(hint ?? "")].join(" ").trim());
    await change([{ path: MODEL_PATH, value: literal(model) }]);
    say(`The agents use ${model} now.`);
    onUsed();
  };
  return (
    <Form action="Test and use" disabled={id === ""} onSubmit={use} onClose={onClose}>
      <label>
        Model
        <Select
          value={id}
          options={models.map((one) => [one.id, one.name] as const)}
          onPick={setPicked}
          disabled={id === ""}
        />
      </label>
      {id === "" && <Awaited {...read} />}
      <p class="soft">The test asks the model for one word. It costs a few tokens.</p>
      <Button text="Change the provider or the key" class="quiet at-start" onClick={onBack} />
    </Form>
  );
}

export function ConnectModel({ onClose }: { onClose: () => void }) {
  const [saved, setSaved] = useState<Saved>();
  const back = (): void => {
    saved?.undo().catch(complain);
    setSaved(undefined);
  };
  const close = (): void => {
    back();
    onClose();
  };
  return (
    <Dialog title="Connect a model" onClose={close}>
      {saved === undefined ? (
        <ProviderStep onDone={setSaved} onClose={close} />
      ) : (
        <ModelStep provider={saved.provider} onUsed={onClose} onBack={back} onClose={close} />
      )}
    </Dialog>
  );
}
