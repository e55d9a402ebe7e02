// Compares the records of two chains step by step: texts, tool calls, tokens, cost and time.

import { withoutIds } from "../../core/ids.ts";
import { canonicalJson } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { labelsOfChainRun } from "../../core/rules/labels/steps.ts";
import { LABELS, type Labels } from "../../core/shapes/labels.ts";
import { isCompaction, textOf, toolCallsOf, type Usage } from "../../core/shapes/message.ts";
import type { ChainRecord, RecordedEntry } from "../../core/shapes/record/chain.ts";
import type { Run } from "../../core/shapes/run.ts";
import { cut } from "../../core/text/cut.ts";
import { fromDifference } from "../../core/text/difference.ts";
import type { ChainComparison, LabelDifference } from "./contract.ts";

type StepPair = ChainComparison["steps"][number];
type ChainTotals = ChainComparison["a"];
/** One side of a step. Times count from the step before it. */
type StepSide = NonNullable<StepPair["a"]>;
type Amounts = Pick<StepSide, "tokens" | "cost" | "ms">;

interface Step extends StepSide {
  readonly step: string;
}

const amountsOf = (usage: Usage | undefined, ms: number): Amounts => ({
  tokens: usage?.totalTokens ?? 0,
  cost: usage?.cost.total ?? 0,
  ms: Math.max(0, ms),
});

/** Returns the steps of a run: its message, the model's answers, the tool calls with results, and its end. */
function stepsOf(run: Run, entries: readonly RecordedEntry[]): Step[] {
  const results = new Map(
    entries.flatMap(({ entry, at }) =>
      !isCompaction(entry) && entry.role === "toolResult"
        ? [[entry.id, { text: textOf(entry), at }] as const]
        : [],
    ),
  );
  const nothing = amountsOf(undefined, 0);
  const { runId } = run;
  const steps: Step[] = [{ ...nothing, runId, step: "message", text: run.input.text }];
  let before = run.startedAt ?? run.acceptedAt;
  for (const { entry, at } of entries) {
    const ms = at - before;
    if (isCompaction(entry))
      steps.push({ ...amountsOf(undefined, ms), runId, step: "summary", text: entry.summary });
    before = at;
    if (isCompaction(entry) || entry.role !== "assistant") continue;
    steps.push({ ...amountsOf(entry.usage, ms), runId, step: "answer", text: textOf(entry) });
    toolCallsOf(entry).forEach((call, index) => {
      const result = results.get(`${entry.id}:${index}`);
      const text = `${canonicalJson(call.arguments)} -> ${result?.text ?? "(no result)"}`;
      const used = amountsOf(undefined, (result?.at ?? at) - at);
      steps.push({ ...used, runId, step: `call ${call.name}`, text });
    });
  }
  const { state, code, error } = run;
  return [
    ...steps,
    { ...nothing, runId, step: "end", text: canonicalJson({ state, ...optional({ code, error }) }) },
  ];
}

/** Pairs the rows with equal names: the first with the first, and so on. Keeps the order of both lists. */
function pairRows<T>(a: readonly T[], b: readonly T[], nameOf: (row: T) => string): { a?: T; b?: T }[] {
  const waiting = Map.groupBy(a, nameOf);
  const pairs = new Map<T | undefined, { b?: T; after: T[] }>(
    [undefined, ...a].map((row) => [row, { after: [] }]),
  );
  let last: T | undefined;
  for (const row of b) {
    const own = waiting.get(nameOf(row))?.shift();
    last = own ?? last;
    const pair = pairs.get(last);
    if (own === undefined) pair?.after.push(row);
    else if (pair !== undefined) pair.b = row;
  }
  return [...pairs].flatMap(([row, { after, b: other }]) => [
    ...(row === undefined ? [] : [{ a: row, ...optional({ b: other }) }]),
    ...after.map((one) => ({ b: one })),
  ]);
}

const sessionOf = (run: Run): string => withoutIds(run.sessionKey);

function runName(run: Run): string {
  const { flow, kind, input } = run;
  return [sessionOf(run), kind, flow?.step, flow?.turn, input.provenance?.kind].join(" ");
}

function totalsOf({ chainId, runs }: ChainRecord, steps: number): ChainTotals {
  const sum = (of: (usage: Usage) => number): number => runs.reduce((all, run) => all + of(run.usage), 0);
  const [first] = runs;
  const endedAt = Math.max(0, ...runs.map((run) => run.endedAt ?? run.acceptedAt));
  return {
    ...{ chainId, runs: runs.length, steps },
    ...{ tokens: sum((usage) => usage.totalTokens), cost: sum((usage) => usage.cost.total) },
    ms: Math.max(0, endedAt - (first?.acceptedAt ?? endedAt)),
  };
}

