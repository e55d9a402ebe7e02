// Accepts messages of people and programs to a session, and delivers each answer to the chat that the message
// came from.
// Decides on send policy, route and acceptance for `chat.send`, `agent` and the terminal. Only these messages
// change a session's route (I10).
// The answer of a run that came from a channel is queued by the transaction that ends the run (I4, I5). It
// goes to the route of the run's first message, so nobody gets an answer that was meant for another person.
// DR2: silence is not delivered; a failed run reports its text so far and its error in one sentence, once for
//      all messages that it has read; an aborted run sends nothing.
// DR3: the send policy is checked for the chat that gets the answer. If it denies, the outbox row is
// `skipped`.
// The queue mode of a channel account decides how a message from that channel is accepted. In every mode, the
// message gets a position in the lane (I2, I3).
// QM2: if the mode ends the current run, the transaction that accepts the message also ends that run, but
//      only if the message is new.

import { optional } from "../../core/optional.ts";
import { isOverBudget } from "../../core/rules/budget.ts";
import { interruptedBy, maySteer } from "../../core/rules/queue-mode.ts";
import { sendVerdict } from "../../core/rules/send-policy.ts";
import { fail, ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import { WEBCHAT } from "../../core/shapes/route.ts";
import type { AnswerFormat, ClientResult, ClientTools, Run } from "../../core/shapes/run.ts";
import type { Route, Session } from "../../core/shapes/session.ts";
import { peerInKey } from "../../core/shapes/session-key.ts";
import { checkFormat } from "../../core/shapes/settings/answer-format.ts";
import type { QueueMode } from "../../core/shapes/settings/channels.ts";
import { modelOf, type Settings } from "../../core/shapes/settings/settings.ts";
import type { Engine } from "../../engine/engine.ts";
import { openPeerWait, type PeerWait } from "../../engine/lanes/waits.ts";
import type { Accepted, AcceptRequest } from "../../engine/run/accept.ts";
import type { Acceptor } from "../../engine/run/finish.ts";
import type { Unit } from "../../engine/unit.ts";
import { holdForAbort, holdSessions } from "../../store/locks.ts";
import { activeRuns, getRun } from "../../store/queries/runs/runs.ts";
import { getSession, updateSession } from "../../store/queries/sessions/sessions.ts";
import { answerTexts } from "../delivery/answer-texts.ts";
import { leaveVerdict } from "../delivery/destination.ts";
import { queueDelivery } from "../delivery/outbox.ts";
import type { JobParts } from "../job/end.ts";

/** Facts about a message of a peer's agent. */
export interface PeerOrigin {
  /** The key of the sending session, with the name of the peer. */
  readonly sourceSessionKey: string;
  /** Set if the sending run waits for the answer. */
  readonly wait?: PeerWait;
}

export interface DirectMessage {
  readonly session: Session;
  readonly text: string;
  readonly images?: readonly ImageBlock[];
  readonly senderName?: string;
  /** See `RunInput.guest`. Default false. */
  readonly guest?: boolean;
  /** See `RunInput.labels`. */
  readonly labels?: Labels;
  /** Thinking level of this run only. */
  readonly thinking?: string;
  /** Format of the final answer of this run. Refused if the session's model can't guarantee it. */
  readonly format?: AnswerFormat;
  readonly clientTools?: ClientTools;
  readonly results?: readonly ClientResult[];
  readonly background?: boolean;
  /** True if the client can't fetch the response later. Default false. */
  readonly forgotten?: boolean;
  /** See `RunInput.compact`. Default false. */
  readonly compact?: boolean;
  /** Appended to the system prompt, for this run only. */
  readonly extraContext?: string;
  /** The idempotency key. Default: a new id. */
  readonly runId?: string;
  /** The caller that chose the idempotency key. */
  readonly askedBy?: string;
  /** Handling of the message during a run. Default: followup. */
  readonly mode?: QueueMode;
  /** Aborts the run this long after it started. Default 0: no limit. */
  readonly timeoutMs?: number;
  /** Number of sends that led to this message in other gateways. Default 0. */
  readonly hop?: number;
  /** The chain of the sends that led to this message. Default: a new one. */
  readonly chainId?: string;
  /** See `AcceptRequest.tokensLeft`. */
  readonly tokensLeft?: number;
  /** The sender's own id of the message, which makes it one run (A2 of accept.ts). */
  readonly callId?: string;
  /** A peer whose agent sends the message. */
  readonly peer?: PeerOrigin;
  /**
   * The chat in which the writer reads the answer; it becomes the session's route. If absent, the route stays
   * as it is.
   */
  readonly route?: Route;
  /** An additional destination for the answer, besides the transcript. The session's route stays as it is. */
  readonly deliverTo?: Route;
  /** Called first in the accepting transaction: creates the session if this is its first message. */
  readonly before?: (unit: Unit) => Promise<Result<void>>;
  /**
   * Called in the accepting transaction to store the answer, so that a repeated request gets the same answer
   * after a crash.
   */
  readonly remember?: (unit: Unit, accepted: Accepted) => Promise<void>;
}

/** Accepts a message of a person or a program. */
export async function sendDirect(
  parts: { engine: Engine; settings: Settings },
  message: DirectMessage,
): Promise<Result<Accepted>> {
  const { engine } = parts;
  const open = engine.accepting();
  if (!open.ok) return open;
  if (peerInKey(message.session.key) !== undefined)
    return fail("send_denied", "only agents can write to a session of a peer", {
      hint: "Write to your own agent, and ask it to pass the message on.",
    });
  const verdict = sendVerdict(parts.settings, message.session);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  const {
    text,
    images,
    senderName,
    thinking,
    format,
    extraContext: context,
    runId,
    askedBy,
    timeoutMs,
  } = message;
  const able = checkFormat(parts.settings, modelOf(parts.settings, message.session), format);
  if (!able.ok) return able;
  const guest = message.guest || undefined;
  const { callId, hop, peer, compact, tokensLeft, clientTools, results } = message;
  const { background, forgotten, labels } = message;
  const { deliverTo, route: place = deliverTo } = message;
  return engine.commit(async (unit): Promise<Result<Accepted>> => {
    if (deliverTo !== undefined) {
      const leaves = await leaveVerdict(unit.tx, parts.settings, message.session, deliverTo);
      if (!leaves.allowed) return fail("send_denied", leaves.error);
    }
    const ready = await message.before?.(unit);
    if (ready?.ok === false) return ready;
    const chain = hop === undefined ? undefined : { chainId: message.chainId ?? unit.newOrderedId(), hop };
    // The gateway of a peer decides on none of the fields of the provenance alone (I11).
    const sent = { kind: "inter_session", sourceChannel: "unknown", sourceTool: "sessions_send" } as const;
    const provenance = peer && chain && { ...sent, sourceSessionKey: peer.sourceSessionKey, ...chain };

    const request = {
      sessionKey: message.session.key,
      input: {
        text,
        ...optional({ images, senderName, guest, thinking, format, compact, context, provenance }),
        ...optional({ clientTools, results, background, labels }),
      },
      ...optional({ runId, askedBy, timeoutMs, route: place, callId, chain, tokensLeft }),
      ...optional({ forgottenAt: forgotten === true ? unit.now : undefined }),
    };
    const accepted = await acceptByMode(engine, unit, request, message.mode ?? "followup");
    if (!accepted.ok) return accepted;
    if (peer?.wait !== undefined && accepted.value.fresh) {
      const opened = await openPeerWait(unit, peer.sourceSessionKey, accepted.value.run, peer.wait);
      if (!opened.ok) return opened;
    }
    if (message.route !== undefined && accepted.value.fresh) {
      await updateSession(unit.tx, message.session.key, { lastRoute: message.route });
    }
    await message.remember?.(unit, accepted.value);
    return accepted;
  });
}

/**
 * Accepts a message according to the queue mode of its channel account. On a failure the whole transaction is
 * rolled back.
 */
export async function acceptByMode(
  engine: Acceptor,
  unit: Unit,
  request: AcceptRequest,
  mode: QueueMode,
): Promise<Result<Accepted>> {
  switch (mode) {
    case "followup":
      return engine.acceptIn(unit, request);
    case "steer":
      return steer(engine, unit, request);
    case "interrupt":
      return interrupt(engine, unit, request);
  }
}

/**
 * Marks the message as steering: the current run reads it between two steps. If the run ends first, the
 * message becomes the next run.
 */
async function steer(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route, input } = request;
  await holdSessions(unit.tx, [sessionKey]);
  if (!maySteer(await activeRuns(unit.tx, sessionKey), route)) return engine.acceptIn(unit, request);
  return engine.acceptIn(unit, { ...request, input: { ...input, steer: true } });
}

