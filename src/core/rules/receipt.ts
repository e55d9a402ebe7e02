// Reads the receipt of a message between sessions from the rows of its run and the marks of an inbox.
// docs/DELIVERY.md defines the states.
// A state is never taken back: each fact below is written once, in the transaction that causes it.

import { optional } from "../optional.ts";
import {
  endCodeOf,
  type InboxMark,
  isEnded,
  type Receipt,
  type ReceiptState,
  type Run,
} from "../shapes/run.ts";
import { isSilent } from "./turn-rules.ts";

/** Refusals of a run that was accepted: it ended without a model call. */
const REFUSALS: readonly (string | undefined)[] = ["chain_limit", "budget_used"];

/** Time after which a message that its inbox's client has not answered is expired. */
export const INBOX_EXPIRES_MS = 7 * 86_400_000;

/** Returns whether a run brought a message of another session: the first one of a send, or a reply turn. */
export function isSessionMessage({ flow }: Pick<Run, "flow">): boolean {
  return flow?.step === "round1" || flow?.step === "reply";
}

/** Returns the session that wrote a message. It is the reply address of the message. */
export function sourceOf({ provenance }: Pick<Run["input"], "provenance">): string | undefined {
  return provenance?.kind === "inter_session" ? provenance.sourceSessionKey : undefined;
}

interface ReceiptFacts {
  readonly run: Pick<
    Run,
    | ("runId" | "kind" | "state" | "reply" | "model" | "flow")
    | ("acceptedAt" | "startedAt" | "heardAt" | "endedAt")
  > & { readonly code?: string };
  /** Of a message that no model handles. */
  readonly mark?: InboxMark | undefined;
}

/** Returns the final state of a message that a model handled. */
function endOf({ run }: ReceiptFacts): ReceiptState | undefined {
  if (!isEnded(run.state)) return undefined;
  if (run.state === "ok") return isSilent(run.reply ?? "") ? "declined" : "answered";
  if (run.state === "aborted" && run.startedAt === undefined) return "expired";
  return run.model === undefined && REFUSALS.includes(run.code) ? "declined" : "failed";
}

/** Returns the receipt of a message between sessions; undefined: the run brought no such message. */
export function receiptOf(facts: ReceiptFacts): Receipt | undefined {
  const { run, mark } = facts;
  if (!isSessionMessage(run)) return undefined;
  const inInbox = run.kind === "append" && run.state === "ok";
  // Accepted before inboxes had marks.
  if (inInbox && mark === undefined) return undefined;
  const end = inInbox ? mark?.outcome : endOf(facts);
  const offered = run.kind === "append" ? mark?.offeredAt : run.startedAt;
  const inTurn = run.kind === "append" ? mark?.inTurnAt : run.heardAt;
  const endedAt = inInbox ? mark?.endedAt : run.endedAt;
  // Several processes write, and their clocks differ.
  let last = run.acceptedAt;
  const since = (at: number | undefined): number | undefined => {
    // A final state stays: an expired message may still be read.
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
