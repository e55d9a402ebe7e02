// Draws plots of a figure against size, as SVG with two logarithmic axes. Rows with the same `growth.plot`
// share a plot, and rows with the same `growth.line` a line, which connects the medians. The tinted area
// above a line reaches to its p95. Each line has its name at its end, so a reader need not tell colours
// apart. The file needs no font or script, and suits light and dark pages.

import { type Growth, percentile, type Row, shown } from "./measure.ts";

interface Point {
  readonly at: number;
  readonly middle: number;
  readonly high: number;
}

interface Line {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Plot {
  readonly name: string;
  /** The unit of the size axis. */
  readonly of: string;
  readonly unit: Row["unit"];
  readonly lines: readonly Line[];
}

const WIDTH = 960;
const HEIGHT = 540;
const LEFT = 92;
const TOP = 64;
const BOTTOM = HEIGHT - 76;
const TEXT_PX = 17;
const TITLE_PX = 21;
/** Minimum vertical distance between the names of lines, in pixels. */
const NAME_GAP = 21;
/** Approximate width of a character, used to reserve space for the names at the right. */
const SIGN_PX = 9;

/** Colours for a white page and for a black one. They also differ in lightness. */
const LIGHT = ["#0b62c4", "#b3261e", "#1b7f3b", "#8a4fbf", "#9a5b00", "#00727a", "#c2185b", "#5c6670"];
const DARK = ["#6db3ff", "#ff8a80", "#6fd08c", "#c9a2f2", "#f0b350", "#5fd3dc", "#ff8fb8", "#b4bec9"];

/** Groups the rows with `growth` into plots, in the order of the rows. */
export function plotsOf(rows: readonly Row[]): Plot[] {
  const growing = rows.flatMap((row) => (row.growth === undefined ? [] : [{ row, growth: row.growth }]));
  const nameOf = ({ plot, line }: Growth): string => plot ?? line;
  return [...new Set(growing.map(({ growth }) => nameOf(growth)))].flatMap((name): Plot[] => {
    const mine = growing.filter(({ growth }) => nameOf(growth) === name);
    const [first] = mine;
    if (first === undefined) return [];
    const units = [...new Set(mine.map(({ row }) => row.unit))];
    if (units.length > 1) throw new Error(`the plot "${name}" has several units: ${units.join(", ")}`);
    const lines = [...new Set(mine.map(({ growth }) => growth.line))].map((line) => ({
      name: line,
      points: mine
        .filter(({ growth }) => growth.line === line)
        .map(({ row, growth }) => ({
          at: growth.at,
          middle: percentile(row.samples, 0.5),
          high: percentile(row.samples, 0.95),
        }))
        .sort((a, b) => a.at - b.at),
    }));
    return [{ name, of: first.growth.of ?? "size", unit: first.row.unit, lines }];
  });
}

/** Returns a file name for a plot: the letters and digits of its name. */
export function fileNameOf({ name }: Plot): string {
  return `${name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "")}.svg`;
}

interface Scale {
  readonly ticks: readonly number[];
  place(value: number): number;
}

/** Returns a logarithmic axis between two positions. It ends at the powers of ten around the values. */
function logScale(values: readonly number[], from: number, to: number): Scale {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...positive)) - 1e-9));
  return {
    ticks: Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at)),
    place: (value) => from + ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * (to - from),
  };
}

