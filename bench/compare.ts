// Compares two measurements: the rows in both, their differences, and whether these exceed noise. A
// difference counts if it is larger than `SLACK` and if the 99 % bootstrap interval of the ratio of the two
// medians excludes 1. Rows with few samples never count as different, because their noise is unknown. The
// same files give the same text, because resampling uses a fixed seed. The samples of one run are taken on
// one machine within minutes, so the interval does not include differences between runs (other load, another
// disk layout). `SLACK` allows for those.

import { numbersFrom } from "../tests/kit/dice.ts";
import { columns, middle, percentile, type Row, shown } from "./measure.ts";

/** If the ratio of two medians differs from 1 by less than this, the difference is noise. */
const SLACK = 0.1;
const RESAMPLES = 1_000;
const SAMPLES_MIN = 8;
/** Maximum number of samples that are resampled. More would hardly make the median more exact. */
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

/**
 * Returns at most `SAMPLES_MAX` samples, evenly spaced, so that a drift during the measurement stays visible.
 */
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
    // Packages are counted exactly, so every difference is real.
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
  /** Names of the rows that only the older measurement has. */
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

/** Formats both measurements side by side, and the regressions in one sentence. */
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
