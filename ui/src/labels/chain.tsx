// Shows how a chain became outside and private: the steps with which each source came, and the decisions of
// owners.

import { useEffect } from "preact/hooks";
import { describeSink } from "../../../src/core/rules/labels/labels.ts";
import type { ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { LABELS, type Label, type LabelDecision, NO_SINK } from "../../../src/core/shapes/labels.ts";
import { safeLine } from "../../../src/core/text/safe-text.ts";
import { type Around, title } from "../flow/words.ts";
import { ask, has } from "../gateway.ts";
import { Button } from "../parts/button.tsx";
import { clockTime, counted } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { useReading } from "../parts/reading.ts";
import { State } from "../parts/state.tsx";
import { LabelChip, LabelChips } from "./chips.tsx";

const STEPS_MAX = 12;

/** The steps with which a source came into the chain and from session to session. */
interface LabelPath {
  readonly label: Label;
  readonly source: string;
  /** Time at which it was read first, in ms since 1970. */
  readonly since: number;
  /** True if it came with the session of the first step, which had read it before. */
  readonly isOlder: boolean;
  /** In order. */
  readonly steps: readonly ChainStep[];
}

/** Returns the way of each source. `steps`: oldest first. */
function pathsIn(steps: readonly ChainStep[]): LabelPath[] {
  const paths = new Map<string, LabelPath>();
  for (const label of LABELS)
    for (const step of steps)
      for (const { source, since, runId } of step.labels?.[label] ?? []) {
        const id = `${label} ${source}`;
        const known = paths.get(id) ?? { label, source, since, isOlder: runId !== step.runId, steps: [] };
        paths.set(id, { ...known, since: Math.min(known.since, since), steps: [...known.steps, step] });
      }
  return [...paths.values()];
}

interface ChainLabelsProps {
  readonly chain: ChainRow;
  readonly steps: readonly ChainStep[];
  readonly around: Around;
  readonly onChoose: (id: string) => void;
}

function Path({ path, around, onChoose }: { path: LabelPath } & Omit<ChainLabelsProps, "chain" | "steps">) {
  const { label, source, since, isOlder, steps } = path;
  const more = steps.length - STEPS_MAX;
  return (
    <li class="bar">
      <LabelChip label={label} source={source} />
      {since > 0 && <span class="soft">{`since ${clockTime(since)}`}</span>}
      {steps.slice(0, STEPS_MAX).map((step, at) => (
        <>
          <span key={`to ${step.id}`} class="soft">
            {at > 0 ? "→" : isOlder ? "known before" : "by"}
          </span>
          <Button
            text={<Name text={title(step, around)} />}
            key={step.id}
            class="quiet small"
            title={step.runId === undefined ? undefined : `Run ${step.runId}`}
            onClick={() => onChoose(step.id)}
          />
        </>
      ))}
      {more > 0 && <span class="soft">{`and ${more} more`}</span>}
    </li>
  );
}

const TONES = { allowed: "good", denied: "bad", refused: "bad", watched: "quiet" } as const;

function Decision({ decision: one, around }: { decision: LabelDecision; around: Around }) {
  const { sink, destination, decision, by, at, sessionKey, labels, payload } = one;
  const call = sink === NO_SINK ? "release of the session" : describeSink({ kind: sink, to: destination });
  return (
    <li class="bar">
      <State state={decision} text={`${decision} by ${safeLine(by)}`} tone={TONES[decision]} />
      <Name text={call} title={payload} />
      <span class="soft">
        {`${clockTime(at)}, in `}
        <SessionLink sessionKey={sessionKey} name={around.name(sessionKey)} />, after
      </span>
      <LabelChips labels={labels} />
    </li>
  );
}

/** Returns the first source from outside with its time and its way, as words. */
function summaryOf(paths: readonly LabelPath[], around: Around): string {
  const outside = paths.filter(({ label }) => label === "outside");
  const [first] = outside.toSorted((a, b) => a.since - b.since);
  if (first === undefined) return "Labels";
  const { source, since, steps } = first;
  const when = since === 0 ? "" : ` since ${clockTime(since)}`;
  const names = steps.map((step) => around.name(step.to ?? step.from ?? ""));
  const more = outside.length === 1 ? "" : ` and ${counted(outside.length - 1, "other source")}`;
  const isPrivate = paths.some(({ label }) => label === "private") ? "; private" : "";
  return safeLine(`outside${when} from ${source}${more}, in ${[...new Set(names)].join(" → ")}${isPrivate}`);
}

/** Shows the labels of a chain that has read something from outside, or that has decisions. */
export function ChainLabels({ chain: { chainId }, steps, around, onChoose }: ChainLabelsProps) {
  const paths = pathsIn(steps);
  const isOutside = paths.some(({ label }) => label === "outside");
  const { value, again } = useReading(`decisions ${chainId}`, async () =>
    has("labels.list") ? (await ask("labels.list", { chainId })).decisions.toReversed() : [],
  );
  useEffect(() => void again(), [steps]);
  const decisions = value ?? [];
  if (!isOutside && decisions.length === 0) return null;
  return (
    <details class="chain-labels strip small">
      <summary>
        <bdi>{summaryOf(paths, around)}</bdi>
        {decisions.length > 0 && ` · ${counted(decisions.length, "decision")}`}
      </summary>
      <ul class="stack" aria-label="Sources">
        {paths.map((path) => (
          <Path key={`${path.label} ${path.source}`} path={path} around={around} onChoose={onChoose} />
        ))}
      </ul>
      {decisions.length > 0 && (
        <>
          <h3 id="chain-decisions">Decisions</h3>
          <ul class="stack" aria-labelledby="chain-decisions">
            {decisions.map((decision) => (
              <Decision key={decision.id} decision={decision} around={around} />
            ))}
          </ul>
        </>
      )}
    </details>
  );
}
