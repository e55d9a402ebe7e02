// Owns the picture of one chain: columns of sessions, time downwards, drawn as SVG from what `layout.ts` says.
// DG1: only the rows in sight are in the document, so that a thousand steps cost what fifty do.
// DG2: one step at a time is in the order of Tab; the arrow keys go on from there, Enter opens it.
// DG3: what grows neither moves what is read nor loses the choice; who reads the end stays at the end.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ChainParty, type ChainStep, NOT_VISIBLE } from "../../../src/core/chain-step.ts";
import { clockTime, duration } from "../parts/format.ts";
import { Name, SessionLink } from "../parts/name.tsx";
import { fitted } from "./drawing.ts";
import { type Bar, GUTTER, type Lane, type Layout, layOut, type Placed } from "./layout.ts";
import { type Around, label, outcomeWords, sentence, waitWords } from "./words.ts";

const MARGIN = 400;
/** Who is so near the end reads the end. */
const AT_END = 60;
const BAR = 5;

interface DiagramProps {
  readonly chainId: string;
  readonly steps: readonly ChainStep[];
  readonly parties: readonly ChainParty[];
  readonly around: Around;
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
  /** Something of it goes on. */
  readonly active: boolean;
}

function BarOf({ bar }: { bar: Bar }) {
  const { x, top, run, end, open, failed, silent, waits } = bar;
  const from = run ?? end;
  const height = (a: number, b: number): number => Math.max(2, b - a);
  return (
    <g class={`run${open ? " open" : ""}${failed ? " failed" : ""}`}>
      {from > top + 2 && <line class="run-queued" x1={x} x2={x} y1={top} y2={from} />}
      {run !== undefined && (
        <rect class="run-bar" x={x - BAR} y={run} width={2 * BAR} height={height(run, end)} rx="3" />
      )}
      {run === undefined && !open && (
        <rect class="run-note" x={x - 4} y={top - 4} width="8" height="8" rx="2" />
      )}
      {waits.map((wait) => (
        <rect
          key={wait.top}
          class="run-waits"
          x={x - BAR}
          y={wait.top}
          width={2 * BAR}
          height={height(wait.top, wait.end)}
        />
      ))}
      {failed && <path class="run-cross" d={`M ${x - 5} ${end - 5} l 10 10 m 0 -10 l -10 10`} />}
      {silent && (
        <>
          <circle class="run-silent" cx={x} cy={end} r="4.5" />
          <text class="step-note" x={x + 14} y={end + 4}>
            silent
          </text>
        </>
      )}
    </g>
  );
}

/** The lines of an arrow's head at its end. */
function headAt(x: number, y: number, way: number): string {
  return `M ${x - way * 8} ${y - 4.5} L ${x} ${y} L ${x - way * 8} ${y + 4.5}`;
}

/** The arrow of a step. */
function ArrowOf({ placed }: { placed: Placed }) {
  const { step, y, from, to, top } = placed;
  if (step.kind === "wait") return <WaitOf y={y} from={from} to={to} top={top} step={step} />;
  if (step.kind === "message" && to !== undefined) {
    return (
      <>
        <circle class="person" cx={to - 46} cy={y} r="4" />
        <path class="step-line" d={`M ${to - 42} ${y} H ${to - BAR - 2}`} />
        <path class="step-head" d={headAt(to - BAR - 2, y, 1)} />
      </>
    );
  }
  if (step.kind === "refused" && from !== undefined) {
    const way = to === undefined || to >= from ? 1 : -1;
    const stop = to === undefined || to === from ? from + 46 : from + (to - from) * 0.6;
    return (
      <>
        <path class="step-line" d={`M ${from + way * BAR} ${y} H ${stop}`} />
        <path class="step-cross" d={`M ${stop - 5} ${y - 5} l 10 10 m 0 -10 l -10 10`} />
      </>
    );
  }
  if (step.kind === "announce" && from !== undefined)
    return <path class="step-mark" d={`M ${from} ${y - 7} l 7 7 l -7 7 l -7 -7 z`} />;
  if (step.kind === "delivery" && from !== undefined) {
    return (
      <>
        <path class="step-line" d={`M ${from + BAR} ${y + 3} h 26`} />
        <path class="step-head" d={headAt(from + BAR + 26, y + 3, 1)} />
      </>
    );
  }
  if (to === undefined || from === undefined || from === to) {
    const at = to ?? from ?? GUTTER;
    return (
      <>
        <path class="step-line" d={`M ${at + BAR} ${y - 10} h 20 v 10 h -18`} />
        <path class="step-head" d={headAt(at + BAR + 2, y, -1)} />
      </>
    );
  }
  const way = to > from ? 1 : -1;
  return (
    <>
      <path class="step-line" d={`M ${from + way * BAR} ${y} H ${to - way * (BAR + 2)}`} />
      <path class="step-head" d={headAt(to - way * (BAR + 2), y, way)} />
    </>
  );
}

/** Beside the line of who waits, from the question to its answer. */
function WaitOf(props: {
  y: number;
  from: number | undefined;
  to: number | undefined;
  top: number | undefined;
  step: ChainStep;
}) {
  const { y, from, to, top, step } = props;
  if (from === undefined) return null;
  const x = from - 12;
  const way = to !== undefined && to < from ? 1 : -1;
  const answered = step.state === "answered" && to !== undefined && to !== from;
  return (
    <>
      {top !== undefined && (
        <path class="wait-line" d={`M ${from - BAR} ${top} H ${x} V ${y} H ${from - BAR}`} />
      )}
      {answered && (
        <>
          <path class="step-line" d={`M ${to - way * -BAR} ${y} H ${from - way * (BAR + 2)}`} />
          <path class="step-head" d={headAt(from - way * (BAR + 2), y, way)} />
        </>
      )}
    </>
  );
}

