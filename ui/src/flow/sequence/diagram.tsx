// Draws the diagram of one chain as SVG: a column for each session, with time running downwards. `layout.ts`
// computes the positions.
// DG1: only the visible rows and columns are in the document, so 5,000 steps cost no more than fifty.
// DG2: the Tab key reaches only one step. The arrow keys move to other steps, and Enter opens a step.
// DG3: when the diagram grows, visible rows do not move and the selection stays. If the reader was at the
//      end, the view stays at the end.
// DG4: the names of the sessions, the times, and the texts of long arrows stay in view.
// DG5: the arrows and the pointer resize a column at its edge; Home and a double click reset it.

import { useMemo } from "preact/hooks";
import { agentIn } from "../../agents/face.ts";
import { agentName } from "../../agents/known.ts";
import { AgentMark } from "../../agents/mark.tsx";
import { Button } from "../../parts/button.tsx";
import { clockTime, counted, duration } from "../../parts/format.ts";
import { useKept } from "../../parts/kept.ts";
import { Name, SessionLink } from "../../parts/name.tsx";
import { fitted, twoLines } from "../fitted.ts";
import {
  type Around,
  type FlowStep,
  hasNote,
  homeOf,
  isFailed,
  label,
  outcomeWords,
  sentence,
  waitWords,
} from "../words.ts";
import { type ChainViewProps, Frame } from "./frame.tsx";
import type { FlowParty } from "./groups.ts";
import { useKeys } from "./keys.ts";
import { GUTTER, layOut, type Placed } from "./layout.ts";
import { ArrowOf, BarOf } from "./marks.tsx";
import { Resizer } from "./resizer.tsx";
import { TILE, useSight } from "./sight.ts";

/** Width of a column, in CSS pixels, below which its name is written from top to bottom. */
const NARROW = 76;
const EQUAL_WIDTHS: ReadonlyMap<string, number> = new Map();

interface DiagramProps extends ChainViewProps {
  readonly parties: readonly FlowParty[];
  readonly onExpand: (column: string) => void;
}

interface StepText {
  readonly x: number;
  readonly y: number;
  readonly lines: readonly string[];
  /** True if the text ends at `x`; otherwise it starts there. */
  readonly end?: true;
}

/** Returns the text of a step. If its target shares a column with others, the text names the target. */
function labelOf(step: FlowStep, around: Around, merged: ReadonlySet<string>): string {
  const words = label(step, around);
  const { to = "" } = step;
  if (!merged.has(to)) return words;
  return `${around.name(to).replace(`${agentName(agentIn(to))} · `, "")}: ${words}`;
}

function textOf(placed: Placed): StepText {
  const { step, y, from, to, label: words, textX, textWidth, laneWidth } = placed;
  const one = (width: number): [string] => [fitted(words, width)];
  // The text of a refusal stays beside the line of its session if it fits there.
  const refusal = (width: number): readonly string[] => {
    const lines = twoLines(words, laneWidth - 26);
    return lines.at(-1)?.endsWith("…") === true ? one(width) : lines;
  };
  if (step.kind === "refused" && from !== undefined && to !== undefined && to < from)
    return { x: from - 12, y: y - 6, lines: refusal((from - GUTTER) * 0.88), end: true };
  if (step.kind === "refused" && from !== undefined)
    return { x: from + 14, y: y - 6, lines: refusal(Math.max(textWidth, laneWidth * 1.6)) };
  if (step.kind === "delivery") return { x: textX + 24, y: y + 7, lines: one(textWidth - 24) };
  if (step.kind === "announce")
    return { x: textX, y: y + 4, lines: twoLines(words, Math.min(textWidth, laneWidth - 30)) };
  if (step.kind === "wait" && step.state !== "answered")
    return { x: (from ?? textX) + 14, y: y + 4, lines: [fitted(waitWords(step), laneWidth - 26)] };
  return { x: textX, y: y - 6, lines: step.kind === "wait" ? one(textWidth) : twoLines(words, textWidth) };
}

/** Moves the text of an arrow that begins further left into sight. `left`: left end of the tile in sight. */
function inSight(placed: Placed, left: number): Placed {
  const { textX, textWidth, laneWidth, right } = placed;
  const edge = left + TILE + GUTTER;
  if (left === 0 || textX >= edge || right - edge < laneWidth) return placed;
  return { ...placed, textX: edge, textWidth: Math.min(textWidth, right - edge) };
}

