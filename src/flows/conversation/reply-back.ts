// Creates the successors of a run in a conversation: reply turns, the announce step, and the notice to a
// sender (notice.ts). All of it is written in the transaction that ends the run, so a crash neither loses nor
// repeats a step (I4).
// RB2: the sender gets an outcome in exactly one way: as the result of its wait, as a reply turn, or as a
// notice.
// RB3: the sender may choose another end (`Flow.chosenEnd`): no announcement, the last reply as a notice
// instead, an announcement of the first reply alone, or a notice of idleness (idle.ts). RB2 holds unless the
// announcement is accepted, or the notice is awaited.
// The target's agent writes the announcement for the target's channel. Silence is not delivered; any other
// text becomes one outbox row (I5).

import { mayAccess, sessionViewer } from "../../access/access.ts";
import { spawnChainOf } from "../../access/spawn-chain.ts";
import { optional } from "../../core/optional.ts";
import { isInInbox } from "../../core/rules/receipt.ts";
import { sendVerdict } from "../../core/rules/send-policy.ts";
import {
  announceContext,
  decideNext,
  isSilent,
  type NextStep,
  replyContext,
  replyTurnOwner,
} from "../../core/rules/turn-rules.ts";
import type { Result } from "../../core/shapes/errors.ts";
import type { FlowRef, Run, RunInput } from "../../core/shapes/run.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Accepted } from "../../engine/run/accept.ts";
import type { AbortReason, Acceptor } from "../../engine/run/finish.ts";
import { endFlow, noteReply } from "../../store/queries/chains/flows.ts";
import { activeRunsOfFlow, runsOfFlow } from "../../store/queries/runs/runs.ts";
import { isAnswered, waitsOfCall } from "../../store/queries/runs/waits.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { queueDelivery } from "../delivery/outbox.ts";
import { publishFlow, publishFlowEnd } from "../flow-events.ts";
import { endUnanswered, inboxLoss, isAwaited, lossText } from "./inbox-receipts.ts";
import { notifySender, type Sent } from "./notice.ts";
import { announceRoute, partyOf, provenanceFrom } from "./party.ts";

interface FlowContext extends Sent {
  readonly acceptor: Acceptor;
  /** Absent if the session was deleted in the meantime. */
  readonly requester: Session | undefined;
  readonly target: Session | undefined;
}

/** A conversation of which a run has ended, if given. */
type Ended = Omit<Sent, "run"> & Partial<Pick<Sent, "run">>;

/** Accepts a turn of the session `to`, and publishes the step with the latest reply. */
async function acceptTurn(
  { acceptor, unit, flow, run, requester }: FlowContext,
  step: Omit<FlowRef, "flowId">,
  { from, to }: { readonly from: Session; readonly to: Session },
  input: Pick<RunInput, "text" | "context">,
): Promise<Result<Accepted>> {
  const { flowId, turnsMax, requesterKey, latestReply: text = "" } = flow;
  const chain = { chainId: run.chainId, hop: run.hop };
  const accepted = await acceptor.acceptIn(unit, {
    sessionKey: to.key,
    input: { ...input, provenance: provenanceFrom(from, chain) },
    chain,
    flow: { flowId, ...step },
    successor: true,
  });
  if (!accepted.ok) return accepted;
  const { runId } = accepted.value.run;
  const ends = { from: requester === undefined ? requesterKey : from.key, to: to.key };
  publishFlow(unit, { flowId, runId, ...step, ...ends, turnsMax, text });
  return accepted;
}

/**
 * Accepts the announce turn. If there is no turn, returns the reason: `limit` means that the chain may have
 * no more runs.
 */
