// Cancels a session's work with others: its conversations and its sub-agents' jobs. A cancelled job is not
// announced to its requester. The jobs below it are cancelled, too.
// CN1: a message that another session has accepted is still processed; only its successors are cancelled.

import { optional } from "../../core/optional.ts";
import { isEnded } from "../../core/shapes/run.ts";
import type { AbortReason, Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForAbort } from "../../store/locks.ts";
import { endFlow, endJob, type Flow, openSpawnsOf } from "../../store/queries/chains/flows.ts";
import { runsOfFlow } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { publishFlowEnd } from "../flow-events.ts";
import { planChildCleanup } from "./end.ts";

/** Ends an open conversation and those of its turns that have not started. Announces nothing. */
export async function cancelConversation(
  acceptor: Pick<Acceptor, "abortIn">,
  unit: Unit,
  flow: Flow,
  reason: AbortReason,
): Promise<void> {
  if (!(await endFlow(unit.tx, flow.flowId, reason, unit.now))) return;
  const runs = await runsOfFlow(unit.tx, flow.flowId);
  for (const run of runs) {
    if (run.state !== "queued" || run.flow?.step === "round1") continue;
    await acceptor.abortIn(unit, { sessionKey: run.sessionKey, runId: run.runId, reason });
  }
  // The sender of a message in an inbox watches the run that put it there.
  const last = runs.find((run) => !isEnded(run.state)) ?? runs.at(-1);
  const runId = last?.runId ?? flow.requesterRunId ?? "";
  publishFlowEnd(unit, flow, { runId, turn: last?.flow?.turn, reason });
}

/** Ends an unfinished job and, without `keepChildren`, all jobs below it. Returns the runs that it ended. */
export async function cancelJob(
  acceptor: Pick<Acceptor, "abortIn">,
  unit: Unit,
  job: Flow,
  how: { readonly reason?: AbortReason; readonly keepChildren?: true } = {},
): Promise<readonly string[]> {
  await holdForAbort(unit.tx, job.targetKey);
  // The job is closed first, so that the end of its runs announces nothing.
  const outcome = { status: "aborted", result: "", notes: "it was cancelled" } as const;
  if (!(await endJob(unit.tx, job.flowId, { reason: "cancelled", outcome, at: unit.now }))) return [];
  const { runIds } = await acceptor.abortIn(unit, { sessionKey: job.targetKey, ...how });
  const child = await getSession(unit.tx, job.targetKey);
  if (child !== undefined) await planChildCleanup(unit, child);
  publishFlowEnd(unit, job, { runId: runIds[0] ?? job.flowId, reason: "cancelled" });
  return runIds;
}

/** Cancels the jobs that a session, or one of its runs, has started. */
export async function cancelJobs(
  acceptor: Pick<Acceptor, "abortIn">,
  unit: Unit,
  requester: { sessionKey: string; runId?: string; reason?: AbortReason },
): Promise<readonly string[]> {
  const ended: string[] = [];
  for (const job of await openSpawnsOf(unit.tx, requester)) {
    ended.push(...(await cancelJob(acceptor, unit, job, optional({ reason: requester.reason }))));
  }
  return ended;
}
