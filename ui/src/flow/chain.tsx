// Shows one chain: its outcome, its diagram, and the selected step.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ChainParty, ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { tick } from "../clock.ts";
import { Awaited } from "../parts/failure.tsx";
import { ago, counted, duration } from "../parts/format.ts";
import { Name } from "../parts/name.tsx";
import { nameOf } from "../parts/names.ts";
import { State } from "../parts/state.tsx";
import { hrefOf } from "../route.ts";
import { Budget } from "./budget.tsx";
import { StepDetails } from "./details.tsx";
import { Diagram } from "./diagram.tsx";
import { useChain } from "./state.ts";
import type { Around } from "./words.ts";

function aroundOf(chain: ChainRow, parties: readonly ChainParty[], steps: readonly ChainStep[]): Around {
  const labels = new Map(parties.map(({ key, label }) => [key, label]));
  const waits = steps.flatMap((step) =>
    step.kind === "wait" && step.flowId !== undefined ? [[step.flowId, step] as const] : [],
  );
  return { limits: chain.limits, waits: new Map(waits), name: (key) => labels.get(key) || nameOf(key) };
}

function ChainHead({ chain, around }: { chain: ChainRow; around: Around }) {
  const { rootSessionKey, active, startedAt, lastAt, runs, hopMax, limits, refused, partial } = chain;
  return (
    <header class="chain-title">
      <a class="chain-back" href={hrefOf({ view: "flow" })}>
        ‹ All chains
      </a>
      <h2>
        {"From "}
        <Name text={around.name(rootSessionKey ?? chain.sessions[0] ?? "")} />
      </h2>
      <State
        state={active ? "running" : "ended"}
        text={active ? "active" : `ended ${ago(lastAt, tick.value)}`}
      />
      <span class="chain-facts soft">
        {!active && <span>{`took ${duration(lastAt - startedAt)}`}</span>}
        <span>{`${runs} of ${counted(limits.runsMax, "run")}`}</span>
        <span>{`hop ${hopMax} of ${limits.hopsMax}`}</span>
        {refused > 0 && <span class="chip tone-bad">{`${refused} refused`}</span>}
        {partial === true && <span class="chip">only visible steps</span>}
        <Budget chain={chain} />
      </span>
    </header>
  );
}

export function Chain({ chainId }: { chainId: string }) {
  const reading = useChain(chainId);
  const { value } = reading;
  const [chosen, choose] = useState<string>();
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => choose(undefined), [chainId]);
  const around = useMemo(
    () => (value === undefined ? undefined : aroundOf(value.chain, value.parties, value.steps)),
    [value],
  );
  if (value === undefined || around === undefined) return <Awaited {...reading} />;
  const { chain, parties, steps, truncated } = value;
  const step = steps.find(({ id }) => id === chosen);
  const deliveries =
    step?.kind === "announce" && step.runId !== undefined
      ? steps.filter(({ kind, runId }) => kind === "delivery" && runId === step.runId)
      : [];
  return (
    <div class="chain">
      <ChainHead chain={chain} around={around} />
      {truncated && <p class="chain-cut soft">Long chain: only the newest steps are shown.</p>}
      <div ref={body} class={`chain-body${step === undefined ? "" : " with-step"}`}>
        <Diagram
          chainId={chainId}
          steps={steps}
          parties={parties}
          around={around}
          chosen={chosen}
          onChoose={choose}
          active={chain.active}
        />
        {step !== undefined && (
          <StepDetails
            step={step}
            around={around}
            deliveries={deliveries}
            onClose={() => {
              choose(undefined);
              body.current?.querySelector<SVGElement>("[data-step][tabindex='0']")?.focus();
            }}
          />
        )}
      </div>
    </div>
  );
}
