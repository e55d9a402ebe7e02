// Notifies a sender who no longer waits of its message's outcome, once. A failure wakes the sender. A success
// is only written into its transcript, and so is any outcome after the sender was stopped.

import type { Provenance } from "../../core/shapes/message.ts";
import type { AcceptRequest } from "../../engine/run/accept.ts";
import type { FlowContext } from "../flow-context.ts";
import { partyOf } from "./party.ts";

function noticeText(context: FlowContext, to: string): string {
  const { flow, run } = context;
  const about = `Notice from the gateway about your earlier message to ${to} (run ${run.runId})`;
  if (run.state === "ok") {
    return flow.round1Reply === undefined
      ? `${about}: it was processed; there was no reply.`
      : `${about}: it was answered:\n\n${flow.round1Reply}`;
  }
  const error = run.error ?? "no reason given";
  return `${about}: its run ended with status "${run.state}" (${run.code ?? "run_failed"}): ${error}`;
}

/** Writes the outcome of round 1 into the sender's session. */
export async function notifySender(context: FlowContext): Promise<void> {
  const { acceptor, unit, settings, flow, run, requester, target } = context;
  if (requester === undefined || requester.key === flow.targetKey) return;
  // After a reset the sender no longer knows the question.
  if (requester.sessionId !== flow.requesterSessionId) return;
  const to = target === undefined ? flow.targetKey : partyOf(settings, target, requester).key;
  const chain = { chainId: run.chainId, hop: run.hop };
  const provenance: Provenance = {
    kind: "notice",
    sourceSessionKey: flow.targetKey,
    runId: run.runId,
    ...chain,
  };
  const request: AcceptRequest = {
    sessionKey: requester.key,
    kind: run.state !== "ok" && flow.open ? "turn" : "append",
    // It is about another session, so it is redacted like the result of a wait (I14).
    input: { text: unit.redactor.mask(noticeText(context, to)), provenance },
    chain,
    successor: true,
  };
  const accepted = await acceptor.acceptIn(unit, request);
  // At a chain limit the notice does not wake the sender, but is still written.
  if (!accepted.ok && request.kind === "turn") await acceptor.acceptIn(unit, { ...request, kind: "append" });
}
