// Shows two chains in one sequence: the steps that both have once, the others marked by colour and sign.

import "./overlay.css";
import { useMemo } from "preact/hooks";
import type { ChainComparison } from "../../../../../src/features/replay/contract.ts";
import { aroundOf } from "../../../flow/around.ts";
import { Legend } from "../../../flow/legend.tsx";
import { Diagram } from "../../../flow/sequence/diagram.tsx";
import { type FlowStep, SIDES } from "../../../flow/words.ts";
import { ask } from "../../../gateway.ts";
import { Awaited } from "../../../parts/failure.tsx";
import { useReading } from "../../../parts/reading.ts";
import { overlaid } from "./overlay.ts";

const MARKS = Object.entries(SIDES).map(
  ([side, [sign, name]]) => [`legend-arrow side-${side}`, sign + name] as const,
);
const NOTHING: ReadonlySet<string> = new Set();

interface OverlayProps {
  readonly diff: ChainComparison;
  readonly chosen: FlowStep | undefined;
  readonly onChoose: (step: FlowStep | undefined) => void;
}

export function Overlay({ diff, chosen, onChoose }: OverlayProps) {
  const ids = [diff.a.chainId, diff.b.chainId];
  const { value, ...reading } = useReading(`overlay ${ids.join(" ")}`, () =>
    Promise.all(ids.map((chainId) => ask("chains.get", { chainId }))),
  );
  const shown = useMemo(() => {
    const [a, b] = value ?? [];
    if (a === undefined || b === undefined) return undefined;
    const both = overlaid(a, b, diff);
    return { ...both, around: aroundOf(a.chain, [...b.parties, ...a.parties], [...b.steps, ...a.steps]) };
  }, [value, diff]);
  if (shown === undefined) return <Awaited {...reading} />;
  return (
    <>
      <Legend marks={MARKS} />
      <div class="overlay-picture">
        <Diagram
          {...shown}
          chosen={chosen?.id}
          onChoose={(id) => onChoose(shown.steps.find((step) => step.id === id))}
          wanted={undefined}
          found={NOTHING}
          active={false}
          zoom={1}
          onExpand={() => {}}
        />
      </div>
    </>
  );
}
