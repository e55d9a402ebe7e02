// Owns what differs between the recipients of a message of another session: the lane of an agent, the inbox
// of an external session, and a peer, whose gateway runs the agent.

import { isSilent } from "../../core/rules/turn-rules.ts";
import type { Code } from "../../core/shapes/errors.ts";
import type { ChosenEnd, Run } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { peerInKey } from "../../core/shapes/session-key.ts";
import type { Unit } from "../../engine/unit.ts";
import { getFlow } from "../../store/queries/chains/flows.ts";
import type { Db } from "../../store/sql.ts";
import { endUnanswered, inboxLoss, LOSSES, planExpiry } from "./inbox-receipts.ts";
import { announceRoute } from "./party.ts";

/**
 * The message that may still come after the reply: an announcement by the target's agent or, if the target is
 * an external session, its answer to the message in its inbox. `idle_notice`: instead of the reply.
 */
export type FollowUp = "announcement" | "inbox_answer" | "idle_notice" | "none";

export interface SentRun {
  readonly run: Run;
  /** Undefined if the session was deleted in the meantime. */
  readonly target: Session | undefined;
  readonly chosenEnd?: ChosenEnd | undefined;
}

export interface Recipient {
  /** Whether reply turns may follow the first answer. */
  readonly takesTurns: boolean;
  /** Called in the transaction that accepts the message, unless it is itself an answer. */
  noteAccepted(unit: Unit, run: Run): Promise<void>;
  /** Called in the transaction in which the sender stops waiting for the answer. */
  noteGaveUp(unit: Unit, run: Run): Promise<void>;
  /**
   * Returns the answer to a message, or why none can come any more: nothing while it may still come.
   * `hasOutcome`: the message's run has ended, in time if a sender waits.
   */
  answer(
    db: Db,
    sent: SentRun,
    hasOutcome: boolean,
  ): Promise<{ text?: string; loss?: { code: Code; error: string } }>;
  /** Without `reply`: before it has come. */
  followUp(target: Session | undefined, reply?: string): FollowUp;
}

const LANE: Recipient = {
  takesTurns: true,
  async noteAccepted() {},
  async noteGaveUp() {},
  async answer(_, { run: { reply }, target }, hasOutcome) {
    if (!hasOutcome) return {};
    if (reply !== undefined || target !== undefined) return { text: reply ?? "" };
    return { loss: { code: "session_deleted", error: "the session was deleted, and its answer with it" } };
  },
  followUp(target, reply) {
    const route = target === undefined ? undefined : announceRoute(target);
    return route !== undefined && (reply === undefined || !isSilent(reply)) ? "announcement" : "none";
  },
};

const PEER: Recipient = { ...LANE, takesTurns: false };

/** Its run only stores the message. The answer is a message of its own, and ends the conversation. */
const INBOX: Recipient = {
  takesTurns: false,
  noteAccepted: planExpiry,
  noteGaveUp: endUnanswered,
  async answer(db, { run }) {
    const flow = run.flow && (await getFlow(db, run.flow.flowId));
    if (flow?.round1Reply !== undefined) return { text: flow.round1Reply };
    const code = inboxLoss(flow?.endReason);
    if (code === undefined) return {};
    const error = `a session of this conversation was ${LOSSES[code]} before the answer came`;
    return { loss: { code, error } };
  },
  followUp: (target) => (target === undefined ? "none" : "inbox_answer"),
};

/** Returns the recipient of a message by its run. */
export function chooseRecipient({ kind, sessionKey }: Pick<Run, "kind" | "sessionKey">): Recipient {
  if (kind === "append") return INBOX;
  return peerInKey(sessionKey) === undefined ? LANE : PEER;
}
