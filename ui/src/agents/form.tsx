// The form of an agent's settings, which changes the gateway's configuration file.
// AF2: what the reader has changed stays through reconnects, visits of other views, and refusals. If somebody
//      else has changed the same setting meanwhile, the form says so, and saves only after another click.

import { Button } from "../parts/button.tsx";
import "./agents.css";
import { effect, signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { AgentDetails } from "../../../src/contract/methods/agents.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { ask, onSignedOut, wordsOf } from "../gateway.ts";
import { type Field, FormFields } from "../inbox/form.tsx";
import { Awaited, Failed } from "../parts/failure.tsx";
import { counted } from "../parts/format.ts";
import { say } from "../parts/notices.tsx";
import { useNews, useReading } from "../parts/reading.ts";
import { agentName } from "./known.ts";
import { useModelRefs } from "./model-refs.ts";
import { changesOf, describeProblem, type Entries, entriesIn, fieldsIn, unknownTools } from "./settings.ts";

/** Changed entries of each agent, and the entries of the file on which they are based. */
interface Draft {
  readonly mine: Entries;
  readonly base: Entries;
}
const drafts = signal<Readonly<Record<string, Draft>>>({});

/** If there are changes, the browser asks before it closes the page. */
effect(() => {
  if (Object.keys(drafts.value).length === 0) return;
  const stop = (event: Event): void => event.preventDefault();
  window.addEventListener("beforeunload", stop);
  return () => window.removeEventListener("beforeunload", stop);
});

onSignedOut(() => {
  drafts.value = {};
});

function keepDraft(agentId: string, draft: Draft | undefined): void {
  const { [agentId]: _, ...others } = drafts.value;
  const isEmpty = draft === undefined || Object.keys(draft.mine).length === 0;
  drafts.value = isEmpty ? others : { ...others, [agentId]: draft };
}

/** Returns the settings that somebody else has changed since the reader began to change them, too. */
function conflictsOf({ mine, base }: Draft, now: Entries): string[] {
  return Object.keys(mine).filter(
    (name) => (now[name] ?? "") !== (base[name] ?? "") && (now[name] ?? "") !== mine[name],
  );
}

/** `only`: the title of the one group that is shown. Default: all groups. */
export function AgentForm(props: { agent: AgentDetails; only?: string; onSaved: () => void }) {
  const { agent, only, onSaved } = props;
  const { id: agentId, model, approval } = agent;
  const file = useReading("config.get", () => ask("config.get"));
  const schema = useReading("config.schema", () => ask("config.schema"));
  const refs = useModelRefs();
  useNews("config", () => void file.again());
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  if (file.value === undefined) return <Awaited {...file} />;
  if (schema.value === undefined) return <Awaited {...schema} />;
  const { own, defaults } = entriesIn(file.value.text, agentId);
  // Some defaults follow from other settings: the model may be that of the first provider.
  const inherited = {
    ...(own?.model === undefined && { model }),
    ...(own?.["tools.exec.approval"] === undefined && approval && { "tools.exec.approval": approval }),
    ...defaults,
  };
  const all = fieldsIn(schema.value.settings, refs, inherited);
  const groups = only === undefined ? all : all.filter(({ title }) => title === only);
  const fields = groups.flatMap((group) => group.fields);
  const saved = own ?? {};
  const draft = drafts.value[agentId] ?? { mine: {}, base: saved };
  const conflicts = conflictsOf(draft, saved);
  const count = Object.keys(draft.mine).length;
  const change = (entries: Readonly<Record<string, unknown>>): void => {
    const edited = fields.flatMap(({ name }) => {
      const entry = String(entries[name] ?? "");
      return entry === (saved[name] ?? "") ? [] : [[name, entry] as const];
    });
    setProblem(undefined);
    keepDraft(agentId, { mine: Object.fromEntries(edited), base: count === 0 ? saved : draft.base });
  };
  const save = async (): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      const { text, revision } = await ask("config.get");
      const { own: now } = entriesIn(text, agentId);
      if (conflictsOf(draft, now ?? {}).length > conflicts.length) await file.again();
      else {
        await ask("config.patch", {
          changes: changesOf(fields, agentId, draft.mine, now !== undefined),
          revision,
        });
        keepDraft(agentId, undefined);
        say(`${agentName(agentId)} was changed. New runs use the settings at once.`);
        await file.again();
        onSaved();
      }
    } catch (error) {
      setProblem(describeProblem(wordsOf(error)));
    } finally {
      setBusy(false);
    }
  };
  const known = [...(agent.tools ?? []), ...(agent.withheld ?? []).map(({ name }) => name)];
  const warning =
    conflicts.length === 0 ? unknownTools(draft.mine, known) : conflictWords(fields, conflicts, saved);
  return (
    <form
      class="agent-form"
      aria-label={`Settings of ${safeLine(agentName(agentId))}`}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {groups.map((group) => (
        <Group key={group.title} {...group} entries={{ ...saved, ...draft.mine }} onChange={change} />
      ))}
      {(count > 0 || problem !== undefined) && (
        <div class="bar agent-save card">
          {problem !== undefined && <Failed problem={problem} />}
          <p role="status" class={warning === undefined ? "soft" : "tone-warn"}>
            {warning ?? counted(count, "change")}
          </p>
          <Button text="Discard" onClick={() => keepDraft(agentId, undefined)} />
          <button type="submit" class="primary" disabled={busy || count === 0}>
            {conflicts.length === 0 ? "Save" : "Replace it"}
          </button>
        </div>
      )}
    </form>
  );
}

function conflictWords(fields: readonly Field[], conflicts: readonly string[], now: Entries): string {
  const words = conflicts.map((name) => {
    const title = fields.find((field) => field.name === name)?.title ?? name;
    return `${title}: ${now[name] ?? "the default"}`;
  });
  return `Changed meanwhile, nothing was saved. Now ${safeLine(words.join("; "))}`;
}

/** The last group has the settings that few people need, so it is closed. */
function Group(props: {
  title: string;
  fields: readonly Field[];
  entries: Entries;
  onChange: (entries: Readonly<Record<string, unknown>>) => void;
}) {
  const { title, ...fields } = props;
  const [Box, Title] =
    title === "More settings" ? (["details", "summary"] as const) : (["section", "h3"] as const);
  return (
    <Box class="agent-group stack card" aria-label={title}>
      <Title>{title}</Title>
      <div class="agent-fields server-form">
        <FormFields {...fields} />
      </div>
    </Box>
  );
}