async function announceTurn(context: FlowContext): Promise<"accepted" | "limit" | "no_route" | "refused"> {
  const { settings, flow, run, requester, target } = context;
  if (target === undefined || announceRoute(target) === undefined) return "no_route";
  const asker = requester ?? target;
  const step = { step: "announce", turn: run.flow?.turn ?? 1 } as const;
  const accepted = await acceptTurn(
    context,
    step,
    { from: asker, to: target },
    {
      text: "Agent-to-agent announce step.",
      context: announceContext({
        self: partyOf(settings, target, target),
        requester: partyOf(settings, asker, target),
        request: flow.requestText,
        round1Reply: flow.round1Reply ?? "",
        latestReply: flow.latestReply ?? "",
      }),
    },
  );
  if (accepted.ok) return "accepted";
  return accepted.code === "chain_limit" ? "limit" : "refused";
}

/** Queues an announcement for the target's chat. The transcript already contains the text. */
async function deliverAnnouncement(context: FlowContext, text: string, runId?: string): Promise<void> {
  const { target: session, unit } = context;
  const route = session && announceRoute(session);
  if (session === undefined || route === undefined) return;
  await queueDelivery(context, unit, { session, route, text, kind: "announce", ...optional({ runId }) });
}

/**
 * Announces without a model call if a chain limit is reached (I8): writes a transcript row and an outbox row.
 */
async function announceByRuntime(context: FlowContext): Promise<void> {
  const { acceptor, unit, settings, flow, requester, target } = context;
  if (target === undefined) return;
  const asker = partyOf(settings, requester ?? target, target).key;
  const text = `Conversation with ${asker} ended at its limit. Latest reply: ${flow.latestReply ?? ""}`;
  const input = { text, injected: true };
  await acceptor.acceptIn(unit, { sessionKey: target.key, kind: "append", input, successor: true });
  await deliverAnnouncement(context, text);
}

async function close(context: FlowContext, reason: string): Promise<void> {
  const { unit, flow, run } = context;
  if (!(await endFlow(unit.tx, flow.flowId, reason, unit.now))) return;
  publishFlowEnd(unit, flow, { runId: run.runId, turn: run.flow?.turn, reason });
}

/**
 * Accepts the next reply turn: its input is the other party's last text. Returns false if the turn was
 * refused.
 */
async function acceptReplyTurn(context: FlowContext, turn: number): Promise<boolean> {
  const { settings, flow, requester, target } = context;
  if (requester === undefined || target === undefined) return false;
  // The settings, and with them the rights of a session, may have changed since the last turn (I9).
  const viewer = sessionViewer(await spawnChainOf(context.unit.tx, requester), settings);
  if (!(await mayAccess({ db: context.unit.tx, settings }, viewer, "send", target))) return false;
  const [speaker, other] = replyTurnOwner(turn) === "requester" ? [requester, target] : [target, requester];
  if (!sendVerdict(settings, speaker).allowed) return false;
  const accepted = await acceptTurn(
    context,
    { step: "reply", turn },
    { from: other, to: speaker },
    {
      text: flow.latestReply ?? "",
      context: replyContext({
        self: partyOf(settings, speaker, speaker),
        other: partyOf(settings, other, speaker),
        turn,
        turnsMax: flow.turnsMax,
      }),
    },
  );
  return accepted.ok;
}

/**
 * Executes the next step. Returns true if this run's text needs no notice: a reply turn carries it to the
 * other party, or the sender wanted it to be announced only.
 */
async function takeStep(context: FlowContext, next: NextStep): Promise<boolean> {
  if (next.next === "reply" && (await acceptReplyTurn(context, next.turn))) return true;
  const { flow, run } = context;
  const { chosenEnd: way } = flow;
  const isKept = way === "none" || way === "parent";
  const outcome = next.next === "end" ? next.reason : isKept ? "kept" : await announceTurn(context);
  if (outcome === "limit") await announceByRuntime(context);
  if (outcome !== "accepted") await close(context, outcome === "limit" ? "announced_by_runtime" : outcome);
  const isReply = run.state === "ok" && !isSilent(run.reply ?? "");
  const isLastWord = isReply && run.flow?.step === "reply" && run.sessionKey === flow.targetKey;
  const first = way === "parent" && isLastWord && outcome === "kept" && (await round1Of(context));
  if (first) {
    const last = { ...flow, ...optional({ round1Reply: flow.latestReply }) };
    // The sender knows the message by the id of its first run.
    await notifySender({ ...context, flow: last, run: { ...run, runId: first.runId } });
  }
  return way === "channel" && (outcome === "accepted" || outcome === "limit");
}

