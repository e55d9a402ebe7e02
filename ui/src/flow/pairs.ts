// Counts who talks to whom in chains: the rows of the overview. Pure functions.
// PR1: each sender, recipient and kind of step has one row. Jobs of one sender for one agent share a row.

import type { ChainRow } from "../../../src/core/shapes/chain-step.ts";
import { agentIn } from "../agents/face.ts";

type Talk = ChainRow["talks"][number];

/** `to`: the key of a session, for jobs the id of an agent. */
export type Pair = Talk & { readonly id: string };

function makePair({ kind, from, to, ...counts }: Talk): Pair {
  const target = kind === "spawn" ? agentIn(to) : to;
  return { id: JSON.stringify([kind, from, target]), kind, from, to: target, ...counts };
}

export function pairsIn(chains: readonly ChainRow[]): Pair[] {
  const pairs = new Map<string, Pair>();
  for (const talk of chains.flatMap((chain) => chain.talks)) {
    if (talk.from === "" || talk.to === "" || talk.from === talk.to) continue;
    const pair = makePair(talk);
    const { steps = 0, open = 0 } = pairs.get(pair.id) ?? {};
    pairs.set(pair.id, { ...pair, steps: pair.steps + steps, open: pair.open + open });
  }
  return [...pairs.values()];
}

/** Returns whether a chain has steps of the pair. Without a pair, every chain fits. */
export function hasPair({ talks }: ChainRow, wanted: Pair | undefined): boolean {
  return wanted === undefined || talks.some((talk) => makePair(talk).id === wanted.id);
}
