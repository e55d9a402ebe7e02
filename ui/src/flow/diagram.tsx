// Draws the diagram of one chain as SVG: a column per session, with time running downwards. `layout.ts`
// computes the positions.
// DG1: only the visible rows are in the document, so a thousand steps cost no more than fifty.
// DG2: only one step is in the tab order. The arrow keys move to other steps, and Enter opens one.
// DG3: when the diagram grows, visible rows do not move and the selection stays. If the reader was at the
//      end, the view stays at the end.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ChainParty, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { clockTime, duration } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { useSize } from "../parts/size.ts";
import { fitted } from "./fitted.ts";
import { GUTTER, isFailed, type Lane, type Layout, layOut, type Placed } from "./layout.ts";
import { ArrowOf, BarOf } from "./marks.tsx";
import { type Around, label, outcomeWords, sentence, waitWords } from "./words.ts";

const MARGIN = 400;
/** Maximum distance from the end at which the reader counts as being at the end, in CSS pixels. */
const AT_END = 60;

interface DiagramProps {
  readonly chainId: string;
  readonly steps: readonly ChainStep[];
  readonly parties: readonly ChainParty[];
  readonly around: Around;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  /** True if the chain has an unfinished step. */
  readonly active: boolean;
}

interface StepText {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  /** Set if the text ends at `x` instead of starting there. */
  readonly end?: true;
}

/**
 * Returns the text of a step and its position: beside the arrow, or beside the end of a wait without an
 * answer.
 */
function textOf(placed: Placed, around: Around, laneWidth: number): StepText {
  const { step, y, from, to, textX, textWidth } = placed;
  const words = label(step, around);
  if (step.kind === "refused" && from !== undefined && to !== undefined && to < from)
    return { x: from - 12, y: y - 6, text: fitted(words, (from - GUTTER) * 0.88), end: true };
  if (step.kind === "refused" && from !== undefined)
    return { x: from + 14, y: y - 6, text: fitted(words, Math.max(textWidth, laneWidth * 1.6)) };
  if (step.kind === "delivery") return { x: textX + 24, y: y + 7, text: fitted(words, textWidth - 24) };
  if (step.kind === "announce") return { x: textX, y: y + 4, text: fitted(words, laneWidth - 30) };
  if (step.kind === "wait" && step.state !== "answered")
    return { x: (from ?? textX) + 14, y: y + 4, text: fitted(waitWords(step), laneWidth - 26) };
  return { x: textX, y: y - 6, text: fitted(words, textWidth) };
}

function kindOf(step: ChainStep): string {
  return `kind-${step.kind === "result" && step.source === "notice" ? "notice" : step.kind}`;
}

/** Draws the text of a step. It is separate from the step's button, which has its own accessible name. */
function WordsOf({ placed, around, laneWidth }: { placed: Placed; around: Around; laneWidth: number }) {
  const { step, y, textWidth } = placed;
  const { x, y: line, text, end } = textOf(placed, around, laneWidth);
  return (
    <g class={`words ${kindOf(step)}`}>
      <text x={x} y={line} text-anchor={end === true ? "end" : undefined}>
        {text}
      </text>
      {isFailed(step) && (
        <text class="step-note bad" x={x} y={y + 14}>
          {fitted(outcomeWords(step, around), textWidth)}
        </text>
      )}
    </g>
  );
}

interface StepProps {
  readonly placed: Placed;
  readonly around: Around;
  readonly chosen: boolean;
  readonly focusable: boolean;
  readonly onChoose: () => void;
}

function StepOf({ placed, around, chosen, focusable, onChoose }: StepProps) {
  const { step, y, textX, textWidth } = placed;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`step ${kindOf(step)}${chosen ? " chosen" : ""}`}
      data-step={step.id}
      role="button"
      tabindex={focusable ? 0 : -1}
      aria-pressed={chosen}
      aria-label={fitted(sentence(step, around), 4_000)}
      onClick={onChoose}
    >
      <rect class="step-hit" x={textX - 10} y={y - 22} width={textWidth + 22} height="31" rx="6" />
      <ArrowOf placed={placed} />
    </g>
  );
}

/** Draws the times, the shortened pauses and the lines of the sessions. */
function Ground({ layout, active }: { layout: Layout; active: boolean }) {
  const { lanes, pauses, times, width, height } = layout;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it takes the focus
    <g aria-hidden="true">
      {lanes.map(({ key, x }) => (
        <line key={key} class="lane" x1={x} x2={x} y1="0" y2={active ? height : height - 14} />
      ))}
      {pauses.map(({ y, ms }) => (
        <g key={y} class="pause">
          <line x1={GUTTER - 8} x2={width - 8} y1={y} y2={y} />
          <text x={GUTTER - 12} y={y + 4} text-anchor="end">
            {`+ ${duration(ms)}`}
          </text>
        </g>
      ))}
      {times.map(({ y, at }) => (
        <text key={y} class="time" x={GUTTER - 12} y={y + 4} text-anchor="end">
          {clockTime(at)}
        </text>
      ))}
    </g>
  );
}

