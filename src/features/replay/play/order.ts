// Puts the times of a record into the order in which the store committed. A transaction has the time of its
// begin, and on PostgreSQL it may then wait for others.

import type { RecordedEntry } from "../../../core/shapes/record/chain.ts";
import type { Run } from "../../../core/shapes/run.ts";

/** Returns the entries, which have the order of the store, with times in that order. */
export function inStoredOrder(entries: readonly RecordedEntry[]): RecordedEntry[] {
  let latest = 0;
  return entries.map((row) => {
    latest = Math.max(latest, row.at);
    return { ...row, at: latest };
  });
}

export function compareAcceptance(one: Run, other: Run): number {
  return one.acceptedAt - other.acceptedAt || one.laneSeq - other.laneSeq;
}

/** Returns whether the end of a run accepted another run. */
function isSuccessor(next: Run, { runId, sessionKey, endedAt, flow }: Run): boolean {
  if (next.runId === runId || next.acceptedAt !== endedAt) return false;
  const { provenance } = next.input;
  const isResult = provenance?.kind === "inter_session" && provenance.sourceSessionKey === sessionKey;
  const isNotice = provenance?.kind === "notice" && provenance.runId === runId;
  const isOfFlow = flow !== undefined && flow.flowId === next.flow?.flowId;
  return isResult || isNotice || isOfFlow || next.parentRunId === runId;
}

/** Returns the runs with times in the order of their lanes. A run ends when its successor is accepted. */
export function inLaneOrder(runs: readonly Run[]): Run[] {
  const acceptedAt = new Map<string, number>();
  const latest = new Map<string, number>();
  for (const run of [...runs].sort((a, b) => a.laneSeq - b.laneSeq)) {
    const before = latest.get(run.sessionKey) ?? 0;
    const at = run.acceptedAt < before ? before + 1 : run.acceptedAt;
    acceptedAt.set(run.runId, at);
    latest.set(run.sessionKey, at);
  }
  const timeOf = ({ runId, acceptedAt: at }: Run): number => acceptedAt.get(runId) ?? at;
  const moved = runs.filter((run) => timeOf(run) !== run.acceptedAt);
  return runs.map((run) => {
    const next = moved.filter((one) => isSuccessor(one, run));
    const { endedAt } = run;
    const end = endedAt === undefined ? {} : { endedAt: Math.max(endedAt, ...next.map(timeOf)) };
    return { ...run, acceptedAt: timeOf(run), ...end };
  });
}
