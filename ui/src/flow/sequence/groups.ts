// Merges the jobs of one session into one column, and their steps of the same kind into one row. Merges equal
// steps that follow each other into one row, too. Pure.
// GR1: up to three jobs stay separate, and so do the jobs of an expanded column.
// GR2: no step is lost: each step has a row of its own, or is part of exactly one merged row.
// GR3: up to two equal steps stay separate, and so do unfinished ones, and those of an expanded row.
// GR4: of more than `COLUMNS_MAX` columns, those of an agent share one, unless it is expanded. Their steps
//      stay as they are.

import { optional } from "../../../../src/core/optional.ts";
import { joinLabels } from "../../../../src/core/rules/labels/labels.ts";
import type { ChainParty, ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import type { Labels } from "../../../../src/core/shapes/labels.ts";
import { agentIn } from "../../agents/face.ts";
import { type FlowStep, isActive, isFailed } from "../words.ts";

/** Minimum number of jobs that are merged into one column. */
const JOBS_MIN = 4;

/** Minimum number of equal steps that are merged into one row. */
const EQUAL_MIN = 3;

/** Maximum number of columns without merging those of an agent. */
const COLUMNS_MAX = 12;

/** A column: one session, the merged jobs of one session, or the merged columns of one agent. */
export interface FlowParty extends ChainParty {
  /** Session keys of the jobs that are merged into this column. */
  readonly jobs?: readonly string[];
  /** The columns of an agent that are merged into this column. */
  readonly merged?: readonly FlowParty[];
}

export interface Grouped {
  readonly steps: readonly FlowStep[];
  readonly parties: readonly FlowParty[];
}

/** Returns for each merged job the key of its column, and the jobs of expanded columns. */
function columnsOf(steps: readonly ChainStep[], expanded: ReadonlySet<string>) {
  const jobs = Map.groupBy(
    steps.filter(({ kind, from, to }) => kind === "spawn" && from !== undefined && to !== undefined),
    ({ from }) => from ?? "",
  );
  const children = new Set([...jobs.values()].flat().map(({ to = "" }) => to));
  const columns = new Map<string, string>();
  const opened = new Set<string>();
  const seen = new Set<string>();
  const open = [...jobs.keys()].filter((key) => !children.has(key)).map((key) => ({ key, of: [key] }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { key, of } = next;
    const mine = of.flatMap((one) => (jobs.get(one) ?? []).map(({ to = "" }) => to));
    const fresh = [...new Set(mine)].filter((one) => !seen.has(one));
    for (const one of fresh) seen.add(one);
    const column = `jobs of ${key}`;
    if (fresh.length < JOBS_MIN || expanded.has(column)) {
      open.push(...fresh.map((one) => ({ key: one, of: [one] })));
      if (expanded.has(column)) for (const one of fresh) opened.add(one);
      continue;
    }
    for (const one of fresh) columns.set(one, column);
    open.push({ key: column, of: fresh });
  }
  return { columns, opened };
}

const sum = (figures: readonly (number | undefined)[]): number =>
  figures.reduce<number>((total, one = 0) => total + one, 0);

/** Returns what the steps have used together, and where their texts come from. */
function addUp(members: readonly ChainStep[]): Pick<ChainStep, "tokens" | "cost" | "labels"> {
  return optional({
    tokens: sum(members.map(({ tokens }) => tokens)) || undefined,
    cost: sum(members.map(({ cost }) => cost)) || undefined,
    labels: members.reduce<Labels | undefined>((all, one) => joinLabels(all, one.labels), undefined),
  });
}

/** Merges steps into one row. It is active if one of them is, else failed if one has failed. */
function mergeSteps(first: ChainStep, members: readonly ChainStep[]): FlowStep {
  const { id, kind, at, source, tool, text } = first;
  const active = members.find(isActive);
  const { state } = active ?? members.find(isFailed) ?? first;
  return {
    ...{ id: `all ${id}`, kind, at, state, text, members },
    ...optional({
      ...{ source, tool },
      // A merged row shows no time in the queue: it starts when its first step was queued.
      startedAt: members.some(({ startedAt }) => startedAt !== undefined) ? at : undefined,
      endAt: active ? undefined : Math.max(...members.map((one) => one.endAt ?? one.at)),
      silent: members.every(({ silent }) => silent) || undefined,
      appended: members.every(({ appended }) => appended) || undefined,
    }),
    ...addUp(members),
  };
}

/** Returns a text that is the same for equal steps, or undefined for a step that may still change. */
function looks(step: FlowStep): string | undefined {
  const { kind, from, to, toName, source, tool, state, code, cycle, silent, members } = step;
  if (members !== undefined || isActive(step)) return undefined;
  // The text of a refused message is not shown in the row.
  const text = kind === "refused" ? "" : step.text;
  return JSON.stringify([kind, from, to, toName, source, tool, state, code, cycle, silent, text]);
}

/** Merges equal steps that follow each other, except those of the rows in `expanded`. */
function withoutRepeats(steps: readonly FlowStep[], expanded: ReadonlySet<string>): FlowStep[] {
  const rows: FlowStep[] = [];
  for (let at = 0, end = 0; at < steps.length; at = end) {
    const first = steps[at] as FlowStep;
    const look = looks(first);
    do end++;
    while (look !== undefined && end < steps.length && looks(steps[end] as FlowStep) === look);
    const members = steps.slice(at, end);
    const { endAt } = members.at(-1) ?? first;
    const id = `all ${first.id}`;
    if (members.length < EQUAL_MIN || expanded.has(id)) rows.push(...members);
    else {
      rows.push({ ...first, id, members, equal: true, ...addUp(members), ...optional({ endAt }) });
    }
  }
  return rows;
}

/** Merges steps. `expanded`: the columns and rows whose steps are shown one by one. */
export function grouped(
  steps: readonly ChainStep[],
  parties: readonly ChainParty[],
  expanded: ReadonlySet<string>,
): Grouped {
  const { columns, opened } = columnsOf(steps, expanded);
  const merged = withoutJobs(steps, parties, columns);
  return {
    steps: withoutRepeats(merged.steps, expanded),
    parties: byAgent(merged.parties, expanded, opened),
  };
}

/** Merges the columns of each agent if there are many columns, but not those that the reader has opened. */
function byAgent(
  columns: readonly FlowParty[],
  expanded: ReadonlySet<string>,
  opened: ReadonlySet<string>,
): readonly FlowParty[] {
  if (columns.length <= COLUMNS_MAX) return columns;
  const agents = Map.groupBy(columns, ({ key, jobs }) => agentIn(jobs?.[0] ?? key));
  return [...agents].flatMap(([id, some]) => {
    const key = `agent ${id}`;
    const isOpen = expanded.has(key) || some.some((one) => opened.has(one.key));
    return id === "" || some.length === 1 || isOpen ? some : [{ key, merged: some }];
  });
}

/** Moves the steps of merged jobs to their columns, and merges those of the same kind and ends. */
function withoutJobs(
  steps: readonly ChainStep[],
  parties: readonly ChainParty[],
  columns: ReadonlyMap<string, string>,
): Grouped {
  const place = (key = ""): string | undefined => (columns.get(key) ?? key) || undefined;
  const rows = Map.groupBy(steps, ({ id, kind, from = "", to = "", source, tool }) => {
    const isShared = columns.has(from) || columns.has(to);
    return isShared ? JSON.stringify([kind, place(from), place(to), source, tool]) : id;
  });
  const merged = [...rows.values()].flatMap((members) =>
    members.slice(0, 1).map((first) => ({
      ...(members.length === 1 ? first : mergeSteps(first, members)),
      ...optional({ from: place(first.from), to: place(first.to) }),
    })),
  );
  const jobs = Map.groupBy(columns.keys(), (key) => columns.get(key) ?? "");
  const drawn = new Map(
    parties.map((party): [string, FlowParty] => {
      const key = columns.get(party.key);
      return key === undefined ? [party.key, party] : [key, { key, jobs: jobs.get(key) ?? [] }];
    }),
  );
  return { steps: merged, parties: [...drawn.values()] };
}
