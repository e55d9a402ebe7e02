// Collects samples and computes percentiles; describes the machine; formats the tables. A target applies to
// the median (p50), unless it names another percentile. Values are compared unrounded.

import { cpus, totalmem } from "node:os";

export interface Row {
  readonly name: string;
  readonly size: string;
  readonly unit: "ms" | "µs" | "s" | "KB" | "MB" | "/s" | "%" | "packages";
  readonly samples: readonly number[];
  /** The target, like "< 5", "> 400", "p99 < 50" or "max < 50". */
  readonly target?: string;
  /** Set if the row is one point of a line in a plot of a figure against size. */
  readonly growth?: Growth;
}

export interface Growth {
  readonly line: string;
  /** The position on the size axis. */
  readonly at: number;
  /** The unit of the size axis. Default: "size". */
  readonly of?: string;
  /** The plot that contains the line. Default: the line has a plot of its own, with the name of the line. */
  readonly plot?: string;
}

/** Calls `work` `warmUp` times, then `times` times, and returns the milliseconds of each later call. */
export async function sample(
  times: number,
  warmUp: number,
  work: (at: number) => Promise<unknown>,
): Promise<number[]> {
  for (let at = 0; at < warmUp; at += 1) await work(at);
  const samples: number[] = [];
  for (let at = 0; at < times; at += 1) {
    const from = performance.now();
    await work(warmUp + at);
    samples.push(performance.now() - from);
  }
  return samples;
}

const WARM_UP = 10;
const TIMES_MIN = 5;

/** Takes samples until `forMs` is over, but at least a minimum number and at most `timesMax`. */
export async function sampleFor(
  work: (at: number) => Promise<unknown>,
  { timesMax = 200, forMs = 1_500 }: { readonly timesMax?: number; readonly forMs?: number } = {},
): Promise<number[]> {
  const start = performance.now();
  const left = (): boolean => performance.now() - start < forMs;
  for (let at = 0; at < WARM_UP && left(); at += 1) await work(at);
  const samples: number[] = [];
  while (samples.length < TIMES_MIN || (samples.length < timesMax && left())) {
    const from = performance.now();
    await work(WARM_UP + samples.length);
    samples.push(performance.now() - from);
  }
  return samples;
}

export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Returns the median of a row's samples. */
export function middle(row: Pick<Row, "samples">): number {
  return percentile(row.samples, 0.5);
}

const TARGET = /^(?:(p\d{1,2}|max) )?([<>]) (\d+(?:\.\d+)?)$/;

/** Returns whether a row meets its target. Returns undefined if it has no target. */
export function meets(row: Row): boolean | undefined {
  if (row.target === undefined) return undefined;
  const [, which = "p50", sign, limit] = TARGET.exec(row.target) ?? [];
  if (sign === undefined) {
    throw new Error(`target ${JSON.stringify(row.target)} of ${row.name}: write "< 5", "> 5" or "p99 < 5"`);
  }
  const value = percentile(row.samples, which === "max" ? 1 : Number(which.slice(1)) / 100);
  return sign === "<" ? value < Number(limit) : value > Number(limit);
}

export function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  const cpu = all[0]?.model ?? "unknown cpu";
  return `${all.length} x ${cpu}, ${memory} GB, ${process.platform}, Node ${process.versions.node}`;
}

/** Formats a number with two decimals, or fewer if it is large. */
export function shown(value: number): string {
  if (Number.isNaN(value)) return "-";
  return value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0);
}

/** Formats a size with its unit, for example `10,000 sessions`. */
export const sizeText = (size: number, what: string): string => `${size.toLocaleString("en-US")} ${what}`;

export const HEAD = ["what", "size", "n", "p50", "p95", "p99", "max", "unit", "target", "met"] as const;

/** Returns a row as the cells of a table. If there is only one sample, fills in only p50. */
export function cellsOf(row: Row): string[] {
  const met = meets(row);
  const figures = [0.5, 0.95, 0.99, 1].map((share, at) =>
    at > 0 && row.samples.length === 1 ? "" : shown(percentile(row.samples, share)),
  );
  return [
    row.name,
    row.size,
    String(row.samples.length),
    ...figures,
    row.unit,
    row.target ?? "",
    met === undefined ? "" : met ? "yes" : "NO",
  ];
}

/** Formats lines of cells under a header, in aligned columns. */
export function columns(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) =>
    Math.max(title.length, ...lines.map((line) => line[at]?.length ?? 0)),
  );
  const print = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return [print(head), print(widths.map((width) => "-".repeat(width))), ...lines.map(print)].join("\n");
}

export function table(rows: readonly Row[]): string {
  return columns(HEAD, rows.map(cellsOf));
}
