// Notifies the senders that asked to learn when a session has finished all that it has (`notify: "idle"`),
// once each. The open flow of the message holds the request: the transaction that ends the session's last
// work, or resets or deletes the session, ends the flow and accepts the notice (I4).

import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { AbortReason, Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdSessions } from "../../store/locks.ts";
import {
  endFlow,
  type Flow,
  flowsToNotify,
  hasFlowToNotify,
  openSpawnsOf,
} from "../../store/queries/chains/flows.ts";
import { countLane, runsOfFlow } from "../../store/queries/runs/runs.ts";
import { publishFlowEnd } from "../flow-events.ts";
import { notifySender } from "./notice.ts";

interface Ending {
  readonly acceptor: Pick<Acceptor, "acceptIn">;
  readonly unit: Unit;
  readonly settings: Settings;
}

/**
 * Ends a flow whose sender asked for a notice, and notifies it. Does nothing for another flow. `how`: the end
 * of the recipient's work, if it did not finish it.
 */
export async function notifyIdle(
  ending: Ending,
  flow: Flow,
  reason: AbortReason | "idle",
  how?: string,
): Promise<void> {
  const { unit } = ending;
  if (flow.chosenEnd !== "idle") return;
  const [run] = await runsOfFlow(unit.tx, flow.flowId);
  if (run === undefined || !(await endFlow(unit.tx, flow.flowId, reason, unit.now))) return;
  publishFlowEnd(unit, flow, { runId: run.runId, reason });
  const end = `The run ended with "${run.state}"; see sessions_history`;
  const finished = `that session has finished all its work. ${end}`;
  await notifySender({ ...ending, flow, run }, { idle: how ?? finished });
}

/** Notifies the senders that wait for the end of a session's work, if it has ended. Safe at any time. */
export async function sessionMayBeIdle(ending: Ending, sessionKey: string): Promise<void> {
  const { tx } = ending.unit;
  if (!(await hasFlowToNotify(tx, sessionKey))) return;
  // A run of the session and a job of it may end at the same time. The lock lets the later one see that it is
  // the last.
  await holdSessions(tx, [sessionKey]);
  if ((await countLane(tx, sessionKey)).active > 0) return;
  if ((await openSpawnsOf(tx, { sessionKey })).length > 0) return;
  for (const flow of await flowsToNotify(tx, sessionKey)) await notifyIdle(ending, flow, "idle");
}
