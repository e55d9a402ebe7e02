// Owns the states of a message in the inbox of an external program: offered, acknowledged, and answered or
// expired (docs/DELIVERY.md). Each change publishes its event in the transaction that stores it.
// A message expires at its stored deadline, or when the inbox's session is reset or deleted. The sender is
// then notified once, unless it still waits.

import { INBOX_EXPIRES_MS } from "../../core/rules/receipt.ts";
import { isSilent } from "../../core/rules/turn-rules.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { DeadlineHandler } from "../../engine/deadlines.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import { publishReceipt } from "../../engine/run/receipts.ts";
import type { Unit } from "../../engine/unit.ts";
import { getFlow } from "../../store/queries/chains/flows.ts";
import {
  acknowledgeMarks,
  dropNoticeMarks,
  endMark,
  offerMarks,
  openMarks,
} from "../../store/queries/runs/inbox-marks.ts";
import { getRun } from "../../store/queries/runs/runs.ts";
import { answerWaits } from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
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

async function publishAll(
  unit: Unit,
  runIds: readonly string[],
  state: "offered" | "in_turn",
): Promise<void> {
  for (const runId of runIds) {
    const run = await getRun(unit.tx, runId);
    if (run !== undefined) publishReceipt(unit, run, state);
  }
}

/** Records that these messages were written to the client's connection. */
export async function offered(engine: Engine, runIds: readonly string[]): Promise<void> {
  await engine.commit(async (unit) =>
    publishAll(unit, await offerMarks(unit.tx, runIds, unit.now), "offered"),
  );
}

/** Records that the client has read these messages. Calling it again has no effect. */
export async function acknowledge(engine: Engine, runIds: readonly string[]): Promise<void> {
  await engine.commit(async (unit) =>
    publishAll(unit, await acknowledgeMarks(unit.tx, runIds, unit.now), "in_turn"),
  );
}

/** Records the program's answer to a message. An answer of only a skip token counts as silence. */
export async function answeredInInbox(unit: Unit, run: Run, reply: string): Promise<void> {
  const outcome = isSilent(reply) ? "declined" : "answered";
  if (await endMark(unit.tx, run, outcome, unit.now)) publishReceipt(unit, run, outcome);
}

async function expire(parts: ExpiryParts, unit: Unit, runId: string, why: string): Promise<void> {
  const { settings, acceptor } = parts;
  const run = await getRun(unit.tx, runId);
  // Any end other than `ok` was reported when the run ended.
  if (run?.flow === undefined || run.state !== "ok") return;
  if (!(await endMark(unit.tx, run, "expired", unit.now))) return;
  publishReceipt(unit, run, "expired");
  const flow = await getFlow(unit.tx, run.flow.flowId);
  // If the sender still waits, its wait returns the outcome. If the sender disconnects before it gets the
  // outcome, `conversationAnswerLost` notifies it.
  if (flow === undefined || (await answerWaits(unit.tx, runId, unit.now))) return;
  const requester = await getSession(unit.tx, flow.requesterKey);
  const target = await getSession(unit.tx, flow.targetKey);
  await notifySender({ acceptor, unit, settings, flow, run, requester, target }, why);
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

type InboxLoss = "session_reset" | "session_deleted";

const LOST_TEXTS: Readonly<Record<InboxLoss, string>> = {
  session_reset: "its session was reset before an answer came",
  session_deleted: "its session was deleted before an answer came",
};

/**
 * Returns the reason text if a conversation ended because the inbox's session was reset or deleted, else
 * undefined.
 */
export function lostInboxText(endReason: string | undefined): string | undefined {
  return endReason === "session_reset" || endReason === "session_deleted" ? LOST_TEXTS[endReason] : undefined;
}

/** Expires all messages of an inbox whose session is reset or deleted. */
export async function expireInbox(
  parts: ExpiryParts,
  unit: Unit,
  sessionKey: string,
  change: InboxLoss,
): Promise<void> {
  for (const runId of await openMarks(unit.tx, sessionKey))
    await expire(parts, unit, runId, LOST_TEXTS[change]);
  await dropNoticeMarks(unit.tx, sessionKey);
}
