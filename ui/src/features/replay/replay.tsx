// The page that replays a chain: the changes, the progress, and the outcome. The address ends with the step
// from which models answer.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EventPayloads } from "../../../../src/contract/events.ts";
import { optional } from "../../../../src/core/optional.ts";
import { head } from "../../../../src/core/text/cut.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import type { ReplayOutcome } from "../../../../src/features/replay/contract.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { useModelRefs } from "../../agents/model-refs.ts";
import { type ChainPageProps, isReplayable } from "../../flow/actions.tsx";
import { agentsIn } from "../../flow/state.ts";
import { sentence } from "../../flow/words.ts";
import { ask, on } from "../../gateway.ts";
import { type Field, FormFields, type Texts } from "../../inbox/form.tsx";
import { Button } from "../../parts/button.tsx";
import { Form } from "../../parts/dialog.tsx";
import { clockTime, counted } from "../../parts/format.ts";
import { Name } from "../../parts/name.tsx";
import { sessionName } from "../../parts/names.ts";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { Cost } from "../../parts/time.tsx";
import { go } from "../../route.ts";
import { keepInTab, tabStorage } from "../../token.ts";
import { Columns, LabelDifferences, Side } from "./columns.tsx";

const SIDES = ["Record", "Replay"] as const;
const OPTION_CHARS_MAX = 120;

const MESSAGE: Field = {
  ...{ name: "message", title: "First message", setting: true, lines: 2, placeholder: "As recorded" },
};
const REPEAT: Field = {
  ...{ name: "repeat", title: "Replays", setting: true, type: "integer", placeholder: "1" },
};

function modelField(agentId: string, title: string, models: readonly string[]): Field {
  const choices = [["", "As recorded"] as const, ...models];
  return { name: `model ${agentId}`, title, type: "choice", choices };
}

interface FieldsProps {
  /** Those of the fields that were changed: `model <agent>`, `instructions <agent>`, `message`, `repeat`. */
  readonly changes: Texts;
  readonly onChange: (changes: Texts) => void;
}

/** The changes of one agent. Its instructions begin as they are now. */
function AgentChanges(props: FieldsProps & { agentId: string; models: readonly string[] }) {
  const { agentId, models, changes, onChange } = props;
  const { value } = useReading(`prompt ${agentId}`, () => ask("agents.prompt", { agentId }));
  const now = value?.parts.find(({ title }) => title === "Instructions in the settings")?.text ?? "";
  const name = `instructions ${agentId}`;
  return (
    <details aria-label={agentId}>
      <summary>
        <Agent id={agentId} />
      </summary>
      <FormFields
        fields={[
          modelField(agentId, "Model", models),
          { name, title: "Instructions", setting: true, lines: 4 },
        ]}
        entries={{ [name]: now, ...changes }}
        onChange={({ [name]: text, ...others }) =>
          onChange({ ...others, ...(text === now ? {} : { [name]: text }) } as Texts)
        }
      />
    </details>
  );
}

function FromStep({ chain, steps, around, about = "" }: ChainPageProps) {
  const options = useMemo(
    () =>
      steps.filter(isReplayable).map((step) => {
        const words = head(sentence(step, around), OPTION_CHARS_MAX);
        return [step.messageId ?? "", `${clockTime(step.at)} ${words}`] as const;
      }),
    [steps, around],
  );
  const isKnown = about === "" || options.some(([id]) => id === about);
  return (
    <label>
      From step
      <Select
        value={about}
        options={[["", "The first that differs"], ...(isKnown ? [] : [about]), ...options]}
        onPick={(id) =>
          go({ view: "flow", chainId: chain.chainId, page: "replay", about: id || undefined }, true)
        }
      />
    </label>
  );
}

function Fields({ page, changes, onChange }: FieldsProps & { page: ChainPageProps }) {
  const models = useModelRefs();
  const draw = (...fields: readonly Field[]) => (
    <FormFields fields={fields} entries={changes} onChange={(next) => onChange(next as Texts)} />
  );
  return (
    <>
      <p class="soft">
        With changes, models are called for what differs, and cost money. Tools answer from the record.
      </p>
      {draw(modelField("*", "Model of every agent", models))}
      {agentsIn([page.chain]).map((agentId) => (
        <AgentChanges key={agentId} agentId={agentId} {...{ models, changes, onChange }} />
      ))}
      <FromStep {...page} />
      {page.about === undefined && draw(MESSAGE)}
      {draw(REPEAT)}
    </>
  );
}

