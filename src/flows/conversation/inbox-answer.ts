// Owns the answer of an external session to a message whose sender waits. The conversation stays open until
// the answer, or until its sender gives up, and ends in that transaction. The waiting sender watches for this
// end, in every process. The sender gets an answer once: as the reply of its wait or, if the wait has ended,
// as a new message.

import type { Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Unit } from "../../engine/unit.ts";
import { awaitedMessage, endFlow, getFlow, holdFlow, noteReply } from "../../store/queries/chains/flows.ts";
import { getRun, getRunOfCall } from "../../store/queries/runs/runs.ts";
import { answerWaits, getWait } from "../../store/queries/runs/waits.ts";
import type { Db } from "../../store/sql.ts";
import { publishFlowEnd } from "../flow-events.ts";

/** The reason for which the conversation of an answer ends at once: an answer gets no reply. */
export const IS_ANSWER = "is_answer";

/** Whether this run wrote a message into the inbox of an external session. */
export function isInInbox(run: Run): boolean {
  return run.kind === "append" && run.state === "ok";
}

/** Whether the sender of this message waits for an answer. */
export async function isAwaited(db: Db, run: Run): Promise<boolean> {
  if (run.callId === undefined) return false;
  return (await getWait(db, run.callId))?.state === "open";
}

/** Returns the text with which this run, or the reader of the inbox, answered. */
export async function replyOf(db: Db, run: Run): Promise<string> {
  if (!isInInbox(run) || run.flow === undefined) return run.reply ?? "";
  return (await getFlow(db, run.flow.flowId))?.round1Reply ?? "";
}

interface SentBack {
  readonly requester: Session;
  readonly target: Session;
  readonly text: string;
  readonly callId: string;
}

/**
 * Gives the text of an external session to the sender in `target` who has waited longest. Returns the
 * answered message; undefined: no one waits, or this call was accepted before.
 */
export async function answerAwaited(unit: Unit, sent: SentBack): Promise<Run | undefined> {
  const { requester, target, text, callId } = sent;
  if (!requester.external || (await getRunOfCall(unit.tx, callId)) !== undefined) return undefined;
  const awaited = { requesterKey: target.key, targetKey: requester.key, now: unit.now };
  const runId = await awaitedMessage(unit.tx, awaited);
  const asked = runId === undefined ? undefined : await getRun(unit.tx, runId);
  if (asked?.flow === undefined) return undefined;
  // False: the sender gave up since the query above.
  if (!(await answerWaits(unit.tx, asked.runId, unit.now))) return undefined;
  const { flowId } = asked.flow;
  await noteReply(unit.tx, flowId, text, true);
  await endAwaited(unit, flowId, { runId: asked.runId, reason: "answered" });
  return asked;
}

async function endAwaited(
  unit: Unit,
  flowId: string,
  last: { readonly runId: string; readonly reason: string },
): Promise<void> {
  const flow = await holdFlow(unit.tx, flowId);
  if (flow === undefined || !(await endFlow(unit.tx, flowId, last.reason, unit.now))) return;
  publishFlowEnd(unit, flow, last);
}

/** Ends the conversation of a message whose sender no longer waits. */
export async function endUnanswered(
  unit: Unit,
  { runId, flow }: { readonly runId: string; readonly flow?: { readonly flowId: string } | undefined },
): Promise<void> {
  if (flow !== undefined) await endAwaited(unit, flow.flowId, { runId, reason: "unanswered" });
}
