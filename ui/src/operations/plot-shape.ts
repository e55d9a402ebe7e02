// Converts values over time into the shapes of a plot: scale, paths, nearest point. Pure functions.
// PS1: where values are missing, the line has a gap. A single value between two gaps is a dot.

export type Values = readonly (number | null)[];

/** Size of the area in which plots are drawn. They are stretched from it to the available size. */
export const WIDTH = 600;
export const HEIGHT = 100;

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Returns the smallest 1, 2 or 5 times a power of ten that is at least `most`, and 1 for 0. */
export function niceTop(most: number): number {
  if (!Number.isFinite(most) || most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 5, 10].find((one) => one * power >= most) ?? 10;
  return step * power;
}

export function extremes(lines: readonly Values[]): { least: number; most: number } | undefined {
  const known = lines.flat().filter((value) => value !== null);
  if (known.length === 0) return undefined;
  return { least: Math.min(...known), most: Math.max(...known) };
}

export function xOf(time: number, { from, to }: Span): number {
  return to === from ? WIDTH : ((time - from) / (to - from)) * WIDTH;
}

function yOf(value: number, top: number): number {
  return HEIGHT - (Math.min(value, top) / top) * HEIGHT;
}

const short = (value: number): string => String(Math.round(value * 10) / 10);

/** Splits a line into lists of points: at gaps, and between times more than `gapMs` apart. */
function stretches(times: readonly number[], values: Values, gapMs: number): (readonly [number, number])[][] {
  const found: [number, number][][] = [];
  let before: number | undefined;
  values.forEach((value, at) => {
    const time = times[at];
    if (value === null || time === undefined) {
      before = undefined;
      return;
    }
    if (before === undefined || time - before > gapMs) found.push([]);
    found.at(-1)?.push([time, value]);
    before = time;
  });
  return found;
}

interface LineShape {
  /** `d` attributes of two SVG paths: the line, and the area below the line. */
  readonly line: string;
  readonly area: string;
}

export function lineShape(
  times: readonly number[],
  values: Values,
  place: { readonly span: Span; readonly top: number; readonly gapMs: number },
): LineShape {
  const { span, top, gapMs } = place;
  const lines: string[] = [];
  const areas: string[] = [];
  for (const points of stretches(times, values, gapMs)) {
    const steps = points.map(([time, value]) => `${short(xOf(time, span))} ${short(yOf(value, top))}`);
    const [first = 0, last = 0] = [points[0]?.[0], points.at(-1)?.[0]].map((time = 0) => xOf(time, span));
    lines.push(`M${steps.join("L")}${points.length === 1 ? "h.01" : ""}`);
    if (points.length > 1)
      areas.push(`M${short(first)} ${HEIGHT}L${steps.join("L")}L${short(last)} ${HEIGHT}Z`);
  }
  return { line: lines.join(""), area: areas.join("") };
}

export function nearest(times: readonly number[], time: number): number {
  let best = -1;
  times.forEach((one, at) => {
    if (best < 0 || Math.abs(one - time) < Math.abs((times[best] ?? 0) - time)) best = at;
  });
  return best;
}
