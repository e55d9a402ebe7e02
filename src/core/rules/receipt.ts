// Computes the receipt of a message between sessions from its run and, if it is in an inbox or for a peer,
// from its mark (read, answered or expired; for a peer: accepted there). docs/DELIVERY.md defines the states.
// A receipt never returns to an earlier state, because each fact is stored once, in the transaction that
// causes it.

import { optional } from "../optional.ts";
import {
  endCodeOf,
  type InboxMark,
  isEnded,
  type Receipt,
  type ReceiptState,
  type Run,
} from "../shapes/run.ts";
import { peerInKey } from "../shapes/session-key.ts";
import { isOverBudget } from "./budget.ts";
import { isSilent } from "./turn-rules.ts";

/** Time after which an unanswered message in an inbox expires. */
export const INBOX_EXPIRES_MS = 7 * 86_400_000;

/** Returns whether a run delivered a message of another session: the first message of a send, or a reply. */
export function isSessionMessage({ flow }: Pick<Run, "flow">): boolean {
  return flow?.step === "round1" || flow?.step === "reply";
}

/** Returns whether the receipt of this message needs its mark. */
export function hasMark({ kind, sessionKey }: Pick<Run, "kind"> & { readonly sessionKey?: string }): boolean {
  return kind === "append" || peerInKey(sessionKey ?? "") !== undefined;
}

/** Returns whether this run has stored a message in an inbox. Its answer comes later, as another message. */
export function isInInbox({ kind, state }: Pick<Run, "kind" | "state">): boolean {
  return kind === "append" && state === "ok";
}

/** Returns the session that wrote a message and gets the reply. */
export function sourceOf({ provenance }: Pick<Run["input"], "provenance">): string | undefined {
  return provenance?.kind === "inter_session" ? provenance.sourceSessionKey : undefined;
}

interface ReceiptFacts {
  readonly run: Pick<
    Run,
    | ("runId" | "kind" | "state" | "reply" | "model" | "flow")
    | ("acceptedAt" | "startedAt" | "heardAt" | "endedAt")
  > & { readonly code?: string; readonly sessionKey?: string };
  /** The mark of the message, if it is in an inbox or for a peer. No model of the gateway handles it. */
  readonly mark?: InboxMark | undefined;
}

/** Returns the final state of a message that a model handled, or undefined if the run has not ended. */
function endOf({ run }: ReceiptFacts, offered: number | undefined): ReceiptState | undefined {
  if (!isEnded(run.state)) return undefined;
  if (run.state === "ok") return isSilent(run.reply ?? "") ? "declined" : "answered";
  // A message for a peer that was away until its time was over ends with `timeout`.
  if (["aborted", "timeout"].includes(run.state) && offered === undefined) return "expired";
  return run.model === undefined && isOverBudget(run) ? "declined" : "failed";
}

/** Returns the receipt of a message between sessions, or undefined if the run delivered no such message. */
export function receiptOf(facts: ReceiptFacts): Receipt | undefined {
  const { run, mark } = facts;
  if (!isSessionMessage(run)) return undefined;
  const inInbox = isInInbox(run);
  // A message without a mark was accepted by an older version of Parley.
  if (inInbox && mark === undefined) return undefined;
  // A run for a peer begins here while the peer is still away.
  const offered = hasMark(run) ? mark?.offeredAt : run.startedAt;
  const end = inInbox ? mark?.outcome : endOf(facts, offered);
  const inTurn = run.kind === "append" ? mark?.inTurnAt : run.heardAt;
  const endedAt = inInbox ? mark?.endedAt : run.endedAt;
  // Times may be out of order, because they are from several processes with different clocks.
  let last = run.acceptedAt;
  const since = (at: number | undefined): number | undefined => {
    // A final state does not change any more, although a client may still read an expired message.
    if (at === undefined || (end !== undefined && inInbox && at > (endedAt ?? at))) return undefined;
    last = Math.max(last, at);
    return last;
  };
  const times = { queued: last, ...optional({ offered: since(offered), in_turn: since(inTurn) }) };
  const reached = inTurn === undefined ? (offered === undefined ? "queued" : "offered") : "in_turn";
  if (end === undefined) return { messageId: run.runId, state: reached, times };
  const code = end === "answered" || inInbox ? undefined : (run.code ?? endCodeOf({ state: run.state }));
  const ended = { ...times, [end]: since(endedAt) ?? last };
  return { messageId: run.runId, state: end, times: ended, ...optional({ code }) };
}