async function interrupt(engine: Acceptor, unit: Unit, request: AcceptRequest): Promise<Result<Accepted>> {
  const { sessionKey, route } = request;
  // Lock all sessions that the abort affects before the lane, because every transaction locks in this order.
  await holdForAbort(unit.tx, sessionKey);
  const run = interruptedBy(await activeRuns(unit.tx, sessionKey), route);
  const accepted = await engine.acceptIn(unit, request);
  if (run === undefined || !accepted.ok || !accepted.value.fresh) return accepted;
  await engine.abortIn(unit, { sessionKey, runId: run.runId });
  return ok({ ...accepted.value, queuedBehind: accepted.value.queuedBehind - 1 });
}

/**
 * Returns whether people are told about the failure of a run. If the run was started to report a sub-agent's
 * result and could not start, the result is reported in another way, so its failure need not be reported.
 */
function reportsFailure(run: Run): boolean {
  return run.input.provenance === undefined || (run.startedAt !== undefined && !isOverBudget(run));
}

/**
 * Delivers the answer of an ended run that came from a channel and is not part of a conversation between
 * sessions.
 */
export async function directRunEnded(parts: Pick<JobParts, "settings">, unit: Unit, run: Run): Promise<void> {
  const { route, flow, kind, runId, state } = run;
  if (route === undefined || route.channel === WEBCHAT || flow !== undefined || kind !== "turn") return;
  const origin = run.input.provenance?.kind;
  // Their replies go elsewhere (delivery/replies.ts).
  if (origin === "hook" || origin === "node") return;
  if (state === "aborted" || (state !== "ok" && !reportsFailure(run))) return;
  const { takenBy } = run.input;
  const reader = takenBy === undefined ? undefined : await getRun(unit.tx, takenBy);
  // The run that read this run's message reports its failure to the same chat, itself or by its job.
  if (reader !== undefined && (reader.flow !== undefined || reportsFailure(reader))) return;
  const session = await getSession(unit.tx, run.sessionKey);
  if (session === undefined) return;
  // The answer goes to the chat of the question, even if other chats have written since. If an operator chose
  // the chat, all send rules apply.
  const asked = run.input.sender === undefined ? session : { ...session, lastRoute: route };
  for (const text of await answerTexts(parts.settings, unit, run, { session, route }))
    await queueDelivery(parts, unit, { session: asked, route, text, kind: "send", runId, isAnswer: true });
}
