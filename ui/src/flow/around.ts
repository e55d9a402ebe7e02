// Collects the data that the descriptions of a chain's steps need.

import type { ChainParty, ChainRow, ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { nameOf } from "../parts/names.ts";
import type { Around } from "./words.ts";

export function aroundOf(
  chain: ChainRow,
  parties: readonly ChainParty[],
  steps: readonly ChainStep[],
): Around {
  const labels = new Map(parties.map(({ key, label }) => [key, label]));
  const waits = steps.flatMap((step) =>
    step.kind === "wait" && step.flowId !== undefined ? [[step.flowId, step] as const] : [],
  );
  const jobsOf = /^jobs of (?:jobs of )*(.*)$/s;
  const name = (key: string): string => {
    const [, parent] = jobsOf.exec(key) ?? [];
    return parent === undefined ? labels.get(key) || nameOf(key) : `jobs of ${name(parent)}`;
  };
  return { limits: chain.limits, waits: new Map(waits), name };
}
