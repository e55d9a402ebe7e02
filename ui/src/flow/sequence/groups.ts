// Merges the jobs of one session into one column, and their steps of the same kind into one row. Pure.
// GR1: up to three jobs stay separate, and so do the jobs of an expanded column.
// GR2: no step is lost: each step has a row of its own, or is part of exactly one merged row.

import { optional } from "../../../../src/core/optional.ts";
import type { ChainParty, ChainStep } from "../../../../src/core/shapes/chain-step.ts";
import { type FlowStep, isActive, isFailed } from "../words.ts";

/** Minimum number of jobs that are merged into one column. */
const JOBS_MIN = 4;

/** A column: one session, or the merged jobs of one session. */
export interface FlowParty extends ChainParty {
  /** Session keys of the jobs that are merged into this column. */
  readonly jobs?: readonly string[];
}

export interface Grouped {
  readonly steps: readonly FlowStep[];
  readonly parties: readonly FlowParty[];
}

/** Returns for each merged job the key of its column. */
function columnsOf(steps: readonly ChainStep[], expanded: ReadonlySet<string>): Map<string, string> {
  const jobs = Map.groupBy(
    steps.filter(({ kind, from, to }) => kind === "spawn" && from !== undefined && to !== undefined),
    ({ from }) => from ?? "",
  );
  const children = new Set([...jobs.values()].flat().map(({ to = "" }) => to));
  const columns = new Map<string, string>();
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
      continue;
    }
    for (const one of fresh) columns.set(one, column);
    open.push({ key: column, of: fresh });
  }
  return columns;
}

const sum = (figures: readonly (number | undefined)[]): number =>
  figures.reduce<number>((total, one = 0) => total + one, 0);

/**
 * Merges several steps into one row, from the first start to the last end. The row is active if a step is
 * active; otherwise it has failed if a step has failed.
 */
function merged(members: readonly ChainStep[], ends: Pick<ChainStep, "from" | "to">): FlowStep | undefined {
  const [first] = members;
  if (first === undefined) return undefined;
  const { kind, source, tool, text } = first;
  const active = members.find(isActive);
  const { state } = active ?? members.find(isFailed) ?? first;
  const [tokens, cost] = [sum(members.map((one) => one.tokens)), sum(members.map((one) => one.cost))];
  return {
    id: `all ${first.id}`,
    kind,
    ...ends,
    at: first.at,
    state,
    text,
    members,
    ...optional({ source, tool }),
    // A merged row shows no time in the queue: it starts when its first step was queued.
    ...(members.some(({ startedAt }) => startedAt !== undefined) ? { startedAt: first.at } : {}),
    ...(active === undefined ? { endAt: Math.max(...members.map(({ at, endAt }) => endAt ?? at)) } : {}),
    ...(members.every(({ silent }) => silent === true) ? { silent: true } : {}),
    ...(members.every(({ appended }) => appended === true) ? { appended: true } : {}),
    ...(tokens > 0 ? { tokens } : {}),
    ...(cost > 0 ? { cost } : {}),
  };
}

/** Merges the jobs of each session. `expanded`: the columns whose jobs are shown one by one. */
export function grouped(
  steps: readonly ChainStep[],
  parties: readonly ChainParty[],
  expanded: ReadonlySet<string>,
): Grouped {
  const columns = columnsOf(steps, expanded);
  if (columns.size === 0) return { steps, parties };
  const place = (key: string | undefined): string | undefined => columns.get(key ?? "") ?? key;
  const rows = Map.groupBy(steps, (step) => {
    const { id, kind, from, to, source, tool } = step;
    const isShared = [from, to].some((key) => key !== undefined && columns.has(key));
    return isShared ? JSON.stringify([kind, place(from), place(to), source, tool]) : id;
  });
  const together = Map.groupBy(columns.keys(), (key) => columns.get(key) ?? "");
  return {
    steps: [...rows.values()].flatMap((members) => {
      const [first] = members;
      if (first === undefined) return [];
      const ends = optional({ from: place(first.from), to: place(first.to) });
      if (members.length === 1) return [{ ...first, ...ends }];
      return merged(members, ends) ?? [];
    }),
    parties: [
      ...new Map(
        parties.map((party): [string, FlowParty] => {
          const column = columns.get(party.key);
          if (column === undefined) return [party.key, party];
          return [column, { key: column, jobs: together.get(column) ?? [] }];
        }),
      ).values(),
    ],
  };
}