function sideOf({ step: _, ...side }: Step): StepSide {
  return side;
}

type Labelled = Pick<ChainRecord, "runs" | "labels">;

/**
 * Returns where the labels of two chains differ (LS2 of core/rules/labels/steps.ts), with each source once. A
 * run that only one chain has is compared with all runs of the other one.
 */
export function diffLabels(a: Labelled, b: Labelled): LabelDifference[] {
  if (a.labels === undefined || b.labels === undefined) return [];
  const differences = new Map<string, LabelDifference & { readonly sessions: string[] }>();
  const compare = (side: "a" | "b", run: Run | undefined, own: Labels = {}, other: Labels = {}): void => {
    if (run === undefined) return;
    const session = sessionOf(run);
    for (const label of LABELS) {
      const known = new Set((other[label] ?? []).map(({ source }) => withoutIds(source)));
      for (const { source } of own[label] ?? []) {
        const id = [side, label, withoutIds(source)].join(" ");
        if (known.has(withoutIds(source))) continue;
        const row = differences.get(id) ?? { side, label, source, sessions: [], runId: run.runId };
        if (!row.sessions.includes(session)) row.sessions.push(session);
        differences.set(id, row);
      }
    }
  };
  for (const pair of pairRows(a.runs, b.runs, runName)) {
    const left = pair.a ? labelsOfChainRun(a.labels, pair.a) : a.labels;
    const right = pair.b ? labelsOfChainRun(b.labels, pair.b) : b.labels;
    compare("a", pair.a, left, right);
    compare("b", pair.b, right, left);
  }
  return [...differences.values()];
}

/** Returns all steps of two chains, side by side. */
export function diffChains(a: ChainRecord, b: ChainRecord): ChainComparison {
  const stepsIn = (record: ChainRecord) => {
    const ofRun = Map.groupBy(record.entries, ({ runId }) => runId);
    return (run: Run | undefined): Step[] =>
      run === undefined ? [] : stepsOf(run, ofRun.get(run.runId) ?? []);
  };
  const [ofA, ofB] = [stepsIn(a), stepsIn(b)];
  const steps: StepPair[] = [];
  for (const runs of pairRows(a.runs, b.runs, runName)) {
    const run = runs.a ?? runs.b;
    for (const pair of pairRows(ofA(runs.a), ofB(runs.b), ({ step }) => step)) {
      const own = pair.a && sideOf(pair.a);
      const other = pair.b && sideOf(pair.b);
      const same =
        own !== undefined && other !== undefined && withoutIds(own.text) === withoutIds(other.text);
      const step = (pair.a ?? pair.b)?.step ?? "";
      steps.push({ session: run ? sessionOf(run) : "", step, ...optional({ a: own, b: other }), same });
    }
  }
  const count = (side: "a" | "b"): number => steps.filter((pair) => pair[side] !== undefined).length;
  return {
    ...{ a: totalsOf(a, count("a")), b: totalsOf(b, count("b")) },
    differences: steps.filter(({ same }) => !same).length,
    labels: diffLabels(a, b),
    steps,
  };
}

/** Maximum number of steps of a shortened comparison. */
const STEPS_MAX = 2_000;
/** Characters of a text that are kept at least and at most. */
const [TEXT_LEAST, TEXT_MOST] = [80, 4_000];

/** Returns the first steps of a comparison. Long texts are cut, to begin shortly before their difference. */
export function shortened(diff: ChainComparison, charsMax: number): ChainComparison {
  const steps = diff.steps.slice(0, STEPS_MAX);
  const share = Math.floor(charsMax / (2 * Math.max(1, steps.length)));
  const most = Math.min(TEXT_MOST, Math.max(TEXT_LEAST, share));
  const short = ({ a, b, same, ...step }: StepPair): StepPair => {
    const left = a?.text ?? "";
    const right = b?.text ?? "";
    const isWhole = same || Math.max(left.length, right.length) <= most;
    const [own, other] = isWhole ? [cut(left, most), cut(right, most)] : fromDifference(left, right, most);
    return { ...step, same, ...optional({ a: a && { ...a, text: own }, b: b && { ...b, text: other } }) };
  };
  return { ...diff, steps: steps.map(short) };
}
