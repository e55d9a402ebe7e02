// Finds the parent span of a run from stored data.
// LN1: the parent of a run is the tool call that caused it. The parent of a step of a flow is the previous
// step. If a run was started because a run of another session had ended, that other run is its parent. Any
// other run is the root of its trace.
// LN2: a parent never starts after its child, even if all have the same time.

import type { Run } from "../core/shapes/run.ts";
import { type PrecedingRun, precedingRuns } from "../store/queries/runs/run-facts.ts";
import type { Db } from "../store/sql.ts";
import { callSpanId, runSpanId } from "./span.ts";

/** Returns whether a run is an earlier step of the same flow. */
function isEarlierStep(before: PrecedingRun, { flow }: Run): boolean {
  if (flow === undefined || before.flow?.flowId !== flow.flowId) return false;
  const { step, turn } = before.flow;
  return flow.step === "announce" ? step !== "announce" && turn <= flow.turn : turn < flow.turn;
}

function sourceOf({ input: { provenance } }: Run): string | undefined {
  const crosses = provenance?.kind === "inter_session" || provenance?.kind === "notice";
  return crosses ? provenance.sourceSessionKey : undefined;
}

/** Chooses the preceding run from the runs that had ended. */
function chosen(run: Run, ended: readonly PrecedingRun[]): PrecedingRun | undefined {
  if (run.flow === undefined || run.flow.step === "task") {
    // The requester was woken by the last run of the other session.
    const source = sourceOf(run);
    return ended.find((one) => one.sessionKey === source && one.acceptedAt < run.acceptedAt);
  }
  const steps = ended.filter((one) => isEarlierStep(one, run));
  // A successor is accepted in the transaction that ends its predecessor, so both times are equal.
  const same = steps.filter(({ endedAt }) => endedAt === run.acceptedAt);
  const byTurn = (one: PrecedingRun, other: PrecedingRun) => (other.flow?.turn ?? 1) - (one.flow?.turn ?? 1);
  return same.toSorted(byTurn)[0] ?? steps.toSorted(byTurn)[0];
}

/** Returns the parent span of a run, or undefined if the run is the root of its trace. */
export async function parentSpanOf(db: Db, run: Run): Promise<string | undefined> {
  const { parentRunId, callId } = run;
  if (parentRunId !== undefined) {
    // Calls by external programs have another form of id, and no span.
    const hasSpan = callId?.startsWith(`${parentRunId}:`) === true;
    return hasSpan ? callSpanId(parentRunId, callId) : runSpanId(parentRunId);
  }
  if (run.flow === undefined && sourceOf(run) === undefined) return undefined;
  const found = chosen(run, await precedingRuns(db, run));
  return found === undefined ? undefined : runSpanId(found.runId);
}
