// The page that replays a chain: the changes, the progress, and the outcome. The address ends with the step
// from which models answer.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { EventPayloads } from "../../../../src/contract/events.ts";
import type { ParamsOf } from "../../../../src/contract/methods.ts";
import { head } from "../../../../src/core/text/cut.ts";
import { safeLine } from "../../../../src/core/text/safe-text.ts";
import type { ReplayOutcome } from "../../../../src/features/replay/contract.ts";
import { Agent } from "../../agents/agent-name.tsx";
import { useModelRefs } from "../../agents/model-refs.ts";
import { type ChainPageProps, isReplayable } from "../../flow/actions.tsx";
import { agentsIn } from "../../flow/state.ts";
import { sentence } from "../../flow/words.ts";
import { ask, on } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { Form } from "../../parts/dialog.tsx";
import { clockTime, counted, money } from "../../parts/format.ts";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { go } from "../../route.ts";
import { shortKey } from "../../sessions/own-name.ts";
import { keepInTab, tabStorage } from "../../token.ts";
import { Columns, LabelDifferences, Side } from "./columns.tsx";

/** JSON leaves out the names without a text. */
type Texts = Readonly<Record<string, string | undefined>>;

const SIDES = ["Record", "Replay"] as const;
const OPTION_CHARS_MAX = 120;

interface Changes {
  readonly models: Texts;
  readonly instructions: Texts;
  /** `message` and `repeat`. */
  readonly others: Texts;
}

interface FieldsProps {
  readonly changes: Changes;
  readonly onChange: (kind: keyof Changes, name: string, text: string | undefined) => void;
}

function Model({ agentId, changes, onChange, label }: FieldsProps & { agentId: string; label: string }) {
  const models = useModelRefs();
  return (
    <label>
      {label}
      <Select
        value={changes.models[agentId] ?? ""}
        options={[["", "As recorded"], ...models]}
        onPick={(ref) => onChange("models", agentId, ref || undefined)}
      />
    </label>
  );
}

/** The changes of one agent. Its instructions begin as they are now. */
function AgentChanges({ agentId, ...fields }: FieldsProps & { agentId: string }) {
  const { value } = useReading(`prompt ${agentId}`, () => ask("agents.prompt", { agentId }));
  const now = value?.parts.find(({ title }) => title === "Instructions in the settings")?.text ?? "";
  return (
    <details aria-label={agentId}>
      <summary>
        <Agent id={agentId} />
      </summary>
      <Model {...fields} agentId={agentId} label="Model" />
      <label>
        Instructions
        <textarea
          rows={4}
          value={fields.changes.instructions[agentId] ?? now}
          onInput={({ currentTarget: { value: text } }) =>
            fields.onChange("instructions", agentId, text === now ? undefined : text)
          }
        />
      </label>
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

function Fields({ page, ...fields }: FieldsProps & { page: ChainPageProps }) {
  const { changes, onChange } = fields;
  const other = (name: string) => ({
    value: changes.others[name] ?? "",
    onInput: ({ currentTarget: { value } }: { currentTarget: { value: string } }) =>
      onChange("others", name, value || undefined),
  });
  return (
    <>
      <p class="soft">
        With changes, models are called for what differs, and cost money. Tools answer from the record.
      </p>
      <Model {...fields} agentId="*" label="Model of every agent" />
      {agentsIn([page.chain]).map((agentId) => (
        <AgentChanges key={agentId} agentId={agentId} {...fields} />
      ))}
      <FromStep {...page} />
      {page.about === undefined && (
        <label>
          First message
          <textarea rows={2} placeholder="As recorded" {...other("message")} />
        </label>
      )}
      <label>
        Replays
        <input type="number" placeholder="1" {...other("repeat")} />
      </label>
    </>
  );
}

function Outcome({ outcome }: { outcome: ReplayOutcome }) {
  const { runs, difference, labels, varied } = outcome;
  const missing = Object.entries(varied?.missing ?? {}).map(([tool, calls]) => `${tool} (${calls})`);
  return (
    <section class="stack replay-outcome">
      <p role="status">
        <span class={`chip ${difference === undefined ? "tone-good" : "tone-warn"}`}>
          {difference === undefined ? "No difference" : "First difference"}
        </span>{" "}
        <bdi>
          {difference === undefined
            ? counted(runs, "run")
            : safeLine(`${shortKey(difference.sessionKey)} · ${difference.step}`)}
        </bdi>
      </p>
      <LabelDifferences labels={labels} names={SIDES} />
      {difference !== undefined && varied === undefined && (
        <div class="columns">
          <Side name={SIDES[0]} text={difference.expected} other={difference.got} />
          <Side name={SIDES[1]} text={difference.got} other={difference.expected} isSecond />
        </div>
      )}
      {varied !== undefined && (
        <>
          <p class="soft">
            {`Models gave ${counted(varied.answers, "answer")}, ${money(varied.cost)}.`}
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
  readonly changes: Changes;
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
  const start = async (changes: Changes): Promise<void> => {
    const { models, instructions, others } = changes;
    keep({ chainId, changes });
    setProgress(undefined);
    setOutcomes(undefined);
    setBusy(true);
    atWork.current = true;
    try {
      const repeat = Number(others.repeat ?? 1);
      const { message } = from === undefined ? others : {};
      const given = { chainId, models, instructions, message, from, repeat } as ParamsOf<"chains.replay">;
      const { replays } = await ask("chains.replay", given);
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
  const [changes, setChanges] = useState(kept?.changes ?? { models: {}, instructions: {}, others: {} });
  const { progress, outcomes, busy, start, stop } = useReplay(chainId, page.about, kept);
  const { replay = 1, of = 1, done = 0, total = 0 } = progress ?? {};
  const results = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcomes !== undefined) results.current?.scrollIntoView();
  }, [outcomes]);
  const onChange: FieldsProps["onChange"] = (kind, name, text) =>
    setChanges((before) => ({ ...before, [kind]: { ...before[kind], [name]: text } }));
  return (
    <>
      <Form
        class="replay-form"
        action="Start"
        onSubmit={() => start(changes)}
        onClose={() => go({ view: "flow", chainId })}
      >
        <Fields page={page} changes={changes} onChange={onChange} />
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
