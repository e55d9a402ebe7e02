// Waits for jobs of sub-agents: for all of them, or for the first. One serialised step checks for cycles and
// inserts the wait (I7), and the waiting run holds no slot (I6). The rows survive a crash: the same call
// finds them again, with its first deadline, and gets the same result.

import { ok, type Result } from "../../core/shapes/errors.ts";
import { takeAdvisoryLock } from "../../store/locks.ts";
import { holdFlow } from "../../store/queries/chains/flows.ts";
import {
  giveUpJobWaits,
  insertJobWait,
  type JobWait,
  jobWaitsOfCall,
} from "../../store/queries/runs/job-waits.ts";
import type { Store } from "../../store/sql.ts";
import type { Commit, Unit } from "../unit.ts";
import { type EndWatch, type JobsWaitEnd, type JobsWaitRequest, refuseCycle } from "./waits.ts";

/** Records a wait of a run, unless it would close a cycle. A job that has ended is answered at once. */
export async function openJobsWait(
  unit: Unit,
  waiter: { readonly runId: string; readonly sessionKey: string },
  { callId, jobs, deadlineAt }: JobsWaitRequest,
): Promise<Result<void>> {
  const inOrder = jobs.toSorted((a, b) => (a.flowId < b.flowId ? -1 : 1));
  const isOpen = new Map<string, boolean>();
  for (const { flowId } of inOrder) isOpen.set(flowId, (await holdFlow(unit.tx, flowId))?.open === true);
  await takeAdvisoryLock(unit.tx, "waits");
  for (const { flowId, targetSessionKey } of inOrder) {
    if (isOpen.get(flowId) !== true) continue;
    const free = await refuseCycle(unit, waiter.sessionKey, { kind: "job", sessionKey: targetSessionKey });
    if (!free.ok) return free;
  }
  for (const { flowId, targetSessionKey } of inOrder) {
    await insertJobWait(unit.tx, {
      callId,
      flowId,
      waiterRunId: waiter.runId,
      waiterSessionKey: waiter.sessionKey,
      targetSessionKey,
      state: isOpen.get(flowId) === true ? "open" : "answered",
      deadlineAt,
    });
  }
  return ok(undefined);
}

/** Waits for a recorded wait to end. Does not handle slots. */
export async function settleJobsWait(
  parts: { store: Store; commit: Commit; watch: EndWatch },
  callId: string,
  until: "all" | "any",
  signal: AbortSignal,
): Promise<JobsWaitEnd> {
  const { store, commit, watch } = parts;
  let rows = await jobWaitsOfCall(store.db, callId);
  const openRows = (): JobWait[] => rows.filter((row) => row.state === "open");
  // Each round ends with a job that has ended, or is the last one.
  for (let rounds = rows.length; rounds > 0 && openRows().length > 0; rounds -= 1) {
    if (until === "any" && openRows().length < rows.length) break;
    const before = openRows();
    const flowIds = before.map((row) => row.flowId);
    await watch.untilJob(flowIds, before[0]?.deadlineAt ?? 0, signal);
    signal.throwIfAborted();
    rows = await jobWaitsOfCall(store.db, callId);
    if (openRows().length === before.length) break;
  }
  if (openRows().length > 0) {
    rows = await commit(async (unit) => {
      await giveUpJobWaits(unit.tx, callId);
      return jobWaitsOfCall(unit.tx, callId);
    });
  }
  return {
    answered: rows.filter((row) => row.state === "answered"),
    unanswered: rows.filter((row) => row.state !== "answered"),
  };
}