function Outcome({ outcome }: { outcome: ReplayOutcome }) {
  const { runs, difference, labels, varied } = outcome;
  const missing = Object.entries(varied?.missing ?? {}).map(([tool, calls]) => `${tool} (${calls})`);
  return (
    <section class="stack">
      <p role="status">
        <span class={`chip ${difference === undefined ? "tone-good" : "tone-warn"}`}>
          {difference === undefined ? "No difference" : "First difference"}
        </span>{" "}
        <Name
          text={
            difference === undefined
              ? counted(runs, "run")
              : `${sessionName({ key: difference.sessionKey })} · ${difference.step}`
          }
        />
      </p>
      <LabelDifferences labels={labels} names={SIDES} />
      {difference !== undefined && varied === undefined && (
        <div class="sides">
          <Side name={SIDES[0]} text={difference.expected} other={difference.got} />
          <Side name={SIDES[1]} text={difference.got} other={difference.expected} isSecond />
        </div>
      )}
      {varied !== undefined && (
        <>
          <p class="soft">
            {`Models gave ${counted(varied.answers, "answer")}, `}
            <Cost usd={varied.cost} />.
            {missing.length > 0 && safeLine(` Not in the record: ${missing.join(", ")}.`)}
          </p>
          <Columns diff={varied.diff} names={SIDES} />
        </>
      )}
    </section>
  );
}

const KEPT_UNDER = "parley.replay";

/** The last replay of this tab. The gateway keeps no results, so a reload shows those that the tab kept. */
interface Kept {
  readonly chainId: string;
  readonly changes: Texts;
  /** Absent if the replay had not ended, or if they are too long for the tab's storage. */
  readonly outcomes?: readonly ReplayOutcome[];
}

function readKept(chainId: string): Kept | undefined {
  const kept: Kept | null = JSON.parse(tabStorage()?.getItem(KEPT_UNDER) ?? "null");
  return kept?.chainId === chainId ? kept : undefined;
}

/** Returns a function that replays the chain. A replay at work stops when the reader leaves the page. */
function useReplay(chainId: string, from: string | undefined, kept: Kept | undefined) {
  const [progress, setProgress] = useState<EventPayloads["replay"]>();
  const [outcomes, setOutcomes] = useState(kept?.outcomes);
  const [busy, setBusy] = useState(false);
  const atWork = useRef(false);
  const stop = (): void => {
    if (atWork.current) void ask("chains.replay.stop").catch(() => {});
  };
  useEffect(() => on("replay", setProgress), []);
  useEffect(() => stop, []);
  const keep = (now: Kept): void => keepInTab(KEPT_UNDER, JSON.stringify(now));
  const start = async (changes: Texts): Promise<void> => {
    // A text that was deleted is left out, but an agent may replay without instructions.
    const given = Object.entries(changes).filter(([name, text]) => text || name.startsWith("instructions "));
    const pick = (kind: string): Texts => {
      const some = given.filter(([name]) => name.startsWith(kind));
      return Object.fromEntries(some.map(([name, text]) => [name.slice(kind.length), text]));
    };
    keep({ chainId, changes });
    setProgress(undefined);
    setOutcomes(undefined);
    setBusy(true);
    atWork.current = true;
    try {
      const { replays } = await ask("chains.replay", {
        chainId,
        models: pick("model "),
        instructions: pick("instructions "),
        repeat: Number(changes.repeat || 1),
        ...optional({ message: from === undefined ? changes.message || undefined : undefined, from }),
      });
      keep({ chainId, changes, outcomes: replays });
      setOutcomes(replays);
    } catch (error) {
      tabStorage()?.removeItem(KEPT_UNDER);
      throw error;
    } finally {
      atWork.current = false;
      setBusy(false);
    }
  };
  return { progress, outcomes, busy, start, stop };
}

export function Replay(page: ChainPageProps) {
  const { chainId } = page.chain;
  const [kept] = useState(() => readKept(chainId));
  const [changes, setChanges] = useState<Texts>(kept?.changes ?? {});
  const { progress, outcomes, busy, start, stop } = useReplay(chainId, page.about, kept);
  const { replay = 1, of = 1, done = 0, total = 0 } = progress ?? {};
  const results = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcomes !== undefined) results.current?.scrollIntoView();
  }, [outcomes]);
  return (
    <>
      <Form
        class="replay-form"
        action="Start"
        onSubmit={() => start(changes)}
        onClose={() => go({ view: "flow", chainId })}
      >
        <Fields page={page} changes={changes} onChange={setChanges} />
        {busy && (
          <div class="bar">
            <progress aria-label="Replay" max={total || 1} value={done} />
            <span>{`${of > 1 ? `Replay ${replay} of ${of}: ` : ""}${done} of ${total} events`}</span>
            <Button text="Stop" onClick={stop} />
          </div>
        )}
      </Form>
      {kept !== undefined && outcomes === undefined && !busy && (
        <p role="status">The result of the last replay was lost with the reload. Start it again.</p>
      )}
      <div ref={results}>
        {outcomes?.map((outcome, at) => (
          <Outcome key={at} outcome={outcome} />
        ))}
      </div>
    </>
  );
}
