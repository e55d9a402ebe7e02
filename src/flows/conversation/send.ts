// Implements `sessions_send`, from the sender's call to its result. One transaction writes flow, message, run
// and wait. If it fails, nothing is stored and the sender gets the reason (I2, I7). If the sender is an
// external session, the same transaction writes the message into its own transcript (external.ts). A tool
// call that is repeated after a crash finds its run and its deadline again (I4).
// The answer of an external session comes through its inbox: the conversation ends in the transaction of that
// answer, or in the transaction in which its sender gives up. The waiting sender watches for this end, in
// every process. The sender gets an answer once: as the reply of its wait or, if the wait has ended, as a new
// message.

import { optional } from "../../core/optional.ts";
import { isInInbox } from "../../core/rules/receipt.ts";
import { sendVerdict } from "../../core/rules/send-policy.ts";
import { isSilent, messageContext, type ReplyReader, refuseToPartner } from "../../core/rules/turn-rules.ts";
import { type Code, type Failure, fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import {
  type ChosenEnd,
  isEnded,
  type ReceiptState,
  type Run,
  type SendAnnounce,
} from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import { isTemporaryKey, peerInKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import { quoted } from "../../core/text/cut.ts";
import type { Engine } from "../../engine/engine.ts";
import type { RunWait, WaitRequest } from "../../engine/lanes/waits.ts";
import type { Accepted } from "../../engine/run/accept.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdSessions } from "../../store/locks.ts";
import { getFlow, hasSentInChain } from "../../store/queries/chains/flows.ts";
import { openQuestions, receiptsOf } from "../../store/queries/runs/inbox-marks.ts";
import { countAhead, getRun, getRunOfCall } from "../../store/queries/runs/runs.ts";
import { isAnswered, waitsOfCall } from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import type { Db } from "../../store/sql.ts";
import { openFlow } from "../flow-events.ts";
import { noteSaidByExternal } from "../session/external.ts";
import { answerInInbox } from "./inbox-receipts.ts";
import { announceRoute, partyOf, provenanceFrom } from "./party.ts";
import { chooseRecipient, type FollowUp, type SentRun } from "./recipient.ts";

/** A tool call of a session. */
export interface SessionCall {
  readonly requester: Session;
  /** The run that makes this tool call. Absent if an operator acts as the session. */
  readonly requesterRun?: Run;
  /** See `RunInput.guest`. Default: that of the run that makes this call. */
  readonly guest?: boolean;
  readonly callId: string;
  /** The wait of the calling run. Absent if an operator acts as the session. */
  readonly wait?: RunWait;
}

export interface SendRequest extends SessionCall {
  readonly target: Session;
  readonly text: string;
  /** The message in the requester's inbox that the text answers. Default: the only one that waits. */
  readonly inReplyTo?: string;
  /** How long to wait, counted from acceptance. 0: do not wait. */
  readonly timeoutSeconds: number;
  /** Time limit of the run that the message starts, counted from its start. 0 and absent: none. */
  readonly runTimeoutSeconds?: number;
  /** The end of the conversation. With `notify`, the sender does not wait. See `ChosenEnd`. */
  readonly announce?: SendAnnounce;
  readonly notify?: "idle";
  readonly signal: AbortSignal;
  /**
   * True if the caller reports to the engine whether the answer reached the client (`CallerWaits.confirm`).
   */
  readonly confirmsAnswers?: boolean;
}

interface SendParts {
  readonly engine: Engine;
  readonly settings: Settings;
}

export type SendOutcome = {
  readonly run: Run;
  readonly receipt: ReceiptState;
  /** Labels of the chain of the message, after a wait. */
  readonly labels?: Labels;
  /** Several messages of the target wait for an answer in the sender's inbox, and this text answered none. */
  readonly isUnclear?: true;
} /** The sender does not wait. */ & (
  | { readonly kind: "accepted"; readonly followUp: FollowUp }
  /**
   * The text was the reply that the target session was waiting for. The target has received the text and does
   * not reply to it.
   */
  | { readonly kind: "answered_waiter" }
  /** The redacted reply. Empty if the target chose not to reply. */
  | { readonly kind: "replied"; readonly reply: string; readonly followUp: FollowUp }
  /** The run failed, or the conversation ended before a reply. `reply`: the redacted text until then. */
  | { readonly kind: "failed"; readonly code: Code; readonly error: string; readonly reply?: string }
  /**
   * The wait ended before the answer came. The run continues, or the message stays in its inbox.
   * `queuedBehind`: number of runs ahead of the message's run in its lane.
   */
  | {
      readonly kind: "pending";
      readonly waitedSeconds: number;
      readonly queuedBehind: number;
      readonly followUp: FollowUp;
    }
);

/** The fields of a call that are needed to wait for its answer. */
type WaitingCall = Pick<SendRequest, "callId" | "timeoutSeconds" | "signal" | "wait">;

/** The end reason of a conversation whose message was itself an answer, so that it gets no reply. */
const IS_ANSWER = "is_answer";

/** The relation of a text to the messages in the inbox of its sender. */
interface Answering {
  /** True if the text is the reply of a message whose sender waits. */
  readonly isReply: boolean;
  /** True if several messages wait for an answer, and the text names none. It then answers none of them. */
  readonly isUnclear: boolean;
  /** The message whose chain the text continues (I8): the answered one, or the last one that waits. */
  readonly follows?: Run;
}

/** Explains to a program why its text has answered no message, and how to answer one. */
export const UNCLEAR =
  "Several messages of this session await an answer in your inbox, and your text names none, so it answers " +
  "none. To answer one, set inReplyTo to its id from sessions_inbox.";

const ANSWERS_NONE: Answering = { isReply: false, isUnclear: false };

/**
 * Lets the text answer the message that it names or, without a name, the only message of `target` that waits
 * for an answer in the requester's inbox. A call that was accepted before answers none.
 */
async function answerIn(unit: Unit, request: SendRequest): Promise<Result<Answering>> {
  const { requester, target, callId, text, inReplyTo: runId } = request;
  if (!requester.external && runId === undefined) return ok(ANSWERS_NONE);
  if ((await getRunOfCall(unit.tx, callId)) !== undefined) return ok(ANSWERS_NONE);
  const between = { requesterKey: target.key, targetKey: requester.key };
  const [newest, another] = await openQuestions(unit.tx, { ...between, ...optional({ runId }) });
  const asked = newest === undefined ? undefined : await getRun(unit.tx, newest);
  if (asked === undefined && runId === undefined) return ok(ANSWERS_NONE);
  if (asked === undefined) {
    const named = `no message ${quoted(runId ?? "", 80)} of ${target.key}`;
    return fail("message_not_found", `${named} waits for an answer in your inbox; nothing was sent`, {
      hint:
        "It was answered before, has expired, or is of another session. sessions_inbox marks messages that " +
        "wait with awaitsAnswer. To send something else, omit inReplyTo.",
    });
  }
  if (another === undefined)
    return ok({ isReply: await answerInInbox(unit, asked, text), isUnclear: false, follows: asked });
  const { chainId, acceptedAt: afterMs } = asked;
  const ours = { chainId, requesterKey: requester.key, targetKey: target.key, afterMs };
  const hasFollowed = await hasSentInChain(unit.tx, ours);
  return ok({ isReply: false, isUnclear: true, ...(hasFollowed ? {} : { follows: asked }) });
}

async function openSendWait(
  engine: Engine,
  unit: Unit,
  request: SendRequest,
  { runId, acceptedAt }: Run,
): Promise<Result<unknown>> {
  const { requester, target, timeoutSeconds, confirmsAnswers } = request;
  const wait: WaitRequest = {
    callId: request.callId,
    kind: "run",
    targets: [{ id: runId, sessionKey: target.key }],
    deadlineAt: acceptedAt + Math.round(timeoutSeconds * 1000),
  };
  return engine.callerWaits.of(request, confirmsAnswers === true ? requester.key : "").open(unit, wait);
}

/** Returns whether reply turns may follow. An unattended session and a sub-agent take none. */
function converses(requester: Session, target: Run): boolean {
  const { kind, key, external, spawnedBy } = requester;
  const isAttended = kind !== "cron" && kind !== "hook" && !isTemporaryKey(key);
  const isOther = key !== target.sessionKey && chooseRecipient(target).takesTurns;
  return isAttended && isOther && !external && spawnedBy === undefined;
}

/** Returns who gets the reply to a message. `waits`: whether its sender waits for it. */
function readerOf(chosenEnd: ChosenEnd | undefined, to: Session, waits: boolean): ReplyReader {
  if (chosenEnd === "idle") return "nobody";
  return chosenEnd === "channel" && !waits && announceRoute(to) !== undefined ? "people" : "sender";
}

/** Returns who gets the reply of a session's run that belongs to a conversation. */
async function replyReader(db: Db, run: Run, chosenEnd: ChosenEnd | undefined, session: Session) {
  const isOpen = chosenEnd === "channel" && run.flow?.step === "round1" && run.callId !== undefined;
  const waits = isOpen ? await waitsOfCall(db, run.callId) : [];
  return readerOf(chosenEnd, session, !isOpen || waits.length > 0);
}

const refuseNotify = (why: string): Failure =>
  fail("invalid_argument", `notify: "idle" does not fit this message: ${why}; nothing was sent`, {
    hint: "Omit notify.",
  });

type Enqueued = Accepted & Partial<Pick<Answering, "isUnclear">>;

/** Writes the flow, the run and the wait in the given transaction. */
async function enqueue(parts: SendParts, request: SendRequest, unit: Unit): Promise<Result<Enqueued>> {
  const { engine, settings } = parts;
  const { requester, requesterRun, target, text, runTimeoutSeconds = 0, announce, notify } = request;
  const chosenEnd = notify ?? announce;
  // The run may have been aborted or timed out in the meantime. Then it sends nothing more (I1).
  if (request.wait !== undefined && !(await request.wait.holds(unit))) {
    return fail("run_aborted", "the run that sends has ended; the message was not sent");
  }
  const answering = await answerIn(unit, request);
  if (!answering.ok) return answering;
  const { isReply, isUnclear, follows } = answering.value;
  if (notify !== undefined && isReply) return refuseNotify("it answers a message, and starts no run");
  const before = requesterRun ?? follows;
  const chain = { chainId: before?.chainId ?? unit.newOrderedId(), hop: (before?.hop ?? 0) + 1 };
  const flowId = unit.newOrderedId();
  const accepted = await engine.acceptIn(unit, {
    sessionKey: target.key,
    input: {
      text,
      provenance: provenanceFrom(requester, chain),
      ...optional({ guest: request.guest }),
      context: messageContext({
        requester: partyOf(settings, requester, target),
        self: partyOf(settings, target, target),
        reader: readerOf(chosenEnd, target, request.timeoutSeconds > 0),
      }),
    },
    chain,
    rootSessionKey: requester.key,
    flow: { flowId, step: "round1", turn: 1 },
    callId: request.callId,
    // Rounded up, so that a short limit never becomes 0, which means no limit.
    timeoutMs: Math.ceil(runTimeoutSeconds * 1000),
    ...optional({ parentRunId: requesterRun?.runId }),
    // If the text answers a run or client that waits for it, it is only appended there: it starts no run.
    ...(isReply ? { kind: "append", successor: true } : {}),
  });
  if (!accepted.ok || !accepted.value.fresh) return accepted;
  const { run } = accepted.value;
  const mayTalk = chosenEnd !== "channel" && chosenEnd !== "idle" && converses(requester, run);
  const turnsMax = mayTalk ? settings.session.agentToAgent.maxPingPongTurns : 0;
  const first = { flowId, step: "round1" } as const;
  const flow = { kind: "send", requester, turnsMax, requestText: text } as const;
  await openFlow(unit, run, first, { ...flow, ...optional({ chosenEnd }) });
  const noted = await noteSaidByExternal(engine, unit, requester, { to: target.key, text });
  if (!noted.ok) return noted;
  if (isReply) {
    // The waiting caller has already received the text as its reply.
    await answerInInbox(unit, run, text, IS_ANSWER);
    await engine.endIn(unit, run, { state: "ok" });
  } else {
    await chooseRecipient(run).noteAccepted(unit, run);
    const waits = request.timeoutSeconds > 0 && notify === undefined;
    const opened = waits ? await openSendWait(engine, unit, request, run) : ok(run);
    if (!opened.ok) return isUnclear ? { ...opened, hint: UNCLEAR } : opened;
  }
  return ok({ ...accepted.value, isUnclear });
}

/** Returns what may still follow. Without `reply`: before it has come. */
function followUpOf({ run, target, chosenEnd }: SentRun, reply?: string): FollowUp {
  if (chosenEnd === "idle") return "idle_notice";
  const followUp = chooseRecipient(run).followUp(target, reply);
  const isKept = chosenEnd === "none" || chosenEnd === "parent";
  return followUp === "announcement" && isKept ? "none" : followUp;
}

/** Returns the outcome of a message whose sender waited; with `hasOutcome`, until its run had ended. */
async function readOutcome(
  { engine: { store, redactor } }: SendParts,
  waitedSeconds: number,
  sent: SentRun,
  hasOutcome: boolean,
): Promise<SendOutcome> {
  const { run } = sent;
  const recipient = chooseRecipient(run);
  const receipt = (await receiptsOf(store.db, [run])).get(run.runId)?.state ?? "queued";
  if (hasOutcome && run.state !== "ok") {
    const error = redactor.mask(run.error ?? "the run failed without saying why");
    const said = isSilent(run.reply ?? "") ? {} : { reply: await redactor.whole(run.reply ?? "") };
    return { kind: "failed", run, code: run.code ?? "run_failed", error, receipt, ...said };
  }
  const { text, loss } = await recipient.answer(store.db, sent, hasOutcome);
  if (loss !== undefined) return { kind: "failed", run, ...loss, receipt: "expired" };
  const reply = text === undefined || isSilent(text) ? "" : await redactor.whole(text);
  const followUp = followUpOf(sent, text && reply);
  if (text !== undefined) return { kind: "replied", run, reply, followUp, receipt };
  const queuedBehind = await countAhead(store.db, run);
  return { kind: "pending", run, waitedSeconds, queuedBehind, followUp, receipt };
}

async function acceptedOutcome(db: Db, sent: SentRun): Promise<SendOutcome> {
  const { run } = sent;
  const flow = run.flow && (await getFlow(db, run.flow.flowId));
  if (flow?.endReason === IS_ANSWER) return { kind: "answered_waiter", run, receipt: "answered" };
  const followUp = followUpOf(sent);
  // The state at acceptance, so that a repeated call gets the same answer.
  return { kind: "accepted", run, followUp, receipt: "queued" };
}

/** Waits for the outcome of a send. If the wait of a caller fails, the caller's session gets the outcome. */
function settle(parts: SendParts, request: WaitingCall, sent: SentRun): Promise<SendOutcome> {
  const { callerWaits, store } = parts.engine;
  const { runId } = sent.run;
  const waiter = callerWaits.of(request);
  const work = async (): Promise<SendOutcome> => {
    const waits = await waitsOfCall(store.db, request.callId);
    if (waits.length === 0) return acceptedOutcome(store.db, sent);
    let run: Run | undefined;
    const gaveUp = async (unit: Unit): Promise<void> => {
      run = await getRun(unit.tx, runId);
      if (run !== undefined) await chooseRecipient(run).noteGaveUp(unit, run);
    };
    const settled = await waiter.settle(waits, "all", gaveUp);
    run ??= (await getRun(store.db, runId)) ?? sent.run;
    const outcome = await readOutcome(
      parts,
      request.timeoutSeconds,
      { ...sent, run },
      settled.some(isAnswered),
    );
    return { ...outcome, ...optional({ labels: settled[0]?.labels }) };
  };
  return waiter.during(work);
}

export interface SentSoFar {
  readonly run: Run;
  /** Absent while the sender waits. */
  readonly outcome?: SendOutcome;
  /** True if the sender gave up before its time was over, so the answer goes to its session. */
  readonly givenUp?: boolean;
  /** True if the outcome was written to the sender's connection. */
  readonly isAnswered?: boolean;
}

/**
 * Returns the state of a send of this caller, without waiting, or undefined if this call has sent nothing.
 */
export async function sentSoFar(
  parts: SendParts,
  { session: requester }: { readonly session: Session },
  callId: string,
): Promise<SentSoFar | undefined> {
  const { engine } = parts;
  const { db } = engine.store;
  const run = await getRunOfCall(db, callId);
  const flow = run?.flow === undefined ? undefined : await getFlow(db, run.flow.flowId);
  if (run === undefined || flow?.kind !== "send" || flow.requesterKey !== requester.key) return undefined;
  const sent = { run, target: await getSession(db, run.sessionKey), chosenEnd: flow.chosenEnd };
  const [wait] = await waitsOfCall(db, callId);
  const isThere = isInInbox(run);
  if (isThere && wait === undefined) return { run, outcome: await acceptedOutcome(db, sent) };
  const hasAnswer = isThere ? flow.round1Reply !== undefined : isEnded(run.state);
  if (!hasAnswer && wait?.state === "open" && engine.now() < wait.deadlineAt) return { run };
  const lastsUntil = isThere ? engine.now() : (run.endedAt ?? engine.now());
  const givenUp = wait?.state === "ended" && lastsUntil < wait.deadlineAt;
  const timeoutSeconds = ((wait?.deadlineAt ?? run.acceptedAt) - run.acceptedAt) / 1000;
  const labels = optional({ labels: wait?.labels });
  const outcome = { ...(await readOutcome(parts, timeoutSeconds, sent, hasAnswer)), ...labels };
  return { run, outcome, givenUp, isAnswered: hasAnswer && wait?.state === "answered" };
}

/** Stops waiting for this call. The outcome of the call then goes to the sender's session. */
export async function stopWaiting(parts: SendParts, callId: string): Promise<void> {
  await parts.engine.callerWaits.lose(callId);
}

/**
 * Returns the outcome of a call that was accepted before a crash, or undefined if it was not accepted. The
 * call is not checked again, even if settings or sessions have changed: it only continues to wait.
 */
export async function sentBefore(parts: SendParts, request: WaitingCall): Promise<SendOutcome | undefined> {
  const { db } = parts.engine.store;
  const run = await getRunOfCall(db, request.callId);
  if (run === undefined) return undefined;
  const flow = run.flow && (await getFlow(db, run.flow.flowId));
  const target = await getSession(db, run.sessionKey);
  return settle(parts, request, { run, target, chosenEnd: flow?.chosenEnd });
}

/**
 * Sends a message into another session. The caller has checked that the target is visible and that
 * `sentBefore` returned undefined.
 */
export async function sendToSession(parts: SendParts, request: SendRequest): Promise<Result<SendOutcome>> {
  const { engine, settings } = parts;
  const { requester, requesterRun: run, target } = request;
  const { db } = engine.store;
  const flow = run?.flow && (await getFlow(db, run.flow.flowId));
  const reader = run === undefined ? "sender" : await replyReader(db, run, flow?.chosenEnd, requester);
  const refused = refuseToPartner(flow, { from: requester.key, to: target.key, reader });
  if (!refused.ok) return refused;
  const isPeer = peerInKey(target.key) !== undefined;
  if (request.notify !== undefined) {
    if (target.key === requester.key) return refuseNotify("a session is not idle while it waits for itself");
    if (target.external) return refuseNotify("the recipient is an outside program, which only has an inbox");
    if (request.announce !== undefined) return refuseNotify("it excludes announce");
    if (isPeer) return refuseNotify("the recipient's gateway does not tell when it is idle");
  }
  if (isPeer && (request.runTimeoutSeconds ?? 0) > 0)
    return fail(
      "invalid_argument",
      "runTimeoutSeconds does not reach the gateway of a peer; nothing was sent",
      {
        hint: "Omit runTimeoutSeconds.",
      },
    );
  const verdict = sendVerdict(settings, target);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  const accepted = await engine.commit(async (unit) => {
    await holdSessions(unit.tx, [requester.key, target.key]);
    // A reset ends the runs of a session, but not a call that a client makes as the session.
    const current = run === undefined ? await getSession(unit.tx, requester.key) : requester;
    if (current !== undefined) return enqueue(parts, { ...request, requester: current }, unit);
    return fail("session_not_found", `session ${requester.key} no longer exists`);
  });
  if (!accepted.ok) return accepted;
  const chosenEnd = request.notify ?? request.announce;
  const outcome = await settle(parts, request, { run: accepted.value.run, target, chosenEnd });
  return ok(accepted.value.isUnclear === true ? { ...outcome, isUnclear: true } : outcome);
}
