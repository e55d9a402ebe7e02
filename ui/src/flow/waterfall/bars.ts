// Computes the rows of the waterfall: runs, and below each run its model calls, tool calls, waits and the
// runs that it caused. Pure functions.
// WF1: each run, call and wait is in exactly one row: its own, or that of its group.
// WF2: a row stands below the row that caused it, and rows with the same cause are in the order of time.

import type { ChainCall, ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import { duration, money, tokens } from "../../parts/format.ts";
import { joinWords } from "../../parts/words.ts";
import {
  type Around,
  countWords,
  hasRun,
  homeOf,
  isActive,
  isFailed,
  lead,
  slowestOf,
  title,
} from "../words.ts";

/** Minimum number of sibling jobs, or of calls to the same tool, that are put into one row. */
const GROUP_MIN = 4;

export interface Bar {
  readonly id: string;
  readonly kind: "run" | "group" | "model" | "tool" | "wait";
  readonly name: string;
  /** The name of a run or a wait with what its row shows otherwise: the outcome, and often the sender. */
  readonly title?: string;
  readonly at: number;
  /** Time at which the run started. Before, it was queued. */
  readonly startedAt?: number | undefined;
  /** Time at which it ended. Undefined while it is in progress. */
  readonly endAt?: number | undefined;
  readonly failed: boolean;
  /** Whether it is the slowest call of the chain. */
  readonly slowest?: boolean;
  readonly tokens?: number | undefined;
  readonly cost?: number | undefined;
  /** The step of the run or wait. For a call: the step of its run. */
  readonly step: ChainStep;
  /** The run's calls and waits, and the runs that it caused, in order of time. */
  readonly children: readonly Bar[];
}

export interface Row {
  readonly bar: Bar;
  /** Depth of the row in the tree; 1 at the top. */
  readonly level: number;
  readonly open: boolean;
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

const byTime = (a: Bar, b: Bar): number => a.at - b.at || (a.id < b.id ? -1 : 1);

function runAt(runs: readonly ChainStep[] | undefined, at: number): ChainStep | undefined {
  return runs?.findLast((run) => (run.startedAt ?? run.at) <= at && (run.endAt ?? Number.MAX_VALUE) >= at);
}

/** Maps steps to the steps that caused them. Messages of people and of schedules have no cause. */
function causesOf(steps: readonly ChainStep[]): Map<string, string> {
  const runs = Map.groupBy(
    steps.filter((step) => hasRun(step) && step.appended !== true),
    (step) => homeOf(step) ?? "",
  );
  const byRun = new Map<string, ChainStep>();
  const waiters = new Map<string, string>();
  const flows = new Map<string, ChainStep>();
  const jobs = new Map<string, ChainStep>();
  for (const step of steps) {
    const { kind, flowId = "", runId, to = "" } = step;
    if (hasRun(step) && runId !== undefined) byRun.set(runId, step);
    if (kind === "wait" && runId !== undefined) waiters.set(flowId, runId);
    if (kind === "send" || kind === "spawn") flows.set(flowId, step);
    if (kind === "spawn") jobs.set(to, step);
  }
  const causeOf = ({ kind, from = "", flowId = "", runId = "", at }: ChainStep): ChainStep | undefined => {
    if (kind === "wait") return byRun.get(runId);
    if (kind === "result") return jobs.get(from);
    if (kind === "reply" || kind === "announce") return flows.get(flowId);
    if (kind !== "send" && kind !== "spawn") return undefined;
    return byRun.get(waiters.get(flowId) ?? "") ?? runAt(runs.get(from), at);
  };
  const causes = new Map<string, string>();
  const earlier = new Set<string>();
  for (const step of steps) {
    const cause = causeOf(step);
    // Accept only an earlier step as the cause, so that causes never form a cycle.
    if (cause !== undefined && earlier.has(cause.id)) causes.set(step.id, cause.id);
    earlier.add(step.id);
  }
  return causes;
}

/** Merges several bars into one, which lasts from the first start to the last end. */
function groupOf(name: string, bars: readonly Bar[], { id, at, step }: Bar): Bar {
  const ends = bars.map(({ endAt }) => endAt);
  return {
    ...{ id: `group ${id}`, kind: "group", name, at, step, children: bars },
    endAt: ends.includes(undefined) ? undefined : Math.max(...ends.map((end = 0) => end)),
    failed: bars.some(({ failed }) => failed),
    tokens: bars.reduce((sum, bar) => sum + (bar.tokens ?? 0), 0),
    cost: bars.reduce((sum, bar) => sum + (bar.cost ?? 0), 0),
  };
}

/** Merges sibling jobs, and calls of the same tool, if there are at least `GROUP_MIN` of them. */
function together(bars: readonly Bar[]): Bar[] {
  const kindOf = ({ kind, step, name }: Bar): string => {
    if (kind === "tool") return name;
    return kind === "run" && step.kind === "spawn" ? "jobs" : "";
  };
  const groups = Map.groupBy(bars, (bar) => `${bar.kind} ${kindOf(bar)}`);
  return bars.flatMap((bar) => {
    const name = kindOf(bar);
    const some = groups.get(`${bar.kind} ${name}`) ?? [];
    if (name === "" || some.length < GROUP_MIN) return [bar];
    if (some[0] !== bar) return [];
    const failed = some.filter((one) => one.failed).length;
    const calls = `${name} × ${some.length}${failed === 0 ? "" : `, ${failed} failed`}`;
    return [
      groupOf(bar.kind === "run" ? `jobs ${countWords(some.map(({ step }) => step))}` : calls, some, bar),
    ];
  });
}

export function barsOf(steps: readonly ChainStep[], calls: readonly ChainCall[], around: Around): Bar[] {
  const own = steps.filter((step) => hasRun(step) || step.kind === "wait");
  const causes = causesOf(own);
  const children = Map.groupBy(own, ({ id }) => causes.get(id) ?? "");
  const waits = Map.groupBy(
    own.filter(({ kind }) => kind === "wait"),
    ({ runId = "" }) => runId,
  );
  // A call that waits for other sessions is as slow as they are, so it is not marked.
  const hasWaited = ({ runId, at, endAt = at }: ChainCall): boolean =>
    waits.get(runId)?.some((wait) => wait.at >= at && wait.at <= endAt) ?? false;
  const slowest = slowestOf(calls.filter((call) => !hasWaited(call)));
  const callsOf = Map.groupBy(calls, ({ runId }) => runId);
  const drawCall = ({ runId, name, failed, ...call }: ChainCall, step: ChainStep): Bar => ({
    ...call,
    ...{ name: call.kind === "model" && name === "" ? "model" : name, step, children: [] },
    failed: failed === true,
    slowest: call.id === slowest,
  });
  const build = (step: ChainStep, above?: ChainStep): Bar => {
    const { id, at, startedAt, endAt, runId = "", tokens: used, cost, kind } = step;
    const isWait = kind === "wait";
    const { from, ...unsigned } = step;
    // The row above often names the sender.
    const named = above !== undefined && homeOf(above) === from ? unsigned : step;
    const mine = isWait ? [] : (callsOf.get(runId) ?? []).map((call) => drawCall(call, step));
    const below = [...mine, ...(children.get(id) ?? []).map((child) => build(child, step))].sort(byTime);
    return {
      ...{ id, at, failed: isFailed(step), tokens: used, cost, step, children: together(below) },
      kind: isWait ? "wait" : "run",
      name: lead(named, around).trim(),
      title: title(isWait ? named : step, around).trim(),
      startedAt: isWait ? at : startedAt,
      // An input that starts no run ends when it begins.
      endAt: step.appended === true ? at : endAt,
    };
  };
  return together((children.get("") ?? []).map((step) => build(step)).sort(byTime));
}

/** Returns how many levels are open at first: one, or as many as have at most `most` rows together. */
export function countOpenLevels(bars: readonly Bar[], most: number): number {
  let level = bars;
  let rows = bars.length;
  for (let levels = 0; ; levels += 1) {
    level = level.flatMap(({ kind, children }) => (kind === "group" ? [] : children));
    rows += level.length;
    if (level.length === 0 || (levels > 0 && rows > most)) return levels;
  }
}

/** Returns the tokens and the cost of a bar together with those of the runs below it. */
export function totalOf({ kind, tokens: used = 0, cost = 0, children }: Bar): { used: number; cost: number } {
  const below = children.filter((one) => one.kind !== "model" && one.kind !== "tool").map(totalOf);
  const own = kind === "group" ? { used: 0, cost: 0 } : { used, cost };
  return below.reduce((sum, one) => ({ used: sum.used + one.used, cost: sum.cost + one.cost }), own);
}

export function rowsOf(bars: readonly Bar[], isOpen: (bar: Bar, level: number) => boolean): Row[] {
  const rows: Row[] = [];
  const add = (bar: Bar, level: number): void => {
    const open = bar.children.length > 0 && isOpen(bar, level);
    rows.push({ bar, level, open });
    if (open) for (const child of bar.children) add(child, level + 1);
  };
  for (const bar of bars) add(bar, 1);
  return rows;
}

/** Returns the span from the first start to the last end. A step in progress lasts until now. */
export function spanOf(steps: readonly ChainStep[], nowMs: number): Span {
  const own = steps.filter((step) => hasRun(step) || step.kind === "wait");
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const step of own) {
    from = Math.min(from, step.at);
    to = Math.max(to, step.at, step.endAt ?? (isActive(step) ? nowMs : 0));
  }
  return from > to ? { from: 0, to: 1 } : { from, to: Math.max(to, from + 1) };
}

const STEPS_S = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400],
];

