// Owns measuring: samples, percentiles, the machine, and the table that is printed.

import { readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

export interface Row {
  readonly name: string;
  readonly size: string;
  readonly unit: "ms" | "s" | "MB" | "/s" | "packages";
  readonly samples: readonly number[];
  /** What the issue of this figure asks for, for the reader. */
  readonly target?: string;
  /** The line of a plot that this row is a point of, and where it lies on the axis of sizes. */
  readonly growth?: { readonly line: string; readonly at: number };
}

/** Calls `work` `times` times after `warmUp` calls that do not count, and gives the milliseconds of each. */
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

export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Resident memory of a process in MB, where /proc tells it. */
export function residentMb(pid: number): number | undefined {
  try {
    const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return line === null ? undefined : Number(line[1]) / 1024;
  } catch {
    return undefined;
  }
}

export function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  const cpu = all[0]?.model ?? "unknown cpu";
  return `${all.length} x ${cpu}, ${memory} GB, ${process.platform}, Node ${process.versions.node}`;
}

const shown = (value: number): string => value.toFixed(value < 10 ? 2 : 0);

export function table(rows: readonly Row[]): string {
  const head = ["what", "size", "n", "p50", "p95", "p99", "max", "unit", "target"];
  const lines = rows.map((row) => [
    row.name,
    row.size,
    String(row.samples.length),
    ...[0.5, 0.95, 0.99, 1].map((share) => shown(percentile(row.samples, share))),
    row.unit,
    row.target ?? "",
  ]);
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
