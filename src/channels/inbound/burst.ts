// Joins waiting messages to runs: messages of one person in one chat within a short time (a burst) become one
// run, in order.
// BU1: one transaction accepts the run and settles the messages, so a crash neither loses nor duplicates a
//      message (I2, I4).
// Messages that are too long for one run become several runs, in order. If the queue is full, the sender is
// notified.
// BU4: the text for the model contains the sender's name, unless there is only one possible sender: the
//      person in their own direct chat, or an owner in a main session.

import { isOwner } from "../../core/rules/inbound-policy.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import type { Session } from "../../core/shapes/session.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import { accountOf, type QueueMode } from "../../core/shapes/settings/channels.ts";
import { agentOf, type Settings } from "../../core/shapes/settings/settings.ts";
import {
  type ChatDescription,
  chatContext,
  cleanName,
  type MessageText,
  partText,
} from "../../core/text/inbound-text.ts";
import type { Engine } from "../../engine/engine.ts";
import type { AcceptRequest } from "../../engine/run/accept.ts";
import type { Unit } from "../../engine/unit.ts";
import { acceptByMode } from "../../flows/conversation/queue-mode.ts";
import { boundSession } from "../../flows/delivery/bindings.ts";
import { INBOUND_DEADLINE } from "../../flows/delivery/inbound-files.ts";
import { type OutboxListener, queueNote } from "../../flows/delivery/outbox.ts";
import { type InboundRow, pendingOf, settleInbound } from "../../store/queries/channels/inbound.ts";
import { dropDeadline } from "../../store/queries/deadlines.ts";
import { updateSession } from "../../store/queries/sessions/sessions.ts";
import { type ChatContext, openSessionOf } from "./chat-session.ts";

/** Size limit for the text of one message. */
export const TEXT_MAX_BYTES = 256 * 1024;
/** Size limit for one run: its messages, with quotes and notes. */
const RUN_TEXT_MAX_BYTES = 320 * 1024;
/** Limit for the base64 characters of all pictures in one run. */
const IMAGES_MAX_CHARS = 24 * 1024 * 1024;

/** A waiting message, in the format in which it is stored as JSON. */
export interface WaitingMessage extends MessageText {
  readonly place: ChatContext;
  readonly images: readonly ImageBlock[];
  /** Hash of the text, to find out whether an edit has changed it. */
  readonly fold: string;
}

/** The fields that are stored for a settled message. */
export interface SettledMessage {
  readonly fold: string;
}

export interface BurstParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly outbound: OutboxListener;
}

interface Waiting {
  readonly row: InboundRow;
  readonly message: WaitingMessage;
}

/** Messages that become one run. */
interface Group {
  readonly waiting: Waiting[];
  text: string;
  imageChars: number;
}

function groupsOf(waiting: readonly Waiting[]): Group[] {
  const groups: Group[] = [];
  for (const one of waiting) {
    const text = partText(one.message);
    const imageChars = one.message.images.reduce((sum, { data }) => sum + data.length, 0);
    const last = groups.at(-1);
    const joined = last === undefined ? text : `${last.text}\n\n${text}`;
    const fits = Buffer.byteLength(joined) <= RUN_TEXT_MAX_BYTES;
    if (last === undefined || !fits || last.imageChars + imageChars > IMAGES_MAX_CHARS) {
      groups.push({ waiting: [one], text, imageChars });
    } else {
      last.waiting.push(one);
      last.text = joined;
      last.imageChars += imageChars;
    }
  }
  return groups;
}

function modeOf(settings: Settings, place: ChatContext): QueueMode {
  return accountOf(settings.channels, place)?.inbound.queue ?? "followup";
}

/**
 * Returns whether the message starts with the sender's name: always in groups, and in a main session if the
 * sender is not an owner.
 */
function isNamed(settings: Settings, session: Session, { channel, chat, peerId }: ChatContext): boolean {
  if (chat.type !== "direct") return true;
  return session.kind === "main" && !isOwner(settings.owners, channel, { id: peerId });
}

