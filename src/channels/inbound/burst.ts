// Owns how messages that wait become runs: those that one person wrote in one place within a moment are one
// message, in the order in which they came.
// BU1: the run is accepted, and the messages settled, by one transaction: a crash anywhere loses none and
//      makes none twice (I2, I4).
// BU2: what would be too long for one run becomes several, in order; nothing is dropped.
// BU3: a message that there is no room for is told so to whoever wrote it.
// BU4: the model is told who wrote, unless it is the only one who can have: the one other end of a direct
//      chat's own session, or an owner in a main session.

import { accountOf, type QueueMode } from "../../core/channel-settings.ts";
import { isOwner } from "../../core/inbound-policy.ts";
import { type ChatPlace, chatContext, cleanName, partText, type SaidPart } from "../../core/inbound-text.ts";
import type { ImageBlock } from "../../core/message.ts";
import type { Session } from "../../core/session.ts";
import { isSubagentKey } from "../../core/session-key.ts";
import { agentOf, type Settings } from "../../core/settings.ts";
import type { AcceptRequest } from "../../engine/accept.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Unit } from "../../engine/unit.ts";
import { boundSession } from "../../flows/bindings.ts";
import { INBOUND_DEADLINE } from "../../flows/inbound-files.ts";
import { type Outbound, queueNote } from "../../flows/outbox.ts";
import { acceptByMode } from "../../flows/queue-mode.ts";
import { dropDeadline } from "../../store/deadlines.ts";
import { type InboundRow, pendingOf, settleInbound } from "../../store/inbound.ts";
import { updateSession } from "../../store/sessions.ts";
import { openSessionOf, type Place } from "./place.ts";

/** The longest text of one message. */
export const TEXT_MAX_BYTES = 256 * 1024;
/** The longest of one run: a message with what it answers, and what came with it. */
const RUN_TEXT_MAX_BYTES = 320 * 1024;
/** Base64 characters of the pictures of one run. */
const IMAGES_MAX_CHARS = 24 * 1024 * 1024;

/** A message that waits, as it is kept. JSON. */
export interface WaitingMessage extends SaidPart {
  readonly place: Place;
  readonly images: readonly ImageBlock[];
  /** Of its text: what a change of it is compared with. */
  readonly fold: string;
}

/** What is left of a message that is settled. */
export interface SettledMessage {
  readonly fold: string;
}

export interface BurstParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly outbound: Outbound;
}

interface Waiting {
  readonly row: InboundRow;
  readonly message: WaitingMessage;
}

/** The messages of one run. */
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

function modeOf(settings: Settings, place: Place): QueueMode {
  return accountOf(settings.channels, place)?.inbound.queue ?? "followup";
}

/** Who is not alone in a session, or not its owner where the owner speaks, too, is named to the model. */
function isNamed(settings: Settings, session: Session, { channel, chat, peerId }: Place): boolean {
  if (chat.type !== "direct") return true;
  return session.kind === "main" && !isOwner(settings.owners, channel, { id: peerId });
}

function requestOf(settings: Settings, session: Session, place: Place, group: Group): AcceptRequest {
  const { channel, chat, peerId, peerName } = place;
  const images = group.waiting.flatMap(({ message }) => message.images);
  const shown: ChatPlace = {
    ...{ channel, type: chat.type, name: cleanName(chat.name) },
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
      // A sub-agent is told what it is, and for whom: people write into its thread.
      ...(isSubagentKey(session.key) ? {} : { context: chatContext(shown) }),
    },
    route: place.replyTo,
  };
}

function refusalWords(code: string, error: string): string {
  if (code === "queue_full") {
    return "I can't take this message: too many are waiting here already. Please write again in a while.";
  }
  return `I can't take this message: ${error}.`;
}

/** The session that messages from a place go to: the one that it is bound to, else its own. */
async function sessionFor(parts: BurstParts, unit: Unit, place: Place): Promise<Session> {
  const bound = await boundSession(parts, parts.engine, unit, place.replyTo);
  return bound ?? openSessionOf(unit, parts.settings, place);
}

/** What is kept of a message once it is settled. */
export function settledBody({ fold }: SettledMessage): string {
  const body: SettledMessage = { fold };
  return JSON.stringify(body);
}

/** Makes one run of a group, or tells why there is none. */
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

/** Makes runs of everything that waits under a key. */
export async function joinBurst(parts: BurstParts, unit: Unit, burstKey: string): Promise<void> {
  // The date first: whoever is just keeping a message has moved it, and is waited for. The other way round
  // a message that was not seen yet would lose its date.
  await dropDeadline(unit.tx, INBOUND_DEADLINE, burstKey);
  const rows = await pendingOf(unit.tx, burstKey);
  const waiting = rows.map((row) => ({ row, message: JSON.parse(row.body) as WaitingMessage }));
  for (const group of groupsOf(waiting)) await acceptGroup(parts, unit, group);
}

/** Whether a session's model is shown pictures; a program of its own takes none. */
export function seesImages(settings: Settings, session: Pick<Session, "agentId" | "model">): boolean {
  const agent = agentOf(settings, session);
  if (agent.runtime !== undefined) return false;
  const name = session.model ?? agent.model;
  return settings.providers.some(({ id, models }) =>
    models.some((model) => model.images && `${id}/${model.id}` === name),
  );
}
