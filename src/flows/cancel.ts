// Owns the early end of a conversation: one of its parties is stopped, reset or deleted.
// CN1: what another session has accepted as a message goes on; only what would follow from it is cancelled.

import type { AbortReason, Acceptor } from "../engine/finish.ts";
import type { Unit } from "../engine/unit.ts";
import { endFlow, type Flow } from "../store/flows.ts";
import { activeRunsOfFlow } from "../store/runs.ts";
import { publishFlow } from "./flow-events.ts";

/** Ends an open flow without an announcement, with those of its turns that have not started. */
export async function cancelFlow(
  acceptor: Pick<Acceptor, "abortIn">,
  unit: Unit,
  flow: Flow,
  reason: AbortReason,
): Promise<void> {
  if (!(await endFlow(unit.tx, flow.flowId, reason, unit.now))) return;
  const active = await activeRunsOfFlow(unit.tx, flow.flowId);
  for (const run of active) {
    if (run.state !== "queued" || run.flow?.step === "round1") continue;
    await acceptor.abortIn(unit, { sessionKey: run.sessionKey, runId: run.runId, reason });
  }
  publishFlow(unit, {
    flowId: flow.flowId,
    runId: active[0]?.runId ?? flow.requesterRunId ?? "",
    step: "ended",
    from: flow.targetKey,
    to: flow.requesterKey,
    turn: active[0]?.flow?.turn ?? 1,
    turnsMax: flow.turnsMax,
    text: "",
    reason,
  });
}
