// Finds the runs by which a text came from the run that read it to a session.

import type { PathStep } from "../../shapes/labels.ts";
import type { Run } from "../../shapes/run.ts";

/** A run of a chain, with what made it. */
type LinkedRun = Pick<Run, "runId" | "sessionKey" | "parentRunId"> & {
  readonly input: Pick<Run["input"], "provenance">;
};

/**
 * Returns the runs next to each run: those that it called for, and the one that it follows, which called for
 * it or is the last one of its writer. Texts go with a request, and come back with its answer.
 */
function neighboursOf(runs: readonly LinkedRun[]): Map<string, string[]> {
  const neighbours = new Map<string, string[]>();
  const add = (from: string, to: string): void =>
    void (neighbours.get(from)?.push(to) ?? neighbours.set(from, [to]));
  const last = new Map<string, string>();
  for (const { runId, sessionKey, parentRunId, input } of runs) {
    const { provenance } = input;
    const writer =
      provenance !== undefined && "sourceSessionKey" in provenance ? provenance.sourceSessionKey : undefined;
    const cause = parentRunId ?? (writer === undefined ? undefined : last.get(writer));
    if (cause !== undefined) {
      add(cause, runId);
      add(runId, cause);
    }
    last.set(sessionKey, runId);
  }
  return neighbours;
}

/**
 * Returns the shortest way from a run to a session along sends, spawns and what came back from them, with
 * both ends. `runs`: the chain's, in the order in which they were accepted. Empty: the chain has no such way.
 */
export function pathTo(runs: readonly LinkedRun[], from: string, sessionKey: string): PathStep[] {
  const keys = new Map(runs.map((run) => [run.runId, run.sessionKey]));
  const neighbours = neighboursOf(runs);
  const before = new Map<string, string | undefined>([[from, undefined]]);
  for (const [runId] of before) {
    if (keys.get(runId) === sessionKey) {
      const way: PathStep[] = [];
      for (let at: string | undefined = runId; at !== undefined; at = before.get(at))
        way.push({ runId: at, sessionKey: keys.get(at) ?? "" });
      return way.reverse();
    }
    for (const next of neighbours.get(runId) ?? []) if (!before.has(next)) before.set(next, runId);
  }
  return [];
}
