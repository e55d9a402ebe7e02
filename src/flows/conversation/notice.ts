// Notifies the sender of a message of its outcome, once, if the sender no longer waits and gets no reply
// turn. A failure wakes the sender, unless the sender's run was aborted. A success does not, and neither does
// a message that expired in an inbox. The notice that a session is idle wakes the sender, which asked for it.
// A notice has no receipt, so it causes no further notice. It quotes each line that others wrote, because a
// model reads it as text of the runtime.

import { isSilent } from "../../core/rules/turn-rules.ts";
import type { Provenance } from "../../core/shapes/message.ts";
import type { Run } from "../../core/shapes/run.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoteLines } from "../../core/text/safe-text.ts";
import type { AcceptRequest } from "../../engine/run/accept.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import type { Flow } from "../../store/queries/chains/flows.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { partyOf } from "./party.ts";

export interface Sent {
  readonly acceptor: Pick<Acceptor, "acceptIn">;
  readonly unit: Unit;
  readonly settings: Settings;
  readonly flow: Flow;
  readonly run: Run;
}

/** Why the sender is notified, if not by the end of the message's run. */
interface Cause {
  /** Why the message expired in an inbox. */
  readonly expired?: string | undefined;
  /** Why the reply, which only people were to get, was not announced to them. */
  readonly unannounced?: string;
  /** How the work of the recipient ended. */
  readonly idle?: string;
}

function noticeText({ flow, run }: Sent, to: string, { expired, unannounced, idle }: Cause): string {
  const about = `Notice from the gateway about your earlier message to ${to} (run ${run.runId})`;
  if (idle !== undefined) return `${about}: ${idle}.`;
  if (expired !== undefined) return `${about}: it expired in the inbox: ${expired}.`;
  if (run.state === "ok") {
    const cut = run.error === undefined ? "" : ` (${run.error})`;
    const failed = unannounced === undefined ? "" : `, but not announced (${unannounced})`;
    return flow.round1Reply === undefined
      ? `${about}: it was processed; there was no reply.`
      : [`${about}: it was answered${cut}${failed}:`, "", ...quoteLines(flow.round1Reply)].join("\n");
  }
  const end = `${about}: its run ended with status "${run.state}" (${run.code ?? "run_failed"}):`;
  const said = isSilent(run.reply ?? "")
    ? []
    : ["", "Its text until then:", "", ...quoteLines(run.reply ?? "")];
  return [end, "", ...quoteLines(run.error ?? "no reason given"), ...said].join("\n");
}

/** Writes the outcome of a message into its sender's session. */
export async function notifySender(sent: Sent, cause: Cause = {}): Promise<void> {
  const { acceptor, unit, settings, flow, run } = sent;
  const requester = await getSession(unit.tx, flow.requesterKey);
  if (requester === undefined || requester.key === flow.targetKey) return;
  // After a reset the sender's transcript no longer has the question.
  if (requester.sessionId !== flow.requesterSessionId) return;
  const target = await getSession(unit.tx, flow.targetKey);
  const to = target === undefined ? flow.targetKey : partyOf(settings, target, requester).key;
  const chain = { chainId: run.chainId, hop: run.hop };
  const { runId } = run;
  const provenance: Provenance = { kind: "notice", sourceSessionKey: flow.targetKey, runId, ...chain };
  const request: AcceptRequest = {
    sessionKey: requester.key,
    // An abort is the wish of the sender, a reset of its session is not.
    kind:
      cause.idle === undefined && (run.state === "ok" || (!flow.open && flow.endReason === "run_aborted"))
        ? "append"
        : "turn",
    // The text comes from another session, so it is redacted like the result of a wait (I14).
    input: { text: unit.redactor.mask(noticeText(sent, to, cause)), provenance },
    chain,
    successor: true,
  };
  const accepted = await acceptor.acceptIn(unit, request);
  // If a chain limit forbids a turn, the notice is still written, but does not wake the sender.
  if (!accepted.ok && request.kind === "turn") await acceptor.acceptIn(unit, { ...request, kind: "append" });
}
