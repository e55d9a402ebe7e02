// Computes the layout of a chain's diagram: a column for each session, with time running downwards. Pure
// functions.
// LY1: every step has its own row, in the order of time, so that no two steps overlap.
// LY2: time is not drawn to scale. A longer time takes a little more room, and a long pause is shortened and
//      marked.
// LY3: an unfinished run or wait extends to the lower edge.
// LY4: the columns share the width of the window, except those that the reader has resized. If they would be
//      narrower than their minimum, the diagram is wider than the window.

import type { ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import { isTooLong } from "../fitted.ts";
import { hasNote, hasRun, homeOf, isFailed } from "../words.ts";
import type { FlowParty } from "./groups.ts";

/** Width of the area for the times, at the left of the first column. */
export const GUTTER = 84;
/** Minimum width of a column at a zoom of 1. */
const LANE_MIN = 168;
/** Minimum width of a column at the zoom `FITTED`. */
const LANE_FITTED_MIN = 28;
/** Maximum distance from the first column's line to the left edge of the columns. */
const LANE_LEFT = 64;
/** Maximum width of a line of text, so that it is easy to read. */
const TEXT_MAX = 560;
/** The zoom at which the columns are made narrow enough to see all of them. */
export const FITTED = 0;
const TOP = 22;
const BOTTOM = 40;
/** Heights of the row of a step, and of the end of a run, which has no text. */
const ROW = 36;
const END = 16;
/** Additional heights of a row: for the outcome below its text, and for the second line of its text. */
const NOTE = 12;
const LINE = 14;
/** A pause that is at least this long is shortened. */
const PAUSE_MS = 15_000;
const PAUSE_HEIGHT = 34;

export interface Lane {
  readonly key: string;
  readonly x: number;
  readonly width: number;
}

/** A run, drawn as a bar on the line of its session. */
export interface Bar {
  readonly id: string;
  readonly x: number;
  /** Y coordinate at which the run was accepted. From there to `run`, it was queued. */
  readonly top: number;
  /** Y coordinate at which the run started. Undefined if it has not started. */
  readonly run: number | undefined;
  readonly end: number;
  readonly open: boolean;
  readonly failed: boolean;
  readonly silent: boolean;
  /** Parts of the bar during which the run waited for another session. */
  readonly waits: readonly { readonly top: number; readonly end: number }[];
}

export interface Placed {
  readonly step: ChainStep;
  readonly y: number;
  /** X coordinates at which the arrow starts and ends. Undefined if the step has no session at that end. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** For a wait: the y coordinate at which it starts. */
  readonly top: number | undefined;
  /** The text, its X coordinate and its width. */
  readonly label: string;
  readonly textX: number;
  readonly textWidth: number;
  /** Width of the column in which the text begins. */
  readonly laneWidth: number;
  /** X coordinates of the left and right end of everything that is drawn for the step. */
  readonly left: number;
  readonly right: number;
}

type Phase = "end" | "row" | "run";

interface Moment {
  readonly at: number;
  readonly phase: Phase;
  readonly id: string;
  readonly height: number;
  /** Additional height that the row needs below its arrow. */
  readonly below?: number;
}

const ORDER: Readonly<Record<Phase, number>> = { end: 0, row: 1, run: 2 };

const isWait = (step: ChainStep): boolean => step.kind === "wait";

/** Returns everything that takes vertical space, in order. `isLong`: whether a text has two lines. */
function momentsOf(steps: readonly ChainStep[], isLong: (step: ChainStep) => boolean): Moment[] {
  const moments: Moment[] = [];
  for (const step of steps) {
    const { id, at, startedAt, endAt } = step;
    if (isWait(step)) {
      // A wait starts at the row of the message that was sent. So only its end takes space.
      moments.push({ at: endAt ?? Number.MAX_SAFE_INTEGER, phase: "end", id, height: ROW });
      continue;
    }
    const height = isLong(step) ? ROW + LINE : ROW;
    moments.push({ at, phase: "row", id, height, below: hasNote(step) ? NOTE : 0 });
    if (!hasRun(step) || step.appended === true) continue;
    if (startedAt !== undefined)
      moments.push({ at: startedAt, phase: "run", id, height: startedAt > at + 250 ? END : 0 });
    if (endAt !== undefined) {
      const worded = step.silent === true && step.kind !== "announce";
      moments.push({ at: endAt, phase: "end", id, height: worded ? 22 : END });
    }
  }
  // If times are equal, the moments of one step keep their order, and the end of a run comes before the steps
  // that this run causes.
  return moments.sort((a, b) => a.at - b.at || (a.id === b.id ? 0 : ORDER[a.phase] - ORDER[b.phase]));
}

/** Computes the y coordinates of all moments. */
function inTime(steps: readonly ChainStep[], isLong: (step: ChainStep) => boolean) {
  const sends = new Map(
    steps.flatMap((step) =>
      step.kind === "send" && step.flowId !== undefined ? [[step.flowId, step.id]] : [],
    ),
  );
  const places = new Map<string, number>();
  const pauses: { y: number; ms: number }[] = [];
  let y = TOP;
  let before: number | undefined;
  for (const { at, phase, id, height, below = 0 } of momentsOf(steps, isLong)) {
    const pause = before === undefined || at === Number.MAX_SAFE_INTEGER ? 0 : at - before;
    if (pause >= PAUSE_MS) {
      pauses.push({ y: y + PAUSE_HEIGHT / 2 + 4, ms: pause });
      y += PAUSE_HEIGHT;
    } else y += pause < 100 ? 0 : Math.min(22, 4 + 5 * Math.log10(pause / 100) * 2);
    y += height;
    places.set(`${phase} ${id}`, y);
    y += below;
    if (at !== Number.MAX_SAFE_INTEGER) before = at;
  }
  return {
    y: (id: string, phase: Phase) => places.get(`${phase} ${id}`),
    /** Returns the y coordinate of the message to which the wait belongs. */
    sent: ({ flowId = "" }: ChainStep) => places.get(`row ${sends.get(flowId)}`),
    pauses,
    bottom: y,
  };
}

type Times = ReturnType<typeof inTime>;

function barOf(step: ChainStep, x: number, times: Times, mine: readonly ChainStep[], bottom: number): Bar {
  const top = times.y(step.id, "row") ?? TOP;
  const end = times.y(step.id, "end");
  const run = times.y(step.id, "run");
  return {
    id: step.id,
    x,
    top,
    run,
    end: step.appended === true ? top : (end ?? bottom),
    open: end === undefined && step.appended !== true,
    failed: isFailed(step),
    silent: step.silent === true && step.kind !== "announce",
    waits: mine.map((wait) => ({
      top: times.sent(wait) ?? top,
      end: wait.endAt === undefined ? bottom : (times.y(wait.id, "end") ?? bottom),
    })),
  };
}

/** Returns the times at the left of rows: not one that equals the time above, or has no room. */
function timesOf(placed: readonly Placed[]): { y: number; at: number }[] {
  const shown: { y: number; at: number }[] = [];
  for (const { step, y } of placed.toSorted((a, b) => a.y - b.y)) {
    const at = isWait(step) ? step.endAt : step.at;
    const last = shown.at(-1);
    const isNew = last === undefined || Math.floor(last.at / 1000) !== Math.floor((at ?? 0) / 1000);
    if (at !== undefined && isNew && y - (last?.y ?? 0) >= 12) shown.push({ y, at });
  }
  return shown;
}

/** Returns the columns, the width of one that was not resized, and the right end of the last one. */
function lanesOf(
  parties: readonly FlowParty[],
  room: number,
  zoom: number,
  widths: ReadonlyMap<string, number>,
) {
  const least = zoom === FITTED ? LANE_FITTED_MIN : LANE_MIN * zoom;
  const laneWidth = Math.max(least, (room - GUTTER - LANE_LEFT) / Math.max(1, parties.length));
  const lanes: Lane[] = [];
  let right = GUTTER + Math.min(LANE_LEFT, laneWidth / 2);
  for (const { key } of parties) {
    const lane = { key, x: right, width: widths.get(key) ?? laneWidth };
    lanes.push(lane);
    right += lane.width;
  }
  return { lanes, laneWidth, right };
}

interface Options {
  readonly zoom?: number;
  /** The widths of columns that the reader has resized, by key. */
  readonly widths?: ReadonlyMap<string, number>;
  readonly labelOf?: (step: ChainStep) => string;
}

/**
 * Computes the layout of a chain. `room`: the width that is available without scrolling. Of the result,
 * `laneWidth` is the width of the columns that were not resized, `pauses` those that are shortened.
 */
export function layOut(
  steps: readonly ChainStep[],
  parties: readonly FlowParty[],
  room: number,
  { zoom = 1, widths = new Map(), labelOf = () => "" }: Options = {},
) {
  const { lanes, laneWidth, right } = lanesOf(parties, room, zoom, widths);
  const xOf = new Map(lanes.map(({ key, x }) => [key, x]));
  const widthAt = new Map(lanes.map(({ x, width }) => [x, width]));
  for (const { key, merged = [] } of parties) for (const one of merged) xOf.set(one.key, xOf.get(key) ?? 0);
  const endsOf = ({ from = "", to = "" }: ChainStep) => ({ from: xOf.get(from), to: xOf.get(to) });
  const textOf = (step: ChainStep) => {
    const { from, to } = endsOf(step);
    const ends = [from, to].filter((x) => x !== undefined);
    const [near, far] = [Math.min(...ends), Math.max(...ends)];
    const own = widthAt.get(near) ?? laneWidth;
    const spans = ends.length === 2 && near !== far;
    const width = spans ? Math.min(far - near, Math.max(own, TEXT_MAX)) : Math.min(own, TEXT_MAX);
    const x = (ends.length === 0 ? GUTTER : near) + 14;
    return { x, width: Math.max(LANE_FITTED_MIN, width) - 26, laneWidth: own };
  };
  const times = inTime(steps, (step) => {
    const text = textOf(step);
    const width = step.kind === "refused" ? text.laneWidth - 26 : text.width;
    return step.kind !== "delivery" && isTooLong(labelOf(step), width);
  });
  const height = times.bottom + BOTTOM;
  const waits = Map.groupBy(
    steps.filter((step) => isWait(step) && step.runId !== undefined),
    ({ runId = "" }) => runId,
  );
  const bars = steps.flatMap((step) => {
    const x = xOf.get(homeOf(step) ?? "");
    const mine = waits.get(step.runId ?? "") ?? [];
    return x === undefined || !hasRun(step) ? [] : [barOf(step, x, times, mine, height - 12)];
  });
  const placed = steps.map((step): Placed => {
    const y = times.y(step.id, isWait(step) ? "end" : "row") ?? height - 12;
    const { x: textX, width: textWidth, laneWidth } = textOf(step);
    const { from, to } = endsOf(step);
    const left = Math.min(textX, from ?? textX, to ?? textX);
    const right = Math.max(textX + textWidth, from ?? 0, to ?? 0);
    const top = isWait(step) ? times.sent(step) : undefined;
    return { step, y, from, to, top, label: labelOf(step), textX, textWidth, laneWidth, left, right };
  });
  const width = Math.max(room, right);
  const { pauses } = times;
  return { lanes, laneWidth, bars, steps: placed, pauses, times: timesOf(placed), width, height };
}
