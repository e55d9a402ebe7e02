// Shows one chain: its outcome, its steps as a sequence, a waterfall or a list, and the details of the
// selected step.

import "./chain.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PayloadOf } from "../../../src/contract/methods.ts";
import type { ChainCall, ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { tick } from "../clock.ts";
import { ChainLabels } from "../labels/chain.tsx";
import { Awaited } from "../parts/failure.tsx";
import { ago, counted, duration } from "../parts/format.ts";
import { useKept } from "../parts/kept.ts";
import { Name } from "../parts/name.tsx";
import { useSize } from "../parts/size.ts";
import { State } from "../parts/state.tsx";
import { chainName, hrefOf, route } from "../route.ts";
import { ChainPageView, pagesAbout } from "./actions.tsx";
import { aroundOf } from "./around.ts";
import { Budget } from "./budget.tsx";
import { StepDetails } from "./details.tsx";
import { Diagram } from "./sequence/diagram.tsx";
import type { ChainViewProps } from "./sequence/frame.tsx";
import { grouped } from "./sequence/groups.ts";
import { useChain } from "./state.ts";
import { StepList } from "./step-list.tsx";
import { ChainTools, chosenMode, MODES, type Mode } from "./tools.tsx";
import { Waterfall } from "./waterfall/waterfall.tsx";
import { wish } from "./wish.ts";
import { type Around, type FlowStep, isFailed, sentence } from "./words.ts";

/** Width in CSS pixels below which the list of steps is shown, unless the reader has chosen another view. */
const LIST_BELOW = 560;

/** Returns whether a figure is so near its limit that the reader should know the limit. */
const isNear = (used: number, max: number): boolean => used > max / 2;

function ChainHead(props: { chain: ChainRow; around: Around; failed: number; onFailed: () => void }) {
  const { chain, around, failed, onFailed } = props;
  const { rootSessionKey, active, startedAt, lastAt, runs, hopMax, limits, refused, partial } = chain;
  const name = around.name(rootSessionKey ?? chain.sessions[0] ?? "");
  useEffect(() => {
    chainName.value = name;
    return () => {
      chainName.value = undefined;
    };
  }, [name]);
  return (
    <header class="bar strip chain-title">
      <a class="chain-back" href={hrefOf({ view: "flow" })}>
        ‹ All chains
      </a>
      <h2>
        {"From "}
        <Name text={name} />
      </h2>
      <State
        state={active ? "running" : "ended"}
        text={active ? "active" : `ended ${ago(lastAt, tick.value)}`}
      />
      <span class="bar small soft">
        {!active && <span>{`took ${duration(lastAt - startedAt)}`}</span>}
        <span>
          {isNear(runs, limits.runsMax) ? `${runs} of ${limits.runsMax} runs` : counted(runs, "run")}
        </span>
        {isNear(hopMax, limits.hopsMax) && <span>{`hop ${hopMax} of ${limits.hopsMax}`}</span>}
        {failed > 0 && (
          <button type="button" class="chip tone-bad" title="Show the next failed step" onClick={onFailed}>
            {`${failed} failed`}
          </button>
        )}
        {refused > 0 && <span class="chip tone-bad">{`${refused} refused`}</span>}
        {partial === true && <span class="chip">only visible steps</span>}
        <Budget chain={chain} />
      </span>
    </header>
  );
}

/** Returns the id that is `by` places after the place `at`, round and round. */
function findNeighbour(ids: readonly string[], at: number, by: 1 | -1): string | undefined {
  const first = by > 0 ? 0 : ids.length - 1;
  return ids[at < 0 ? first : (at + by + ids.length) % ids.length];
}

/** Owns the search: its text, the steps that match, and the step that is shown. */
function useSearch(steps: readonly FlowStep[], around: Around, onChoose: (id: string) => void) {
  const [text, setText] = useKept("find", wish.value.search);
  const [wanted, setWanted] = useState<ChainViewProps["wanted"]>();
  const show = (id: string | undefined): void => {
    if (id === undefined) return;
    setWanted({ id, count: (wanted?.count ?? 0) + 1 });
    onChoose(id);
  };
  const words = text.trim().toLowerCase();
  const found = useMemo(() => {
    if (words === "") return [];
    return steps.filter((step) => sentence(step, around).toLowerCase().includes(words)).map(({ id }) => id);
  }, [steps, around, words]);
  /** Index of the match that is shown, or -1 if none is shown yet. */
  const at = wanted === undefined ? -1 : found.indexOf(wanted.id);
  /** Shows the next match (1) or the previous one (-1). */
  const onStep = (by: 1 | -1): void => show(findNeighbour(found, at, by));
  return { text, found, at, onText: setText, onStep, wanted, show };
}

export type Search = ReturnType<typeof useSearch>;

const NONE_EXPANDED: ReadonlySet<string> = new Set();

/** Returns whether a step failed itself, and does not only report that another one did. */
const isOwnFailure = (step: ChainStep): boolean => !["wait", "result"].includes(step.kind) && isFailed(step);

interface ShownProps {
  readonly value: PayloadOf<"chains.get">;
  readonly around: Around;
  readonly mode: Mode;
}

function Shown({ value, around, mode }: ShownProps) {
  const { chain, parties, steps, truncated, calls } = value;
  const { chainId } = chain;
  const [choice, setChoice] = useKept<{ id: string; call?: ChainCall | undefined } | undefined>(
    "step",
    undefined,
  );
  // The columns and rows whose steps are shown one by one.
  const [expanded, setExpanded] = useKept(`expanded in ${chainId}`, NONE_EXPANDED);
  const body = useRef<HTMLDivElement>(null);
  const { steps: rows, parties: columns } = useMemo(
    () => grouped(steps, parties, expanded),
    [steps, parties, expanded],
  );
  const expand = (column: string): void => setExpanded(new Set([...expanded, column]));
  const choose = (id: string, call?: ChainCall): void => setChoice({ id, call });
  const drawn: readonly FlowStep[] = mode === "waterfall" ? steps : rows;
  const search = useSearch(drawn, around, choose);
  const step = [...drawn, ...steps].find(({ id }) => id === choice?.id);
  const showFailure = (): void => {
    const some = drawn.filter((one) => (one.members ?? [one]).some(isOwnFailure)).map(({ id }) => id);
    search.show(findNeighbour(some, some.indexOf(choice?.id ?? ""), 1));
  };
  const view = {
    steps: rows,
    around,
    chosen: choice?.id,
    onChoose: choose,
    wanted: search.wanted,
    found: new Set(search.found),
    active: chain.active,
    zoom: MODES[mode].zoom.value,
  };
  const at = route.value;
  const here = at.view === "flow" && at.chainId === chainId ? at : undefined;
  const page = pagesAbout(chain).find((one) => one.at === here?.page);
  const failed = page === undefined ? steps.filter(isOwnFailure).length : 0;
  const head = <ChainHead chain={chain} around={around} failed={failed} onFailed={showFailure} />;
  if (page !== undefined)
    return (
      <>
        {head}
        <ChainPageView page={page} chain={chain} steps={steps} around={around} about={here?.about} />
      </>
    );
  return (
    <>
      {head}
      <ChainTools
        mode={mode}
        search={search}
        onCollapse={expanded.size > 0 && mode !== "waterfall" ? () => setExpanded(NONE_EXPANDED) : undefined}
        chain={chain}
      />
      <ChainLabels chain={chain} steps={steps} around={around} onChoose={search.show} />
      {truncated && <p class="strip small soft">Long chain: only the newest steps are shown.</p>}
      <div ref={body} class={`chain-body${step === undefined ? "" : " with-step"}`}>
        {mode === "sequence" && <Diagram {...view} parties={columns} onExpand={expand} />}
        {mode === "waterfall" && <Waterfall {...view} rawSteps={steps} calls={calls} />}
        {mode === "list" && <StepList {...view} />}
        {step !== undefined && (
          <StepDetails
            step={step}
            value={value}
            call={choice?.call}
            around={around}
            onExpand={expand}
            onClose={() => {
              setChoice(undefined);
              body.current?.querySelector<HTMLElement | SVGElement>("[data-step][tabindex='0']")?.focus();
            }}
          />
        )}
      </div>
    </>
  );
}

export function Chain({ chainId }: { chainId: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(1_000);
  useSize(box, (element) => setRoom(element.clientWidth));
  const mode = chosenMode.value ?? (room < LIST_BELOW ? "list" : "sequence");
  const { value, ...reading } = useChain(chainId, mode === "waterfall");
  const around = useMemo(() => value && aroundOf(value.chain, value.parties, value.steps), [value]);
  return (
    <div class="chain" ref={box}>
      {value && around ? <Shown value={value} around={around} mode={mode} /> : <Awaited {...reading} />}
    </div>
  );
}
