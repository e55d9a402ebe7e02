// Owns the comparison of two measurements: which rows are in both, how they differ, and whether that is more
// than noise.
// CM1: a difference counts when it is larger than `SLACK` and the interval of the ratio of the two middles
//      (bootstrap, 99%) lies wholly on one side of it. Few samples never count: they can't tell noise.
// CM2: the same files give the same words: resampling takes its numbers from a fixed seed.
// Samples of one run follow each other on one machine, so the interval is too narrow for what differs from
// run to run (other load, another layout of the disk). That is why there is slack at all.

import { numbersFrom } from "../tests/kit/dice.ts";
import { columns, middle, percentile, type Row, shown } from "./measure.ts";

/** A ratio nearer to 1 than this is taken for the weather. */
const SLACK = 0.1;
const RESAMPLES = 1_000;
const SAMPLES_MIN = 8;
/** More samples than that tell nothing more about a middle, and cost time. */
const SAMPLES_MAX = 200;
const INTERVAL = [0.005, 0.995] as const;

export type Change = "faster" | "slower" | "smaller" | "larger" | "same" | "too few samples";

export interface Compared {
  readonly name: string;
  readonly size: string;
  readonly unit: Row["unit"];
  readonly before: number;
  readonly after: number;
  readonly ratio: number;
  readonly change: Change;
}

/** Evenly spread over the whole, so that a drift while measuring stays in. */
function thinned(samples: readonly number[]): readonly number[] {
  if (samples.length <= SAMPLES_MAX) return samples;
  const step = samples.length / SAMPLES_MAX;
  return Array.from({ length: SAMPLES_MAX }, (_, at) => samples[Math.floor(at * step)] ?? 0);
}

function ratios(before: readonly number[], after: readonly number[]): number[] {
  const random = numbersFrom(before.length * 7_919 + after.length);
  const draw = (from: readonly number[]): number =>
    percentile(
      from.map(() => from[Math.floor(random() * from.length)] ?? 0),
      0.5,
    );
  return Array.from({ length: RESAMPLES }, () => draw(after) / draw(before));
}

const WORDS = {
  ms: ["faster", "slower"],
  µs: ["faster", "slower"],
  s: ["faster", "slower"],
  "/s": ["slower", "faster"],
  KB: ["smaller", "larger"],
  MB: ["smaller", "larger"],
  "%": ["smaller", "larger"],
  packages: ["smaller", "larger"],
} as const;

function changeOf(before: Row, after: Row): Change {
  const [fewer, more] = WORDS[after.unit];
  if (after.unit === "packages") {
    // Counted, not measured.
    const [was, is] = [middle(before), middle(after)];
    return is === was ? "same" : is < was ? fewer : more;
  }
  if (Math.min(before.samples.length, after.samples.length) < SAMPLES_MIN) return "too few samples";
  const spread = ratios(thinned(before.samples), thinned(after.samples));
  const [low, high] = INTERVAL.map((share) => percentile(spread, share));
  if (low !== undefined && low > 1 + SLACK) return more;
  if (high !== undefined && high < 1 / (1 + SLACK)) return fewer;
  return "same";
}

const nameOf = (row: Row): string => JSON.stringify([row.name, row.size, row.unit]);

export interface Comparison {
  readonly rows: readonly Compared[];
  /** Rows that only one of the two has. */
  readonly gone: readonly string[];
  readonly added: readonly string[];
}

export function compare(before: readonly Row[], after: readonly Row[]): Comparison {
  const known = new Map(before.map((row) => [nameOf(row), row]));
  const rows = after.flatMap((row): Compared[] => {
    const was = known.get(nameOf(row));
    if (was === undefined) return [];
    const { name, size, unit } = row;
    const [from, to] = [middle(was), middle(row)];
    return [{ name, size, unit, before: from, after: to, ratio: to / from, change: changeOf(was, row) }];
  });
  const both = new Set(rows.map(({ name, size, unit }) => JSON.stringify([name, size, unit])));
  const only = (side: readonly Row[]): string[] =>
    side.filter((row) => !both.has(nameOf(row))).map((row) => `${row.name} (${row.size})`);
  return { rows, gone: only(before), added: only(after) };
}

/** Side by side, and in one sentence what became worse. */
export function comparison({ rows, gone, added }: Comparison): string {
  const head = ["what", "size", "p50 before", "p50 after", "unit", "ratio", "beyond noise"];
  const lines = rows.map((row) => [
    row.name,
    row.size,
    shown(row.before),
    shown(row.after),
    row.unit,
    shown(row.ratio),
    row.change,
  ]);
  const worse = rows.filter(({ change }) => change === "slower" || change === "larger");
  const named = worse.map((row) => `${row.name} (${row.size}) x${shown(row.ratio)}`);
  const verdict =
    worse.length === 0
      ? "Nothing became slower or larger beyond noise."
      : `Worse beyond noise: ${named.join("; ")}.`;
  return [
    columns(head, lines),
    "",
    verdict,
    ...(gone.length === 0 ? [] : [`Only before: ${gone.join("; ")}.`]),
    ...(added.length === 0 ? [] : [`Only after: ${added.join("; ")}.`]),
  ].join("\n");
}
