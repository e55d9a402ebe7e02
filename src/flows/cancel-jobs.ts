// Owns the cancelling of sub-agents: with the run or the session that spawned them, or by name.
// CN1: a cancelled job is announced to nobody: whoever cancels knows. What it had started below it is
//      cancelled too.

import type { AbortReason, Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { endFlow, type Flow, openSpawnsOf } from "../store/flows.ts";
import { holdForAbort } from "../store/locks.ts";
import { getSession } from "../store/sessions.ts";
import { publishFlow } from "./flow-events.ts";
import { planChildCleanup } from "./job.ts";

/** Ends one unfinished job and everything below it. Returns the runs that it ended. */
export async function cancelJob(
  acceptor: Pick<Acceptor, "abortIn" | "setDeadline">,
  unit: Unit,
  job: Flow,
  reason?: AbortReason,
): Promise<readonly string[]> {
  await holdForAbort(unit.tx, job.targetKey);
  // Closed first, so that the end of its runs announces nothing.
  if (!(await endFlow(unit.tx, job.flowId, "cancelled", unit.now))) return [];
  const { runIds } = await acceptor.abortIn(unit, {
    sessionKey: job.targetKey,
    ...(reason === undefined ? {} : { reason }),
  });
  const child = await getSession(unit.tx, job.targetKey);
  if (child !== undefined) await planChildCleanup(acceptor, unit, child);
  publishFlow(unit, {
    flowId: job.flowId,
    runId: runIds[0] ?? job.flowId,
    step: "ended",
    from: job.targetKey,
    to: job.requesterKey,
    turn: 1,
    turnsMax: 0,
    text: "",
    reason: "cancelled",
  });
  return runIds;
}

/** Cancels the jobs that a session, or one of its runs, has given to sub-agents. */
export async function cancelJobs(
  acceptor: Pick<Acceptor, "abortIn" | "setDeadline">,
  unit: Unit,
  requester: { sessionKey: string; runId?: string; reason?: AbortReason },
): Promise<readonly string[]> {
  const ended: string[] = [];
  for (const job of await openSpawnsOf(unit.tx, requester)) {
    ended.push(...(await cancelJob(acceptor, unit, job, requester.reason)));
  }
  return ended;
}
