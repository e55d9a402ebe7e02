// Lays the steps of two chains over each other. Pure.
// OV1: each step of both chains is in the result once. A step that both have stands at its place in the first
//      chain; one that only the second has follows the step that it follows there.
// OV2: sessions whose keys differ only by ids share a column.

import { withoutIds } from "../../../../../src/core/ids.ts";
import { optional } from "../../../../../src/core/optional.ts";
import type { ChainParty, ChainRow, ChainStep } from "../../../../../src/core/shapes/chain-step.ts";
import type { ChainComparison } from "../../../../../src/features/replay/contract.ts";
import type { FlowStep } from "../../../flow/words.ts";

export interface WholeChain {
  readonly chain: ChainRow;
  readonly parties: readonly ChainParty[];
  readonly steps: readonly ChainStep[];
}

/** Names each step by its kind, its run and its number among those of this kind and run. */
function nameSteps(steps: readonly ChainStep[], runOf: (runId: string) => string): Map<string, ChainStep> {
  const all = Map.groupBy(steps, ({ kind, runId = "" }) => `${kind} ${runOf(runId)}`);
  return new Map(
    [...all].flatMap(([name, some]) => some.map((step, at) => [`${name} ${at}`, step] as const)),
  );
}

const looks = ({ text, answer, state, code, silent }: ChainStep): string =>
  withoutIds(JSON.stringify([text, answer, state, code, silent]));

/** Lays the second chain over the first one. `diff` tells which of their runs belong together. */
export function overlaid(
  a: WholeChain,
  b: WholeChain,
  diff: ChainComparison,
): Pick<WholeChain, "parties"> & {
  readonly steps: readonly FlowStep[];
} {
  const runs = new Map(
    diff.steps.flatMap((pair) => (pair.a && pair.b ? [[pair.b.runId, pair.a.runId]] : [])),
  );
  const runOf = (runId: string): string => runs.get(runId) ?? runId;
  // A session of the second chain shares the column of one of the first.
  const firstKeys = a.parties.map(({ key }) => key);
  const others = b.parties.map(({ key }) => key).filter((key) => !firstKeys.includes(key));
  const free = Map.groupBy(
    firstKeys.filter((key) => !b.parties.some((party) => party.key === key)),
    withoutIds,
  );
  const columns = new Map(others.map((key) => [key, free.get(withoutIds(key))?.shift() ?? key]));
  const columnOf = (key: string | undefined): string | undefined => columns.get(key ?? "") ?? key;
  const [left, right] = [nameSteps(a.steps, (runId) => runId), nameSteps(b.steps, runOf)];
  const nameOf = new Map([...left].map(([name, step]) => [step, name]));
  const after = new Map<ChainStep | undefined, FlowStep[]>();
  let last: ChainStep | undefined;
  let shift = a.chain.startedAt - b.chain.startedAt;
  for (const [name, step] of [...right].toSorted(([, one], [, two]) => one.at - two.at)) {
    const own = left.get(name);
    if (own !== undefined) {
      last = own;
      shift = own.at - step.at;
      continue;
    }
    const { at, startedAt, endAt, from, to, runId } = step;
    const moved = {
      at: at + shift,
      ...optional({ from: columnOf(from), to: columnOf(to), runId: runId && runOf(runId) }),
      ...optional({ startedAt: startedAt && startedAt + shift, endAt: endAt && endAt + shift }),
    };
    after.set(last, [...(after.get(last) ?? []), { ...step, ...moved, side: "b" }]);
  }
  const steps = a.steps.flatMap((step): FlowStep[] => {
    const other = right.get(nameOf.get(step) ?? "");
    const side = other === undefined ? "a" : looks(step) === looks(other) ? "both" : "differs";
    return [{ ...step, side, ...optional({ other }) }, ...(after.get(step) ?? [])];
  });
  const parties = new Map([...a.parties, ...b.parties].map((party) => [columnOf(party.key), party]));
  for (const party of a.parties) parties.set(party.key, party);
  return {
    steps: [...(after.get(undefined) ?? []), ...steps],
    parties: [...parties].map(([key = "", party]) => ({ ...party, key })),
  };
}