function requestOf(settings: Settings, session: Session, place: ChatContext, group: Group): AcceptRequest {
  const { channel, chat, peerId, peerName } = place;
  const images = group.waiting.flatMap(({ message }) => message.images);
  const shown: ChatDescription = {
    channel,
    type: chat.type,
    name: cleanName(chat.name),
    thread: chat.thread === undefined ? undefined : { ...chat.thread, name: cleanName(chat.thread.name) },
  };
  return {
    sessionKey: session.key,
    input: {
      text: group.text,
      sender: `${channel}:${peerId}`,
      ...(images.length === 0 ? {} : { images }),
      ...(isNamed(settings, session, place)
        ? { senderName: peerName ?? cleanName(peerId) ?? "somebody" }
        : {}),
      // A sub-agent has a different context, because people write in its thread.
      ...(isSubagentKey(session.key) ? {} : { context: chatContext(shown) }),
    },
    route: place.replyTo,
  };
}

function refusalWords(code: string, error: string): string {
  if (code === "queue_full") {
    return "I can't take this message: too many are waiting already. Please write again later.";
  }
  return `I can't take this message: ${error}.`;
}

/** Returns the session for messages of a chat: the session that it is bound to, or its own. */
async function sessionFor(parts: BurstParts, unit: Unit, place: ChatContext): Promise<Session> {
  const bound = await boundSession(parts, parts.engine, unit, place.replyTo);
  return bound ?? openSessionOf(unit, parts.settings, place);
}

/** Returns the body that is stored for a settled message. */
export function settledBody({ fold }: SettledMessage): string {
  const body: SettledMessage = { fold };
  return JSON.stringify(body);
}

/** Accepts one run for a group of messages. If that fails, tells the sender the reason. */
async function acceptGroup(parts: BurstParts, unit: Unit, group: Group): Promise<void> {
  const last = group.waiting.at(-1);
  if (last === undefined) return;
  const { place } = last.message;
  const session = await sessionFor(parts, unit, place);
  const request = requestOf(parts.settings, session, place, group);
  const accepted = await acceptByMode(parts.engine, unit, request, modeOf(parts.settings, place));
  for (const { row, message } of group.waiting) {
    const runId = accepted.ok ? { runId: accepted.value.run.runId } : {};
    const state = accepted.ok ? "done" : "refused";
    await settleInbound(unit.tx, row.seq, { state, body: settledBody(message), ...runId });
  }
  if (accepted.ok) {
    await updateSession(unit.tx, session.key, { lastRoute: place.replyTo });
    return;
  }
  const text = refusalWords(accepted.code, accepted.error);
  await queueNote(parts, unit, { sessionKey: session.key, route: place.replyTo, text, about: "trouble" });
}

/** Joins all waiting messages with this key to runs. */
export async function joinBurst(parts: BurstParts, unit: Unit, burstKey: string): Promise<void> {
  // Delete the deadline first. This waits for a concurrent transaction that stores a message and moves the
  // deadline. In the other order, that message would lose its deadline.
  await dropDeadline(unit.tx, INBOUND_DEADLINE, burstKey);
  const rows = await pendingOf(unit.tx, burstKey);
  const waiting = rows.map((row) => ({ row, message: JSON.parse(row.body) as WaitingMessage }));
  for (const group of groupsOf(waiting)) await acceptGroup(parts, unit, group);
}

/** Returns whether the session's model accepts pictures. An ACP agent accepts none. */
export function seesImages(settings: Settings, session: Pick<Session, "agentId" | "model">): boolean {
  const agent = agentOf(settings, session);
  if (agent.runtime !== undefined) return false;
  const name = session.model ?? agent.model;
  return settings.providers.some(({ id, models }) =>
    models.some((model) => model.images && `${id}/${model.id}` === name),
  );
}