function Heads({
  lanes,
  laneWidth,
  width,
  props,
}: {
  lanes: readonly Lane[];
  laneWidth: number;
  width: number;
  props: DiagramProps;
}) {
  const gone = new Set(props.parties.filter((party) => party.gone === true).map(({ key }) => key));
  const { name } = props.around;
  return (
    <div class="flow-heads" style={{ width: `${width}px` }}>
      {lanes.map(({ key, x }) => (
        <span key={key} class="flow-head" style={{ left: `${x - 9}px`, width: `${laneWidth - 10}px` }}>
          {gone.has(key) ? (
            <span class="soft">
              <Name text={name(key)} title={`${key} was deleted`} />
            </span>
          ) : (
            <SessionLink sessionKey={key} name={name(key)} />
          )}
        </span>
      ))}
    </div>
  );
}

/** Owns the scroll position of the diagram, and keeps the visible rows in place. */
function useSight(height: number, chainId: string) {
  const box = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 900, width: 900 });
  const atEnd = useRef(false);
  const look = (): void => {
    const element = box.current;
    if (element === null) return;
    const { scrollTop: top, clientHeight, clientWidth, scrollHeight } = element;
    atEnd.current = top > 0 && top + clientHeight > scrollHeight - AT_END;
    setSight({ top, height: clientHeight, width: clientWidth });
  };
  useSize(box, look);
  useLayoutEffect(() => {
    box.current?.scrollTo(0, 0);
    atEnd.current = false;
  }, [chainId]);
  useLayoutEffect(() => {
    if (atEnd.current) box.current?.scrollTo({ top: height });
  }, [height]);
  return { box, sight, look };
}

const STEPS_OF_KEYS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** Owns the step that is in the tab order, and the keys that move to other steps. */
function useSteps(inOrder: readonly Placed[], sight: ReturnType<typeof useSight>, props: DiagramProps) {
  const { chosen, onChoose } = props;
  const { box, look } = sight;
  const [focused, setFocused] = useState<string>();
  const wanted = useRef<string | undefined>(undefined);
  const isThere = (id: string | undefined): boolean => inOrder.some(({ step }) => step.id === id);
  const inTab = [focused, chosen].find(isThere) ?? inOrder[0]?.step.id;
  const goTo = ({ step, y }: Placed): void => {
    wanted.current = step.id;
    setFocused(step.id);
    const element = box.current;
    if (element !== null && (y < element.scrollTop + 90 || y > element.scrollTop + element.clientHeight - 60))
      element.scrollTop = y - element.clientHeight / 2;
    look();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const id = (event.target as Element).closest("[data-step]")?.getAttribute("data-step");
    const at = inOrder.findIndex(({ step }) => step.id === id);
    const by = event.key === "Enter" || event.key === " " ? 0 : STEPS_OF_KEYS[event.key];
    if (at < 0 || id == null || by === undefined) return;
    event.preventDefault();
    const next = inOrder[Math.max(0, Math.min(inOrder.length - 1, at + by))];
    if (by === 0) onChoose(id);
    else if (next !== undefined) goTo(next);
  };
  useLayoutEffect(() => {
    if (wanted.current === undefined) return;
    const element = box.current?.querySelector(`[data-step="${CSS.escape(wanted.current)}"]`);
    if (!(element instanceof SVGElement)) return;
    element.focus({ preventScroll: true });
    wanted.current = undefined;
  });
  const choose = (id: string): void => {
    setFocused(id);
    onChoose(id);
  };
  return { inTab, onKeyDown, choose };
}

export function Diagram(props: DiagramProps) {
  const { chainId, steps, parties, around, chosen, active } = props;
  const [room, setRoom] = useState(900);
  const layout = useMemo(() => layOut(steps, parties, room), [steps, parties, room]);
  const scrolled = useSight(layout.height, chainId);
  const { box, sight, look } = scrolled;
  if (sight.width !== room) setRoom(sight.width);
  const inOrder = useMemo(() => layout.steps.toSorted((a, b) => a.y - b.y), [layout]);
  const { inTab, onKeyDown, choose } = useSteps(inOrder, scrolled, props);
  const isNear = (top: number, end: number): boolean =>
    end > sight.top - MARGIN && top < sight.top + sight.height + MARGIN;
  const shown = layout.steps.filter((one) => isNear(one.top ?? one.y, one.y) || one.step.id === inTab);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the steps in it
    <div class="flow-scroll" ref={box} onScroll={look} onKeyDown={onKeyDown}>
      <Heads lanes={layout.lanes} laneWidth={layout.laneWidth} width={layout.width} props={props} />
      {/* biome-ignore lint/a11y/useSemanticElements: there are no field sets in SVG */}
      <svg
        class="flow-picture"
        width={layout.width}
        height={layout.height}
        role="group"
        aria-label={`${steps.length} steps, oldest first; the arrow keys go from one to the next`}
      >
        <Ground layout={layout} active={active} />
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it takes the focus */}
        <g aria-hidden="true">
          {layout.bars
            .filter((bar) => isNear(bar.top, bar.end))
            .map((bar) => (
              <BarOf key={bar.id} bar={bar} />
            ))}
        </g>
        {shown.map((placed) => (
          <StepOf
            key={placed.step.id}
            placed={placed}
            around={around}
            chosen={placed.step.id === chosen}
            focusable={placed.step.id === inTab}
            onChoose={() => choose(placed.step.id)}
          />
        ))}
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it takes the focus */}
        <g aria-hidden="true">
          {shown.map((placed) => (
            <WordsOf key={placed.step.id} placed={placed} around={around} laneWidth={layout.laneWidth} />
          ))}
        </g>
      </svg>
    </div>
  );
}
