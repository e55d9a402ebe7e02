// Owns the figures of the last hour, and the groups of figures that share a plot. The page reads all figures
// once, and then only newer values.
// FG1: the page never keeps more points than the gateway does.

import type { PayloadOf } from "../../../../src/contract/methods.ts";
import type { Span, Values } from "../../operations/plot-shape.ts";
import { duration, exactMoney, HOUR_MS, MINUTE_MS, money, size, tokens } from "../../parts/format.ts";

export type History = PayloadOf<"metrics.history">;
export type Unit = History["series"][number]["unit"];

/** Time span of the plots until the gateway has run for longer than this. */
const SHORT_MS = 10 * MINUTE_MS;

/** Appends newer values, and drops the oldest if there are more than the gateway keeps. */
export function joined(before: History | undefined, news: History): History {
  if (before === undefined) return news;
  const drop = Math.max(0, before.times.length + news.times.length - news.pointsMax);
  const join = <T>(old: readonly T[], more: readonly T[]): T[] => [...old, ...more].slice(drop);
  const series = news.series.map((one) => {
    const known = before.series.find(({ name }) => name === one.name);
    const old = known?.values ?? before.times.map(() => null);
    return { ...one, values: join(old, one.values) };
  });
  return { ...news, times: join(before.times, news.times), series };
}

/** Returns the span of the plots by the gateway's clock: an hour, or ten minutes after its start. */
export function spanOf(times: readonly number[]): Span {
  const to = times.at(-1) ?? 0;
  const age = to - (times[0] ?? to);
  return { from: to - (age > SHORT_MS ? HOUR_MS : SHORT_MS), to };
}

export interface PlotLine {
  readonly title: string;
  readonly help: string;
  readonly values: Values;
}

export interface Plotted {
  readonly title: string;
  readonly unit: Unit;
  readonly lines: readonly PlotLine[];
}

/** Groups of figures that share a plot. Each figure has a short name. */
const GROUPS: readonly { readonly title: string; readonly of: Readonly<Record<string, string>> }[] = [
  { title: "Runs", of: { runs: "ended", failures: "failed" } },
  { title: "Lanes", of: { running: "running", waiting: "waiting", queued: "queued" } },
  { title: "Run time", of: { run_p50: "median", run_p95: "95 %" } },
  { title: "Queue wait", of: { queue_p50: "median" } },
  { title: "Model call", of: { model_p50: "median", model_p95: "95 %" } },
  { title: "Tokens", of: { tokens: "all kinds" } },
  { title: "Cost", of: { cost: "all models" } },
  { title: "Deliveries", of: { deliveries_pending: "waiting", deliveries_failed: "failed" } },
  { title: "Event loop delay", of: { loop_p99: "99 %" } },
  { title: "Store commit", of: { commit_p95: "95 %" } },
  { title: "Memory", of: { memory: "resident" } },
  { title: "Connections", of: { connections: "connected" } },
];

/** Returns the plots in order. A figure that is in no group has a plot of its own. */
export function plotsOf({ series }: History): Plotted[] {
  const known = new Set(GROUPS.flatMap(({ of }) => Object.keys(of)));
  const groups = GROUPS.flatMap(({ title, of }) => {
    const found = Object.entries(of).flatMap(([name, short]) => {
      const one = series.find((candidate) => candidate.name === name);
      return one === undefined ? [] : [{ one, short }];
    });
    const unit = found[0]?.one.unit;
    const lines = found.map(({ one: { help, values }, short }) => ({ title: short, help, values }));
    return unit === undefined ? [] : [{ title, unit, lines }];
  });
  const rest = series.filter(({ name }) => !known.has(name));
  return [
    ...groups,
    ...rest.map(({ title, unit, help, values }) => ({ title, unit, lines: [{ title: "", help, values }] })),
  ];
}

function plain(value: number): string {
  if (value >= 1000) return tokens(Math.round(value));
  return value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2);
}

/** Formats a value with its unit. Returns `—` if there is no value. */
export function inUnit(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return "—";
  switch (unit) {
    case "ms":
      if (value === 0) return "0 ms";
      return value < 10 ? `${value < 0.1 ? value.toFixed(2) : value.toFixed(1)} ms` : duration(value);
    case "bytes":
      return size(value);
    case "usd_per_minute":
      return `${value < 0.01 ? exactMoney(value) : money(value)}/min`;
    case "per_minute":
      return `${plain(value)}/min`;
    case "count":
      return plain(value);
  }
}

export function rangeOf({ least, most }: { least: number; most: number }, unit: Unit): string {
  return [...new Set([inUnit(least, unit), inUnit(most, unit)])].join(" … ");
}

/** Describes a plot in one sentence, for screen readers. */
export function inWords({ title, unit, lines }: Plotted): string {
  const said = lines.map(({ title: name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: nothing measured`;
    const [least, most] = [Math.min(...known), Math.max(...known)].map((value) => inUnit(value, unit));
    return `${name}: now ${inUnit(values.at(-1), unit)}, lowest ${least}, highest ${most}`;
  });
  return `${title}. ${said.join("; ")}.`;
}
