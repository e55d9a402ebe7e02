// Owns the states of a message in the inbox of an external program: offered, acknowledged, and answered or
// expired (docs/DELIVERY.md). Each change publishes its event in the transaction that stores it.
// A message expires at its stored deadline, or when the inbox's session is reset or deleted. The sender is
// then notified once, unless it still waits.

import { INBOX_EXPIRES_MS } from "../../core/rules/receipt.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import type { FlowRef, Run } from "../../core/shapes/run.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import { type Acceptor, publishReceipt } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { endFlow, getFlow, holdFlow, noteReply } from "../../store/queries/chains/flows.ts";
import { advanceMarks, dropNoticeMarks, endMark, openMarks } from "../../store/queries/runs/inbox-marks.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { answerWaits, waitsOfCall } from "../../store/queries/runs/waits.ts";
import type { Db } from "../../store/sql.ts";
import { publishFlowEnd } from "../flow-events.ts";
import { notifySender } from "./notice.ts";

/** Kind of the deadlines by which messages in inboxes expire. The key is the run id. */
export const INBOX_DEADLINE = "inbox";

interface ExpiryParts {
  readonly settings: Settings;
  readonly acceptor: Pick<Acceptor, "acceptIn">;
}

/** Stores the time at which a message in an inbox expires. */
export async function planExpiry(unit: Unit, { runId }: Run): Promise<void> {
  await unit.setDeadline({ kind: INBOX_DEADLINE, key: runId, dueAt: unit.now + INBOX_EXPIRES_MS });
}

/**
 * Records that these messages were written to the client's connection, or that the client has read them.
 * Calling it again has no effect.
 */
export async function noteReading(
  engine: Engine,
  runIds: readonly string[],
  state: "offered" | "in_turn",
): Promise<void> {
  await engine.commit(async (unit) => {
    for (const runId of await advanceMarks(unit.tx, runIds, state, unit.now)) {
      const run = await getRun(unit.tx, runId);
      if (run !== undefined) publishReceipt(unit, run, state);
    }
  });
}

/** Returns whether the sender of this message waits for an answer at `now`. */
export async function isAwaited(db: Db, { callId }: Run, now: number): Promise<boolean> {
  const [wait] = callId === undefined ? [] : await waitsOfCall(db, callId);
  return wait?.state === "open" && wait.deadlineAt >= now;
}

/**
 * Ends a message, and its conversation, with the program's answer. Returns true if its sender waits and gets
 * the answer. An answer of only a skip token counts as silence.
 */
export async function answerInInbox(
  unit: Unit,
  asked: Run,
  reply: string,
  reason = "answered",
): Promise<boolean> {
  const { runId, flow } = asked;
  const outcome = isSilent(reply) ? "declined" : "answered";
  if (await endMark(unit.tx, runId, outcome, unit.now)) publishReceipt(unit, asked, outcome);
  const isReply = await answerWaits(unit.tx, runId, unit.now);
  if (isReply && flow !== undefined) await noteReply(unit.tx, flow.flowId, reply, true);
  await endConversation(unit, asked, reason);
  return isReply;
}

type Asked = Pick<Run, "runId"> & { readonly flow?: Pick<FlowRef, "flowId"> };

async function endConversation(unit: Unit, { runId, flow: ref }: Asked, reason: string): Promise<void> {
  const flow = ref === undefined ? undefined : await holdFlow(unit.tx, ref.flowId);
  if (flow === undefined || !(await endFlow(unit.tx, flow.flowId, reason, unit.now))) return;
  publishFlowEnd(unit, flow, { runId, reason });
}

/** Ends the conversation of a message whose sender no longer waits. */
export const endUnanswered = (unit: Unit, asked: Asked): Promise<void> =>
  endConversation(unit, asked, "unanswered");

async function expire(parts: ExpiryParts, unit: Unit, runId: string, why: string): Promise<void> {
  const { settings, acceptor } = parts;
  const run = await getRun(unit.tx, runId);
  // Any end other than `ok` was reported when the run ended.
  if (run?.flow === undefined || run.state !== "ok") return;
  if (!(await endMark(unit.tx, run.runId, "expired", unit.now))) return;
  publishReceipt(unit, run, "expired");
  const flow = await getFlow(unit.tx, run.flow.flowId);
  // If the sender still waits, its wait returns the outcome. If the sender disconnects before it gets the
  // outcome, `conversationAnswerLost` notifies it.
  if (flow === undefined || (await answerWaits(unit.tx, runId, unit.now))) return;
  await notifySender({ acceptor, unit, settings, flow, run }, { expired: why });
}

/** Handles the deadline of a message in an inbox: expires it. */
export function createInboxExpiry(parts: {
  readonly settings: Settings;
  engine(): ExpiryParts["acceptor"];
}): DeadlineHandler {
  const days = INBOX_EXPIRES_MS / 86_400_000;
  return async (unit, runId) => {
    const { settings } = parts;
    await expire({ settings, acceptor: parts.engine() }, unit, runId, `no answer came within ${days} days`);
    return "done";
  };
}

/** Ends of conversations that a lost session ended, and what was done to it. */
export const LOSSES = { session_reset: "reset", session_deleted: "deleted" } as const;
export type InboxLoss = keyof typeof LOSSES;

/** Explains the expiry of a message whose inbox was lost. */
export const lossText = (loss: InboxLoss): string => `its session was ${LOSSES[loss]} before an answer came`;

/** Returns why a conversation with an inbox was lost, or undefined if it ended in another way. */
export function inboxLoss(reason: string | undefined): InboxLoss | undefined {
  return reason === "session_reset" || reason === "session_deleted" ? reason : undefined;
}

/** Expires all messages of an inbox whose session is reset or deleted. */
export async function expireInbox(
  parts: ExpiryParts,
  unit: Unit,
  sessionKey: string,
  change: InboxLoss,
): Promise<void> {
  for (const runId of await openMarks(unit.tx, sessionKey))
    await expire(parts, unit, runId, lossText(change));
  await dropNoticeMarks(unit.tx, sessionKey);
}
