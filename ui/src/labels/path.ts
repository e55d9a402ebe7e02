// Follows labels through the steps of a chain. Pure.

import type { ChainStep } from "../../../src/core/shapes/chain-step.ts";
import { LABELS, type Label } from "../../../src/core/shapes/labels.ts";

/** The steps with which a source came into the chain and from session to session. */
export interface LabelPath {
  readonly label: Label;
  readonly source: string;
  /** Time at which it was read first, in ms since 1970. */
  readonly since: number;
  /** True if it came with the session of the first step, which had read it before. */
  readonly isOlder: boolean;
  /** In order. */
  readonly steps: readonly ChainStep[];
}

/** Returns the way of each source. `steps`: oldest first. */
export function pathsIn(steps: readonly ChainStep[]): LabelPath[] {
  const paths = new Map<string, LabelPath>();
  for (const label of LABELS)
    for (const step of steps)
      for (const { source, since, runId } of step.labels?.[label] ?? []) {
        const id = `${label} ${source}`;
        const known = paths.get(id) ?? { label, source, since, isOlder: runId !== step.runId, steps: [] };
        paths.set(id, { ...known, since: Math.min(known.since, since), steps: [...known.steps, step] });
      }
  return [...paths.values()];
}
