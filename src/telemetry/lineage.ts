// Owns what a run followed from, read off what is stored, so that its span hangs where it belongs.
// LN1: a run that a tool call made hangs below that call; a step of a flow below the step before it; what was
//      said to a session because of another one's end below that end. Anything else begins its trace.
// LN2: no run hangs below one that came later, not even when all of them have the same date.

import type { Run } from "../core/run.ts";
import { type PrecedingRun, precedingRuns } from "../store/preceding-runs.ts";
import type { Db } from "../store/sql.ts";
import { callSpanId, runSpanId } from "./span.ts";

/** Whether a run of the same flow is an earlier step of it. */
function isEarlierStep(before: PrecedingRun, { flow }: Run): boolean {
  if (flow === undefined || before.flowId !== flow.flowId) return false;
  const turn = before.flowTurn ?? 1;
  if (flow.step === "announce") return before.flowStep !== "announce" && turn <= flow.turn;
  return turn < flow.turn;
}

function sourceOf({ input: { provenance } }: Run): string | undefined {
  const crosses = provenance?.kind === "inter_session" || provenance?.kind === "notice";
  return crosses ? provenance.sourceSessionKey : undefined;
}

/** The run before this one, among those that had ended. */
function chosen(run: Run, ended: readonly PrecedingRun[]): PrecedingRun | undefined {
  if (run.flow === undefined || run.flow.step === "task") {
    // A requester that is woken: by the last thing that the other one did.
    const source = sourceOf(run);
    return ended.find((one) => one.sessionKey === source && one.acceptedAt < run.acceptedAt);
  }
  const steps = ended.filter((one) => isEarlierStep(one, run));
  // A successor is accepted in the transaction that ends its predecessor: they have one date.
  const same = steps.filter(({ endedAt }) => endedAt === run.acceptedAt);
  const byTurn = (one: PrecedingRun, other: PrecedingRun) => (other.flowTurn ?? 1) - (one.flowTurn ?? 1);
  return same.toSorted(byTurn)[0] ?? steps.toSorted(byTurn)[0];
}

/** The span that a run's own hangs below; undefined: it begins the trace. */
export async function parentSpanOf(db: Db, run: Run): Promise<string | undefined> {
  const { parentRunId, callId } = run;
  if (parentRunId !== undefined) {
    // Calls by way of a program outside have ids of another make, and no span.
    const hasSpan = callId?.startsWith(`${parentRunId}:`) === true;
    return hasSpan ? callSpanId(parentRunId, callId) : runSpanId(parentRunId);
  }
  if (run.flow === undefined && sourceOf(run) === undefined) return undefined;
  const found = chosen(run, await precedingRuns(db, run));
  return found === undefined ? undefined : runSpanId(found.runId);
}
