// The page that compares a chain with another one, whose id is the end of the address.

import { useState } from "preact/hooks";
import type { ChainRow } from "../../../../src/core/shapes/chain-step.ts";
import { tick } from "../../clock.ts";
import type { ChainPageProps } from "../../flow/actions.tsx";
import { readBack } from "../../flow/state.ts";
import { TRIED } from "../../flow/wish.ts";
import type { FlowStep } from "../../flow/words.ts";
import { ask } from "../../gateway.ts";
import { Button } from "../../parts/button.tsx";
import { Awaited } from "../../parts/failure.tsx";
import { ago } from "../../parts/format.ts";
import { nameOf } from "../../parts/names.ts";
import { useReading } from "../../parts/reading.ts";
import { Select } from "../../parts/select.tsx";
import { go } from "../../route.ts";
import { Columns, LabelDifferences, Side } from "./columns.tsx";
import { Overlay } from "./overlay/sequence.tsx";

/** Periods from which chains are offered: the first one with another chain. */
const OFFERED = TRIED.slice(2);

function StepTexts({ step }: { step: FlowStep }) {
  const [a, b] = step.side === "b" ? [undefined, step] : [step, step.other];
  const [left, right] = [a, b].map((one) => one && [one.text, one.answer].filter(Boolean).join("\n\n"));
  return (
    <div class="sides">
      <Side name={NAMES[0]} text={left} other={right} />
      <Side name={NAMES[1]} text={right} other={left} isSecond />
    </div>
  );
}

const NAMES = ["A: this chain", "B: other chain"] as const;

export function Compare({ chain: { chainId }, about: other = "" }: ChainPageProps) {
  const [inSequence, setInSequence] = useState(false);
  const [chosen, choose] = useState<FlowStep>();
  const canOffer = (one: ChainRow): boolean => one.chainId !== chainId && !one.active;
  const read = useReading(`chains to compare ${chainId}`, () =>
    readBack(OFFERED, { limit: 200, includeSingle: true }, canOffer),
  );
  const diff = useReading(`diff ${chainId} ${other}`, async () =>
    other === "" ? undefined : ask("chains.diff", { a: chainId, b: other }),
  );
  const others = (read.value?.chains ?? []).filter(canOffer);
  const options = others.map(({ chainId: id, opening, rootSessionKey = "", lastAt }) => {
    const name = opening || (read.value?.names[rootSessionKey] ?? nameOf(rootSessionKey));
    return [id, `${name} (${ago(lastAt, tick.value)})`] as readonly [string, string];
  });
  // A chain that the address names may be older than those that are offered.
  if (other !== "" && read.value !== undefined && !others.some((one) => one.chainId === other))
    options.unshift([other, other]);
  const note = others.length > 0 ? read.value?.note : `No other chain in the last ${OFFERED.at(-1)?.name}`;
  return (
    <>
      {read.value !== undefined && note !== "" && (
        <p class="soft" role="status">
          {note}
        </p>
      )}
      <label>
        Compare with
        <Select
          value={other}
          options={[["", "Choose a chain"], ...options]}
          onPick={(id) => {
            choose(undefined);
            go({ view: "flow", chainId, page: "compare", about: id || undefined });
          }}
        />
      </label>
      {read.value === undefined && <Awaited {...read} />}
      {other !== "" && diff.value === undefined && <Awaited {...diff} />}
      {diff.value !== undefined && (
        <>
          <fieldset class="joined" aria-label="Show as">
            {["Two columns", "In the sequence"].map((name, at) => (
              <Button
                key={name}
                text={name}
                aria-pressed={inSequence === (at === 1)}
                onClick={() => setInSequence(at === 1)}
              />
            ))}
          </fieldset>
          <LabelDifferences labels={diff.value.labels} names={NAMES} />
          {inSequence ? (
            <>
              <Overlay diff={diff.value} chosen={chosen} onChoose={choose} />
              {chosen !== undefined && <StepTexts step={chosen} />}
            </>
          ) : (
            <Columns diff={diff.value} names={NAMES} />
          )}
        </>
      )}
    </>
  );
}