function kindOf(step: FlowStep): string {
  const kind = step.kind === "result" && step.source === "notice" ? "notice" : step.kind;
  return `kind-${kind}${isFailed(step) ? " is-failed" : ""} side-${step.side}`;
}

interface StepProps {
  readonly placed: Placed;
  readonly around: Around;
  readonly chosen: boolean;
  readonly found: boolean;
  readonly focusable: boolean;
}

function StepOf({ placed, around, chosen, found, focusable }: StepProps) {
  const { step, y, textX, textWidth } = placed;
  const words = fitted(sentence(step, around), 4_000);
  const { x, y: line, lines, end } = textOf(placed);
  // If there are two lines, the first one is higher, so that both are above the arrow. An announcement has
  // no arrow below its text.
  const firstY = lines.length === 1 || step.kind === "announce" ? line : line - 14;
  const note = hasNote(step) ? outcomeWords(step, around) : "";
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: there are no buttons in SVG */}
      <g
        class={`step ${kindOf(step)}${chosen ? " chosen" : ""}${found ? " found" : ""}`}
        data-step={step.id}
        role="button"
        tabindex={focusable ? 0 : -1}
        aria-pressed={chosen}
        aria-label={words}
      >
        <title>{words}</title>
        <rect class="step-hit" x={textX - 10} y={y - 34} width={textWidth + 22} height="43" rx="6" />
        <ArrowOf placed={placed} />
      </g>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing of it takes the focus */}
      <g class={`words ${kindOf(step)}`} aria-hidden="true">
        {lines.map((one, at) => (
          <text key={at} x={x} y={firstY + at * 14} text-anchor={end ? "end" : undefined}>
            {one}
          </text>
        ))}
        {note !== "" && (
          <text class={`step-note${isFailed(step) ? " bad" : ""}`} x={x} y={y + 14}>
            {fitted(note, textWidth)}
          </text>
        )}
      </g>
    </>
  );
}

interface Drawn {
  readonly layout: ReturnType<typeof layOut>;
  readonly sight: ReturnType<typeof useSight>;
}

/** Draws the line of each session, marked from where it is outside, shortened pauses, and runs. */
function Ground({ layout, sight, active }: Drawn & { active: boolean }) {
  const { lanes, steps, pauses, bars, width, height } = layout;
  const end = active ? height : height - 14;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it takes the focus
    <g aria-hidden="true">
      {lanes
        .filter(({ x }) => sight.isBeside(x, x))
        .map(({ key, x }) => {
          const outside = steps.find(({ step }) => step.labels?.outside && homeOf(step) === key);
          return (
            <g key={key}>
              <line class="lane" x1={x} x2={x} y1="0" y2={end} />
              {outside !== undefined && (
                <>
                  <line class="lane-outside" x1={x} x2={x} y1={outside.y} y2={end} />
                  <text class="lane-mark" x={x - 8} y={outside.y + 13} text-anchor="end">
                    outside
                  </text>
                </>
              )}
            </g>
          );
        })}
      {pauses
        .filter(({ y }) => sight.isNear(y, y))
        .map(({ y }) => (
          <line key={y} class="pause" x1={GUTTER - 8} x2={width - 8} y1={y} y2={y} />
        ))}
      {bars
        .filter(({ top, end, x }) => sight.isNear(top, end) && sight.isBeside(x, x))
        .map((bar) => (
          <BarOf key={bar.id} bar={bar} />
        ))}
    </g>
  );
}

/** Draws the times, and the lengths of the shortened pauses. Both stay at the left edge. */
function Times({ layout: { pauses, times, height }, sight }: Drawn) {
  const words = [
    ...pauses.map(({ y, ms }) => ({ y, text: `+ ${duration(ms)}` })),
    ...times.map(({ y, at }) => ({ y, text: clockTime(at) })),
  ];
  return (
    <div class="flow-times" style={{ width: `${GUTTER}px`, height: `${height}px` }} aria-hidden="true">
      {words
        .filter(({ y }) => sight.isNear(y, y))
        .map(({ y, text }) => (
          <span key={y} style={{ top: `${y}px` }}>
            {text}
          </span>
        ))}
    </div>
  );
}

