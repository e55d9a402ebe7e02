// Finds the runs by which a text came from the run that read it to a session.

import type { PathStep } from "../../shapes/labels.ts";
import type { Run } from "../../shapes/run.ts";

/** A run of a chain, with what made it. */
type LinkedRun = Pick<Run, "runId" | "sessionKey" | "parentRunId"> & {
  readonly input: Pick<Run["input"], "provenance">;
};

/** Returns the run that each run follows: the one that called for it, or the last one of its writer. */
function causesOf(runs: readonly LinkedRun[]): Map<string, string> {
  const causes = new Map<string, string>();
  const last = new Map<string, string>();
  for (const { runId, sessionKey, parentRunId, input } of runs) {
    const { provenance } = input;
    const writer =
      provenance !== undefined && "sourceSessionKey" in provenance ? provenance.sourceSessionKey : undefined;
    const cause = parentRunId ?? (writer === undefined ? undefined : last.get(writer));
    if (cause !== undefined) causes.set(runId, cause);
    last.set(sessionKey, runId);
  }
  return causes;
}

/**
 * Returns the shortest way from a run to a session along sends, spawns and what came back from them, with
 * both ends. `runs`: the chain's, in the order in which they were accepted. Empty: the chain has no such way.
 */
export function pathTo(runs: readonly LinkedRun[], from: string, sessionKey: string): PathStep[] {
  const causes = causesOf(runs);
  const before = new Map<string, string | undefined>([[from, undefined]]);
  for (const [runId] of before) {
    const run = runs.find((one) => one.runId === runId);
    if (run?.sessionKey === sessionKey) {
      const way: PathStep[] = [];
      for (let at: string | undefined = runId; at !== undefined; at = before.get(at)) {
        const step = runs.find((one) => one.runId === at);
        if (step !== undefined) way.unshift({ runId: at, sessionKey: step.sessionKey });
      }
      return way;
    }
    // Texts go with a request, and come back with its answer.
    for (const [made, cause] of causes) {
      const next = cause === runId ? made : made === runId ? cause : undefined;
      if (next !== undefined && !before.has(next)) before.set(next, runId);
    }
  }
  return [];
}