/** Returns the times for the scale, in ms after the start of a span: at most `most` + 1 round numbers. */
export function ticksOf({ from, to }: Span, most: number): number[] {
  const wanted = (to - from) / Math.max(1, most);
  const step = STEPS_S.map((s) => s * 1_000).find((ms) => ms >= wanted) ?? wanted;
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => at * step);
}

const KINDS = { run: "", group: "", model: "model call ", tool: "tool call ", wait: "" } as const;

/** Describes a bar in one sentence, for the tooltip and for screen readers. */
export function barWords(bar: Bar, from: number, nowMs: number): string {
  const { kind, name, at, startedAt, endAt, failed, step, tokens: used = 0, cost = 0 } = bar;
  const queued = kind === "run" && startedAt !== undefined ? startedAt - at : 0;
  const isOpen = endAt === undefined;
  const parts = [
    `${KINDS[kind]}${bar.title ?? name}`,
    `begins at ${duration(at - from)}`,
    queued >= 100 ? `queued ${duration(queued)}` : "",
    isOpen
      ? `in progress for ${duration(Math.max(0, nowMs - at))}`
      : `took ${duration(endAt - (startedAt ?? at))}`,
    failed && kind !== "wait" && kind !== "group"
      ? `failed${kind === "run" && step.code ? ` (${step.code})` : ""}`
      : "",
    bar.slowest === true ? "slowest call of the chain" : "",
    used > 0 ? `${tokens(used)} tokens` : "",
    cost > 0 ? money(cost) : "",
  ];
  return joinWords(parts, ", ");
}