/** Returns the run of the message that began the conversation. */
async function round1Of({ unit, flow, run }: Ended): Promise<Run | undefined> {
  if (run?.flow?.step === "round1") return run;
  const runs = await runsOfFlow(unit.tx, flow.flowId);
  return runs.find((one) => one.flow?.step === "round1");
}

/**
 * Notifies a sender that wanted only an announcement, which has failed, unless it has waited for the reply.
 */
async function announcementFailed(ended: Ended, why: string): Promise<void> {
  const first = ended.flow.chosenEnd === "channel" ? await round1Of(ended) : undefined;
  if (first === undefined) return;
  const waits = first.callId === undefined ? [] : await waitsOfCall(ended.unit.tx, first.callId);
  if (!waits.some(isAnswered)) await notifySender({ ...ended, run: first }, { unannounced: why });
}

/** Called before the conversation ends because its target is reset or deleted. */
export async function conversationTargetLost(ended: Omit<Sent, "run">, reason: AbortReason): Promise<void> {
  if (ended.flow.chosenEnd !== "channel") return;
  const active = await activeRunsOfFlow(ended.unit.tx, ended.flow.flowId);
  if (active.some(({ flow }) => flow?.step === "announce")) await announcementFailed(ended, reason);
}

async function flowRunEnded(context: FlowContext, answered: boolean): Promise<void> {
  const { unit, flow, run } = context;
  if (isInInbox(run)) {
    // The reader of an inbox answers with its own send, so there is no reply turn.
    if (!(await isAwaited(unit.tx, run, unit.now))) await close(context, "inbox");
    return;
  }
  // The flow stays open until the target is idle.
  if (flow.chosenEnd === "idle") return;
  const step = run.flow?.step ?? "round1";
  const words = run.state === "ok" && !isSilent(run.reply ?? "") ? (run.reply ?? "") : "";
  if (step === "announce") {
    if (words !== "" && flow.open) await deliverAnnouncement(context, words, run.runId);
    await close(context, words === "" ? (run.code ?? "silent") : "announced");
    if (run.state !== "ok" && flow.open) await announcementFailed(context, run.code ?? "run_failed");
    return;
  }
  if (words !== "") await noteReply(unit.tx, flow.flowId, words, step === "round1");
  const latest: FlowContext =
    words === ""
      ? context
      : { ...context, flow: { ...flow, latestReply: words, round1Reply: flow.round1Reply ?? words } };
  const next: NextStep = flow.open
    ? decideNext({ step, turn: run.flow?.turn ?? 1, turnsMax: flow.turnsMax, end: run })
    : { next: "end", reason: flow.endReason ?? "ended" };
  const carried = await takeStep(latest, next);
  if (step === "round1" && !answered && !carried) await notifySender(latest);
}

type EndedRun = Omit<FlowContext, "requester" | "target">;

/** Called when a run of a conversation has ended. `answered`: a caller waited for it and got the outcome. */
export async function conversationRunEnded(ended: EndedRun, answered: boolean): Promise<void> {
  const requester = await getSession(ended.unit.tx, ended.flow.requesterKey);
  const target = await getSession(ended.unit.tx, ended.flow.targetKey);
  await flowRunEnded({ ...ended, requester, target }, answered);
}

/**
 * Called if the client that waited for the first reply has disconnected. Writes the outcome, if there is one,
 * into the client's session.
 */
export async function conversationAnswerLost(ended: EndedRun): Promise<void> {
  const { unit, run, flow } = ended;
  // Once a message in an inbox is answered, its flow is no longer open.
  if (isInInbox(run) && flow.open) return endUnanswered(unit, run);
  const loss = inboxLoss(flow.endReason);
  await notifySender(ended, { expired: loss && lossText(loss) });
}