/** The name of a column. Those that are merged open to their sessions or jobs. */
function Head({ party: { key, jobs, merged, gone }, props }: { party: FlowParty; props: DiagramProps }) {
  const name = props.around.name(key);
  const expand = (): void => props.onExpand(key);
  if (jobs !== undefined) {
    const text = counted(jobs.length, "job");
    return <Button text={text} class="flow-jobs" title="Show the jobs one by one" onClick={expand} />;
  }
  const id = agentIn(merged?.[0]?.jobs?.[0] ?? merged?.[0]?.key ?? key);
  const count = (merged ?? []).reduce((sum, one) => sum + (one.jobs?.length ?? 1), 0);
  const sessions = counted(count, "session");
  return (
    <>
      <AgentMark id={id} />
      {merged !== undefined ? (
        <button type="button" class="flow-jobs" title="Show the sessions one by one" onClick={expand}>
          <Name text={agentName(id)} title={`${agentName(id)}: ${sessions}`} />{" "}
          <span class="flow-count soft">{sessions}</span>
        </button>
      ) : gone !== true ? (
        <SessionLink sessionKey={key} name={name} />
      ) : (
        <span class="soft">
          <Name text={name} title={`${key} was deleted`} />
        </span>
      )}
    </>
  );
}

function Heads(given: Drawn & { props: DiagramProps; onWidth: (column: string, width?: number) => void }) {
  const { layout, sight, props, onWidth } = given;
  const { lanes, laneWidth, width } = layout;
  const isNarrow = laneWidth < NARROW;
  return (
    <div class={`flow-heads${isNarrow ? " narrow" : ""}`} style={{ width: `${width}px` }}>
      <span class="flow-corner" style={{ width: `${GUTTER}px` }} />
      {lanes.map((lane, at) => {
        const party = props.parties[at];
        if (party === undefined || !sight.isBeside(lane.x, lane.x + lane.width)) return null;
        const left = lane.x - (isNarrow ? 11 : 9);
        return (
          <div key={lane.key}>
            <span class="flow-head" style={{ left: `${left}px`, width: `${Math.max(22, lane.width - 6)}px` }}>
              <Head party={party} props={props} />
            </span>
            <Resizer
              name={props.around.name(lane.key)}
              left={left + lane.width - 10}
              width={lane.width}
              onWidth={(to) => onWidth(lane.key, to)}
            />
          </div>
        );
      })}
    </div>
  );
}

export function Diagram(props: DiagramProps) {
  const { steps, parties, around, chosen, found, active, zoom } = props;
  const sight = useSight(active);
  const { left, width: room } = sight.sight;
  const [widths, setWidths] = useKept("widths", EQUAL_WIDTHS);
  const onWidth = (column: string, width?: number): void => {
    const others = [...widths].filter(([key]) => key !== column);
    setWidths(new Map(width === undefined ? others : [...others, [column, width]]));
  };
  const layout = useMemo(() => {
    const merged = new Set(parties.flatMap((party) => (party.merged ?? []).map(({ key }) => key)));
    const words = (step: FlowStep): string => labelOf(step, around, merged);
    return layOut(steps, parties, room, { zoom, widths, labelOf: words });
  }, [steps, parties, around, room, zoom, widths]);
  const whole = useMemo(() => {
    const lines = layout.steps.map(({ step, left, right, from = left, to = right, y }) => {
      return { from, to, y, failed: isFailed(step) };
    });
    return { ...layout, lines };
  }, [layout]);
  const ids = useMemo(() => layout.steps.toSorted((a, b) => a.y - b.y).map(({ step }) => step.id), [layout]);
  const keys = useKeys({ ...props, ids, box: sight.box });
  const isDrawn = ({ step, top, y, left, right }: Placed): boolean =>
    (sight.isNear(top ?? y, y) && sight.isBeside(left, right)) || step.id === keys.inTab;
  const said = `${steps.length} steps, oldest first; the arrow keys go from one to the next`;
  return (
    <Frame sight={sight} keys={keys} height={layout.height} whole={whole} grows>
      <Heads layout={layout} sight={sight} props={props} onWidth={onWidth} />
      <div class="flow-canvas">
        <Times layout={layout} sight={sight} />
        {/* biome-ignore lint/a11y/useSemanticElements: there are no field sets in SVG */}
        <svg class="flow-picture" width={layout.width} height={layout.height} role="group" aria-label={said}>
          <Ground layout={layout} sight={sight} active={active} />
          {layout.steps.filter(isDrawn).map((placed) => (
            <StepOf
              key={placed.step.id}
              placed={inSight(placed, left)}
              around={around}
              chosen={placed.step.id === chosen}
              found={found.has(placed.step.id)}
              focusable={placed.step.id === keys.inTab}
            />
          ))}
        </svg>
      </div>
    </Frame>
  );
}