export function plain(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

function tickText(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`;
  if (value >= 1_000) return `${value / 1_000}k`;
  return String(Number(value.toPrecision(1)));
}

function axes(plot: Plot, x: Scale, y: Scale, right: number): string[] {
  const middleY = (TOP + BOTTOM) / 2;
  return [
    ...y.ticks.flatMap((tick) => {
      const at = y.place(tick).toFixed(1);
      return [
        `<line class="grid" x1="${LEFT}" x2="${right}" y1="${at}" y2="${at}"/>`,
        `<text x="${LEFT - 10}" y="${at}" dy=".35em" text-anchor="end">${tickText(tick)}</text>`,
      ];
    }),
    ...x.ticks.flatMap((tick) => {
      const at = x.place(tick).toFixed(1);
      return [
        `<line class="grid" x1="${at}" x2="${at}" y1="${TOP}" y2="${BOTTOM}"/>`,
        `<text x="${at}" y="${BOTTOM + 26}" text-anchor="middle">${tickText(tick)}</text>`,
      ];
    }),
    `<text x="${(LEFT + right) / 2}" y="${BOTTOM + 56}" text-anchor="middle">${plain(plot.of)}</text>`,
    `<text transform="translate(24 ${middleY}) rotate(-90)" text-anchor="middle">${plain(plot.unit)}</text>`,
  ];
}

/**
 * Returns the vertical positions of the lines' names: as near to the ends of the lines as possible without
 * overlap.
 */
function nameHeights(ends: readonly number[]): number[] {
  const order = ends.map((end, at) => ({ end, at })).sort((a, b) => a.end - b.end);
  const heights = new Array<number>(ends.length).fill(0);
  let above = Number.NEGATIVE_INFINITY;
  for (const { end, at } of order) {
    above = Math.max(end, above + NAME_GAP);
    heights[at] = above;
  }
  // Moves up the names that the first pass placed below the lower edge.
  let below = BOTTOM + NAME_GAP;
  for (const { at } of order.reverse()) {
    below = Math.min(heights[at] ?? 0, below - NAME_GAP);
    heights[at] = below;
  }
  return heights;
}

function drawn(plot: Plot, x: Scale, y: Scale, right: number): string[] {
  const ends = plot.lines.map(({ points }) => y.place(points.at(-1)?.middle ?? 0));
  const heights = nameHeights(ends);
  return plot.lines.flatMap(({ name, points }, index) => {
    const tone = `tone${index % LIGHT.length}`;
    const spot = (at: number, value: number): [string, string] => [
      x.place(at).toFixed(1),
      y.place(value).toFixed(1),
    ];
    const path = (value: (point: Point) => number, of: readonly Point[]): string =>
      of.map((point) => spot(point.at, value(point)).join(",")).join(" ");
    const edge = `${path(({ middle }) => middle, points)} ${path(({ high }) => high, [...points].reverse())}`;
    const last = points.at(-1);
    const [end = 0, height = 0] = [ends[index], heights[index]];
    const from = last === undefined ? right : x.place(last.at);
    const dash = index >= LIGHT.length ? ' stroke-dasharray="8 5"' : "";
    return [
      // Plots with many lines have no areas, because these would cover each other.
      ...(plot.lines.length > LIGHT.length ? [] : [`<polygon class="${tone} high" points="${edge}"/>`]),
      `<polyline class="${tone} line"${dash} points="${path(({ middle }) => middle, points)}"/>`,
      ...points.map(({ at, middle }) => {
        const [cx, cy] = spot(at, middle);
        return `<circle class="${tone} dot" cx="${cx}" cy="${cy}" r="4"/>`;
      }),
      `<line class="${tone} lead" x1="${(from + 6).toFixed(1)}" y1="${end.toFixed(1)}" ` +
        `x2="${right + 18}" y2="${height.toFixed(1)}"/>`,
      `<text class="${tone} name" x="${right + 24}" y="${height.toFixed(1)}" dy=".35em">${plain(name)} ` +
        `<tspan class="value">${last === undefined ? "" : shown(last.middle)}</tspan></text>`,
    ];
  });
}

function style(): string {
  const tones = (colours: readonly string[]): string =>
    colours.map((colour, at) => `.tone${at}{--tone:${colour}}`).join("");
  return (
    `text{font:${TEXT_PX}px system-ui,sans-serif;fill:var(--text)}` +
    `.title{font-size:${TITLE_PX}px;font-weight:600}.ground{fill:var(--ground)}` +
    ".grid{stroke:var(--grid);stroke-width:1}" +
    ".line{fill:none;stroke:var(--tone);stroke-width:2.5}.high{fill:var(--tone);opacity:.13}" +
    ".dot,.name{fill:var(--tone)}.lead{stroke:var(--tone);opacity:.5}.value{font-weight:600}" +
    `svg{--text:#24292f;--ground:#ffffff;--grid:#d8dee4}${tones(LIGHT)}` +
    "@media (prefers-color-scheme:dark){svg{--text:#e6edf3;--ground:#0d1117;--grid:#30363d}" +
    `${tones(DARK)}}`
  );
}

/** Returns the plot as an SVG file. */
export function svgOf(plot: Plot): string {
  const longest = Math.max(...plot.lines.map(({ name }) => name.length + 6));
  const right = WIDTH - Math.min(WIDTH / 2, 36 + longest * SIGN_PX);
  const points = plot.lines.flatMap((line) => line.points);
  const x = logScale(
    points.map(({ at }) => at),
    LEFT,
    right,
  );
  const y = logScale(
    points.flatMap(({ middle, high }) => [middle, high]),
    BOTTOM,
    TOP,
  );
  const title = `${plot.name}: ${plot.unit} by ${plot.of}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" ` +
      `aria-label="${plain(title)}">`,
    `<style>${style()}</style>`,
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}"/>`,
    `<text class="title" x="${LEFT}" y="34">${plain(title)}</text>`,
    ...axes(plot, x, y, right),
    ...drawn(plot, x, y, right),
    "</svg>",
    "",
  ].join("\n");
}
