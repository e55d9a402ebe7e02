// Publishes the live event of a flow's step for both parties, each under its own key, so that visibility is
// checked for each.

import { optional } from "../core/optional.ts";
import type { LiveEvent } from "../core/shapes/event.ts";
import type { FlowRef, Run } from "../core/shapes/run.ts";
import type { Session } from "../core/shapes/session.ts";
import type { Unit } from "../engine/unit.ts";
import { type Flow, insertFlow } from "../store/queries/chains/flows.ts";

type FlowEvent = Extract<LiveEvent, { kind: "flow" }>;

export function publishFlow(unit: Unit, step: Omit<FlowEvent, "kind" | "sessionKey" | "atMs">): void {
  for (const sessionKey of new Set([step.from, step.to])) {
    unit.publish({ kind: "flow", sessionKey, atMs: unit.now, ...step });
  }
}

/** Stores a new flow, whose first run was accepted, and publishes its first step. */
export async function openFlow(
  unit: Unit,
  { runId, sessionKey: to, chainId, parentRunId }: Run,
  { flowId, step }: Pick<FlowRef, "flowId" | "step">,
  flow: Pick<Flow, "kind" | "turnsMax" | "requestText" | "chosenEnd"> & { readonly requester: Session },
): Promise<void> {
  const { requester, turnsMax, requestText: text, chosenEnd } = flow;
  const { key: from, sessionId: requesterSessionId } = requester;
  await insertFlow(unit.tx, {
    ...{ flowId, kind: flow.kind, chainId, requesterKey: from, requesterSessionId, targetKey: to },
    ...{ open: true, turnsMax, requestText: text, createdAt: unit.now },
    ...optional({ requesterRunId: parentRunId, chosenEnd }),
  });
  publishFlow(unit, { flowId, runId, step, from, to, turn: 1, turnsMax, text });
}

/** Publishes the end of a flow. `runId`: the flow's last run, or another unique id if the flow had no run. */
export function publishFlowEnd(
  unit: Unit,
  { flowId, targetKey, requesterKey, turnsMax }: Flow,
  last: { readonly runId: string; readonly turn?: number | undefined; readonly reason?: string },
): void {
  const { runId, turn = 1, reason } = last;
  const ended = { flowId, runId, step: "ended", from: targetKey, to: requesterKey } as const;
  publishFlow(unit, { ...ended, turn, turnsMax, text: "", ...optional({ reason }) });
}
