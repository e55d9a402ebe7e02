// Shows one chain: its outcome, its steps as a sequence, a waterfall or a list, and the details of the
// selected step.

import "./chain.css";
import { signal } from "@preact/signals";
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
import { Legend, SEQUENCE, WATERFALL } from "./legend.tsx";
import { type ChainViewProps, Diagram } from "./sequence/diagram.tsx";
import { grouped } from "./sequence/groups.ts";
import { FITTED } from "./sequence/layout.ts";
import { chosenMode, type Mode, useChain } from "./state.ts";
import { StepList } from "./step-list.tsx";
import { ChainTools } from "./tools.tsx";
import { Waterfall } from "./waterfall/waterfall.tsx";
import { wish } from "./wish.ts";
import { type Around, type FlowStep, isFailed, sentence } from "./words.ts";

/** Width in CSS pixels below which the list of steps is shown, unless the reader has chosen another view. */
const LIST_BELOW = 560;
const ZOOMS = {
  sequence: { zoom: signal(1), zooms: [FITTED, 0.5, 0.75, 1, 1.5, 2.5] },
  waterfall: { zoom: signal(1), zooms: [1, 2, 4, 8, 16, 32] },
  list: { zoom: signal(1), zooms: [] },
} as const;
const LEGENDS = { sequence: SEQUENCE, waterfall: WATERFALL };

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
        <span>{`${runs} of ${counted(limits.runsMax, "run")}`}</span>
        <span>{`hop ${hopMax} of ${limits.hopsMax}`}</span>
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
function useSearch(steps: readonly FlowStep[], around: Around | undefined, onChoose: (id: string) => void) {
  const [text, setText] = useKept("find", wish.value.search);
  const [wanted, setWanted] = useState<ChainViewProps["wanted"]>();
  const show = (id: string | undefined): void => {
    if (id === undefined) return;
    setWanted({ id, count: (wanted?.count ?? 0) + 1 });
    onChoose(id);
  };
  const words = text.trim().toLowerCase();
  const found = useMemo(() => {
    if (words === "" || around === undefined) return [];
    return steps.filter((step) => sentence(step, around).toLowerCase().includes(words)).map(({ id }) => id);
  }, [steps, around, words]);
  const ids = useMemo(() => new Set(found), [found]);
  /** Index of the match that is shown, or -1 if none is shown yet. */
  const at = wanted === undefined ? -1 : found.indexOf(wanted.id);
  /** Shows the next match (1) or the previous one (-1). */
  const onStep = (by: 1 | -1): void => show(findNeighbour(found, at, by));
  return { search: { text, found, at, onText: setText, onStep }, wanted, ids, show };
}

export type Search = ReturnType<typeof useSearch>["search"];

const NONE: readonly never[] = [];
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
  const [legend, setLegend] = useState(false);
  const body = useRef<HTMLDivElement>(null);
  const { steps: rows, parties: columns } = useMemo(
    () => grouped(steps, parties, expanded),
    [steps, parties, expanded],
  );
  const expand = (column: string): void => setExpanded(new Set([...expanded, column]));
  const choose = (id: string, call?: ChainCall): void => setChoice({ id, call });
  const shownSteps = mode === "waterfall" ? steps : rows;
  const { search, wanted, ids, show } = useSearch(shownSteps, around, choose);
  const { zoom, zooms } = ZOOMS[mode];
  const step = shownSteps.find(({ id }) => id === choice?.id) ?? steps.find(({ id }) => id === choice?.id);
  const column = step === undefined ? undefined : jobsColumn(step);
  const failed = useMemo(() => steps.filter(isOwnFailure), [steps]);
  const showFailure = (): void => {
    const some = shownSteps
      .filter((one: FlowStep) => (one.members ?? [one]).some(isOwnFailure))
      .map(({ id }) => id);
    show(findNeighbour(some, some.indexOf(choice?.id ?? ""), 1));
  };
  const view = {
    steps: rows,
    around,
    chosen: choice?.id,
    onChoose: choose,
    wanted,
    found: ids,
    active: chain.active,
    zoom: zoom.value,
  };
  const at = route.value;
  const wantedPage = at.view === "flow" && at.chainId === chainId ? at.page : undefined;
  const page = wantedPage && pagesAbout(chain).find((one) => one.at === wantedPage);
  if (page && at.view === "flow")
    return (
      <>
        <ChainHead chain={chain} around={around} failed={0} onFailed={showFailure} />
        <ChainPageView page={page} chain={chain} steps={steps} around={around} about={at.about} />
      </>
    );
  return (
    <>
      <ChainHead chain={chain} around={around} failed={failed.length} onFailed={showFailure} />
      <ChainTools
        mode={mode}
        search={search}
        zoom={zoom}
        zooms={zooms}
        legend={legend}
        onLegend={() => setLegend(!legend)}
        onCollapse={expanded.size > 0 && mode !== "waterfall" ? () => setExpanded(NONE_EXPANDED) : undefined}
        chain={chain}
      />
      <ChainLabels chain={chain} steps={steps} around={around} onChoose={show} />
      {legend && mode !== "list" && <Legend marks={LEGENDS[mode]} />}
      {truncated && <p class="strip small soft">Long chain: only the newest steps are shown.</p>}
      <div ref={body} class={`chain-body${step === undefined ? "" : " with-step"}`}>
        {mode === "sequence" && <Diagram {...view} parties={columns} onExpand={expand} />}
        {mode === "waterfall" && <Waterfall {...view} rawSteps={steps} calls={calls} />}
        {mode === "list" && <StepList {...view} />}
        {step !== undefined && (
          <StepDetails
            step={step}
            chain={chain}
            call={choice?.call}
            around={around}
            parties={parties}
            deliveries={deliveriesOf(step, steps)}
            onExpand={column === undefined ? undefined : () => expand(column)}
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

function deliveriesOf({ kind, runId }: FlowStep, steps: readonly ChainStep[]): readonly ChainStep[] {
  if (kind !== "announce" || runId === undefined) return NONE;
  return steps.filter((one) => one.kind === "delivery" && one.runId === runId);
}

/** Returns the column of merged jobs to which a row belongs, or a row of equal steps itself. */
function jobsColumn({ id, members, equal, from, to }: FlowStep): string | undefined {
  if (members === undefined) return undefined;
  return equal ? id : [to, from].find((key) => key?.startsWith("jobs of "));
}

export function Chain({ chainId }: { chainId: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState(1_000);
  useSize(box, (element) => setRoom(element.clientWidth));
  const mode = chosenMode.value ?? (room < LIST_BELOW ? "list" : "sequence");
  const reading = useChain(chainId, mode === "waterfall");
  const { value } = reading;
  const around = useMemo(
    () => (value === undefined ? undefined : aroundOf(value.chain, value.parties, value.steps)),
    [value],
  );
  return (
    <div class="chain" ref={box}>
      {value === undefined || around === undefined ? (
        <Awaited {...reading} />
      ) : (
        <Shown value={value} around={around} mode={mode} />
      )}
    </div>
  );
}