/** Words beside an arrow; of a wait that nobody answered beside its end. */
function textOf(placed: Placed, around: Around, laneWidth: number): { x: number; y: number; text: string } {
  const { step, y, from, textX, textWidth } = placed;
  const words = label(step, around);
  if (step.kind === "delivery") return { x: textX + 24, y: y + 7, text: fitted(words, textWidth - 24) };
  if (step.kind === "announce") return { x: textX, y: y + 4, text: fitted(words, laneWidth - 30) };
  if (step.kind === "wait" && step.state !== "answered")
    return { x: (from ?? textX) + 14, y: y + 4, text: fitted(waitWords(step), laneWidth - 26) };
  return { x: textX, y: y - 6, text: fitted(words, textWidth) };
}

interface StepProps {
  readonly placed: Placed;
  readonly around: Around;
  readonly laneWidth: number;
  readonly chosen: boolean;
  readonly focusable: boolean;
  readonly onChoose: () => void;
}

function StepOf({ placed, around, laneWidth, chosen, focusable, onChoose }: StepProps) {
  const { step, y, textX, textWidth } = placed;
  const words = textOf(placed, around, laneWidth);
  const tone = step.kind === "result" && step.source === "notice" ? "notice" : step.kind;
  const outcome = step.kind === "refused" || step.silent === true ? "" : outcomeWords(step, around);
  const note =
    ["running", "queued", "waiting", "sent", "pending", ""].includes(outcome) || step.kind === "wait"
      ? ""
      : outcome;
  return (
    // biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG
    <g
      class={`step kind-${tone}${chosen ? " chosen" : ""}`}
      data-step={step.id}
      role="button"
      tabIndex={focusable ? 0 : -1}
      aria-pressed={chosen}
      aria-label={fitted(sentence(step, around), 4_000)}
      onClick={onChoose}
    >
      <rect class="step-hit" x={textX - 10} y={y - 22} width={textWidth + 22} height="31" rx="6" />
      <ArrowOf placed={placed} />
      <text x={words.x} y={words.y}>
        {words.text}
      </text>
      {note !== "" && (
        <text class="step-note bad" x={words.x} y={y + 14}>
          {fitted(note, textWidth)}
        </text>
      )}
    </g>
  );
}

/** Times, cut pauses and the sessions' lines. */
function Ground({ layout, active }: { layout: Layout; active: boolean }) {
  const { lanes, pauses, times, width, height } = layout;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it takes the focus
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
          {gone.has(key) || key === NOT_VISIBLE ? (
            <span class="soft">
              <Name text={name(key)} title={gone.has(key) ? `${key} does not exist any more` : key} />
            </span>
          ) : (
            <SessionLink sessionKey={key} name={name(key)} />
          )}
        </span>
      ))}
    </div>
  );
}

/** How the picture is scrolled, and that it stays where it was read. */
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
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    look();
    return () => observer.disconnect();
  }, []);
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
  ...{ ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
};

export function Diagram(props: DiagramProps) {
  const { chainId, steps, parties, around, chosen, onChoose, active } = props;
  const [room, setRoom] = useState(900);
  const layout = useMemo(() => layOut(steps, parties, room), [steps, parties, room]);
  const { box, sight, look } = useSight(layout.height, chainId);
  const [focused, setFocused] = useState<string>();
  const wanted = useRef<string | undefined>(undefined);
  if (sight.width !== room) setRoom(sight.width);
  const inOrder = useMemo(() => layout.steps.toSorted((a, b) => a.y - b.y), [layout]);
  const inTab = [focused, chosen].find(
    (id) => id !== undefined && inOrder.some(({ step }) => step.id === id),
  );
  const first = inTab ?? inOrder[0]?.step.id;
  const isNear = (top: number, end: number): boolean =>
    end > sight.top - MARGIN && top < sight.top + sight.height + MARGIN;
  const onKeyDown = (event: KeyboardEvent): void => {
    const id = (event.target as Element).closest("[data-step]")?.getAttribute("data-step");
    const at = inOrder.findIndex(({ step }) => step.id === id);
    if (at < 0 || id == null) return;
    const by = STEPS_OF_KEYS[event.key];
    if (by === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (by === undefined) {
      onChoose(id);
      return;
    }
    const next = inOrder[Math.max(0, Math.min(inOrder.length - 1, at + by))];
    if (next === undefined) return;
    wanted.current = next.step.id;
    setFocused(next.step.id);
    const element = box.current;
    const { y } = next;
    if (element !== null && (y < element.scrollTop + 90 || y > element.scrollTop + element.clientHeight - 60))
      element.scrollTop = y - element.clientHeight / 2;
    look();
  };
  useLayoutEffect(() => {
    if (wanted.current === undefined) return;
    const element = box.current?.querySelector(`[data-step="${CSS.escape(wanted.current)}"]`);
    if (element instanceof SVGElement) {
      element.focus({ preventScroll: true });
      wanted.current = undefined;
    }
  });
  const shown = layout.steps.filter((one) => isNear(one.top ?? one.y, one.y) || one.step.id === first);
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
            laneWidth={layout.laneWidth}
            chosen={placed.step.id === chosen}
            focusable={placed.step.id === first}
            onChoose={() => {
              setFocused(placed.step.id);
              onChoose(placed.step.id);
            }}
          />
        ))}
      </svg>
    </div>
  );
}
