// Stores each message of a chat once, or runs the command in it, and joins the messages to runs.
// Messages of one person in one chat within a short time (a burst) become one run, in order. The end of the
// burst is a stored deadline, so that a crash does not lose it, and is at most five pauses after the first
// message. Messages that are too long for one run become several runs. If the queue is full, the sender is
// notified. An edit of a waiting message changes that message; a later edit becomes a separate message that
// is marked as an edit.
// KE3: a command runs in the transaction that stores its message. Before the command runs, waiting messages
//      become a run.
// BU1: one transaction accepts the run and settles the messages, so a crash neither loses nor duplicates a
//      message (I2, I4).
// BU4: the text for the model contains the sender's name, unless there is only one possible sender: the
//      person in their own direct chat, or an owner in a main session.
// BU5: a message of several parts, like an album, is stored with the id of each part. So an edit of any part
//      counts as an edit, and never replaces the text of the other parts.

import { createHash } from "node:crypto";
import { optional } from "../../core/optional.ts";
import type { CommandCall, Controls } from "../../core/rules/command.ts";
import { isOwner } from "../../core/rules/inbound-policy.ts";
import { joinLabels, labelFrom } from "../../core/rules/labels/labels.ts";
import { isOutsider, passedOnSources } from "../../core/rules/labels/sources.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { ImageBlock } from "../../core/shapes/message.ts";
import type { Session } from "../../core/shapes/session.ts";
import { isSubagentKey } from "../../core/shapes/session-key.ts";
import { accountOf } from "../../core/shapes/settings/channels.ts";
import { agentOf, type Settings } from "../../core/shapes/settings/settings.ts";
import {
  type ChatDescription,
  chatContext,
  cleanName,
  cleanText,
  cutQuoted,
  cutText,
  foldText,
  type MessageText,
  partText,
} from "../../core/text/inbound-text.ts";
import type { Engine } from "../../engine/engine.ts";
import type { AcceptRequest } from "../../engine/run/accept.ts";
import type { Unit } from "../../engine/unit.ts";
import { acceptByMode } from "../../flows/conversation/direct.ts";
import { boundSession } from "../../flows/delivery/bindings.ts";
import { INBOUND_DEADLINE, keepInboundFiles } from "../../flows/delivery/inbound-files.ts";
import { queueNote } from "../../flows/delivery/outbox.ts";
import {
  burstOf,
  type InboundRow,
  insertInbound,
  otherVersions,
  pendingOf,
  rewriteInbound,
  settleInbound,
} from "../../store/queries/channels/inbound.ts";
import { dropDeadline } from "../../store/queries/deadlines.ts";
import { noteOutsideFile } from "../../store/queries/labels.ts";
import { updateSession } from "../../store/queries/sessions/sessions.ts";
import type { CommandParts } from "../commands/context.ts";
import { performCommand } from "../commands.ts";
import type { AdmittedMessage } from "./admission.ts";
import { type ChatContext, keyOfChat, openSessionOf } from "./chat-session.ts";
import type { KeptMedia } from "./media.ts";

/** Size limit for the text of one message. */
const TEXT_MAX_BYTES = 256 * 1024;
/** Size limit for the text of one run: its messages, with quotes and notes. */
const RUN_TEXT_MAX_BYTES = 320 * 1024;
/** Size limit for all pictures of one run, in characters of base64. */
const IMAGES_MAX_CHARS = 24 * 1024 * 1024;
/** A burst ends after this many times its pause, even if messages still arrive. */
const PAUSES_MAX = 5;
/** Maximum number of messages in one burst, and of their characters. */
const BURST_MAX = 50;
const BURST_MAX_CHARS = 16 * 1024 * 1024;

/** A message that waits for the end of its burst, as it is stored in JSON. */
interface WaitingMessage extends MessageText {
  readonly place: ChatContext;
  readonly images: readonly ImageBlock[];
  /** Hash of the text, or of the text of the first part. It shows whether an edit has changed the text. */
  readonly fold: string;
  /** True if the text is that of several parts. */
  readonly hasParts?: boolean | undefined;
  /** Sources of texts of others in the message. Absent: there are none. */
  readonly sources?: readonly string[] | undefined;
}

/** The part of a message that stays stored after it is settled (it became part of a run, or was ignored). */
type SettledMessage = Pick<WaitingMessage, "fold">;

export interface BurstParts {
  readonly engine: Engine;
  readonly settings: Settings;
}

interface Waiting {
  readonly row: InboundRow;
  readonly message: WaitingMessage;
}

interface Group {
  readonly waiting: Waiting[];
  text: string;
  imageChars: number;
}

function foldOf(text: string): string {
  return createHash("sha256").update(foldText(text)).digest("hex").slice(0, 32);
}

/** Returns the JSON text that is stored for a settled message. */
function settledBody({ fold }: SettledMessage): string {
  return JSON.stringify({ fold });
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

function requestOf(
  settings: Settings,
  session: Session,
  { place, group, since }: { readonly place: ChatContext; readonly group: Group; readonly since: number },
): AcceptRequest {
  const { channel, chat, peerId, peerName } = place;
  const images = group.waiting.flatMap(({ message }) => message.images);
  const sources = group.waiting.flatMap(({ message }) => message.sources ?? []);
  const passedOn = sources.map((source) => labelFrom("outside", source, since));
  const shown: ChatDescription = {
    channel,
    type: chat.type,
    name: cleanName(chat.name),
    thread: chat.thread === undefined ? undefined : { ...chat.thread, name: cleanName(chat.thread.name) },
  };
  const sender = `${channel}:${peerId}`;
  const isFromOwner = isOwner(settings.owners, channel, { id: peerId });
  // In groups, and in a main session if the sender is not an owner, the name is put before the text.
  const isNamed = chat.type !== "direct" || (session.kind === "main" && !isFromOwner);
  const isFromOutside = isOutsider(settings, { isOwner: isFromOwner, isDirect: chat.type === "direct" });
  return {
    sessionKey: session.key,
    input: {
      text: group.text,
      sender,
      ...(images.length === 0 ? {} : { images }),
      // ME1 of core/rules/prompt/memory.ts decides about the main session.
      ...(!isFromOwner && session.kind !== "main" ? { guest: true } : {}),
      ...(isFromOutside ? { outside: `guest ${sender}` } : {}),
      ...optional({ labels: passedOn.reduce<Labels | undefined>(joinLabels, undefined) }),
      ...(isNamed ? { senderName: peerName ?? cleanName(peerId) ?? "somebody" } : {}),
      // A sub-agent in whose thread people write gets another context.
      ...(isSubagentKey(session.key) ? {} : { context: chatContext(shown) }),
    },
    route: place.replyTo,
  };
}

/** Accepts one run for a group of messages. If that fails, tells the sender the reason. */
async function acceptGroup(parts: BurstParts, unit: Unit, group: Group): Promise<void> {
  const last = group.waiting.at(-1);
  if (last === undefined) return;
  const { place } = last.message;
  const bound = await boundSession(parts, unit, place.replyTo);
  const session = bound ?? (await openSessionOf(unit, parts.settings, place));
  const request = requestOf(parts.settings, session, { place, group, since: unit.now });
  const mode = accountOf(parts.settings.channels, place)?.inbound.queue ?? "followup";
  const accepted = await acceptByMode(parts.engine, unit, request, mode);
  for (const { row, message } of group.waiting) {
    const runId = accepted.ok ? { runId: accepted.value.run.runId } : {};
    const state = accepted.ok ? "done" : "refused";
    await settleInbound(unit.tx, row.seq, { state, body: settledBody(message), ...runId });
  }
  if (accepted.ok) {
    await updateSession(unit.tx, session.key, { lastRoute: place.replyTo });
    return;
  }
  const text =
    accepted.code === "queue_full"
      ? "I can't take this message: too many are waiting already. Please write again later."
      : `I can't take this message: ${accepted.error}.`;
  await queueNote(unit, { sessionKey: session.key, route: place.replyTo, text, about: "trouble" });
}

/** Joins the waiting messages of this burst to runs. */
export async function joinBurst(parts: BurstParts, unit: Unit, burstKey: string): Promise<void> {
  // Delete the deadline first: this waits for a concurrent transaction that stores a message and moves the
  // deadline. If the messages were read first, that message would be missed and lose its deadline.
  await dropDeadline(unit.tx, INBOUND_DEADLINE, burstKey);
  const rows = await pendingOf(unit.tx, burstKey);
  const waiting = rows.map((row) => ({ row, message: JSON.parse(row.body) as WaitingMessage }));
  for (const group of groupsOf(waiting)) await acceptGroup(parts, unit, group);
}

function insert(unit: Unit, { id, burstKey }: AdmittedMessage, body: object): Promise<number | undefined> {
  const row = { ...id, burstKey, body: JSON.stringify(body), receivedAt: unit.now };
  return insertInbound(unit.tx, row);
}

const keptText = (text: string): string => cutText(cleanText(text), TEXT_MAX_BYTES);

/** Stores the id of a part of a message, and what an edit of the part is compared with. */
async function keepPart(
  unit: Unit,
  admitted: AdmittedMessage,
  { messageId, text }: { readonly messageId: string; readonly text: string },
): Promise<void> {
  const body = { fold: foldOf(keptText(text)) };
  const seq = await insert(unit, { ...admitted, id: { ...admitted.id, messageId } }, body);
  if (seq !== undefined) await settleInbound(unit.tx, seq, { state: "ignored", body: settledBody(body) });
}

/**
 * Stores a message. Returns false if nothing new was stored, so that the caller deletes the message's files.
 */
export async function keepMessage(
  parts: CommandParts,
  unit: Unit,
  admitted: AdmittedMessage,
  came: { readonly media: KeptMedia; readonly sessionKey: string },
): Promise<boolean> {
  const { account, message, place, burstKey } = admitted;
  const { media, sessionKey } = came;
  const { parts: [first = message, ...others] = [] } = message;
  const sources = passedOnSources(parts.settings, message);
  const said: WaitingMessage = {
    place,
    text: keptText(message.text),
    images: media.images,
    notes: media.notes,
    fold: foldOf(keptText(first.text)),
    ...(others.length === 0 ? {} : { hasParts: true }),
    ...(message.quoted === undefined ? {} : { quoted: cutQuoted(message.quoted) }),
    ...(sources.length === 0 ? {} : { sources }),
  };
  const seq = await insert(unit, admitted, said);
  if (seq === undefined) return false;
  if (!(await isNews(unit, admitted, seq, said))) return false;
  for (const part of others) await keepPart(unit, admitted, part);
  const { folder } = media;
  if (folder !== undefined) {
    await keepInboundFiles(unit, folder.id, sessionKey);
    const isDirect = place.chat.type === "direct";
    if (sources.length > 0 || isOutsider(parts.settings, { isOwner: admitted.isOwner, isDirect }))
      await noteOutsideFile(unit.tx, { path: folder.path, notedAt: unit.now });
  }
  const { debounceMs } = account.inbound;
  const { count, chars, firstAt = unit.now } = await burstOf(unit.tx, burstKey);
  if (debounceMs === 0 || count >= BURST_MAX || chars >= BURST_MAX_CHARS) {
    await joinBurst(parts, unit, burstKey);
    return true;
  }
  const dueAt = Math.min(unit.now + debounceMs, firstAt + PAUSES_MAX * debounceMs);
  await unit.setDeadline({ kind: INBOUND_DEADLINE, key: burstKey, dueAt });
  return true;
}

/**
 * Returns whether a message, or a version of it, must be handled as a new message. An edit of a waiting
 * message only changes that message, unless it has parts. An edit with the same text is ignored, and so is an
 * older version that arrives late.
 */
async function isNews(
  unit: Unit,
  { id }: AdmittedMessage,
  seq: number,
  said: WaitingMessage,
): Promise<boolean> {
  const others = await otherVersions(unit.tx, id);
  const ignore = async (): Promise<false> => {
    await settleInbound(unit.tx, seq, { state: "ignored", body: settledBody(said) });
    return false;
  };
  if (id.edit === "") return others.length === 0 || ignore();
  const waiting = others.findLast(({ state }) => state === "pending");
  const before = waiting && (JSON.parse(waiting.body) as WaitingMessage);
  if (waiting !== undefined && before?.hasParts !== true) {
    const changed = { ...before, text: said.text, fold: said.fold };
    await rewriteInbound(unit.tx, waiting.seq, JSON.stringify(changed));
    return ignore();
  }
  const latest = others.at(-1);
  if (latest === undefined) return true;
  const isSame = (JSON.parse(latest.body) as SettledMessage).fold === said.fold;
  if (isSame || said.text.trim() === "") return ignore();
  await rewriteInbound(unit.tx, seq, JSON.stringify({ ...said, changes: true }));
  return true;
}

/** Returns the session key for a command. Before the first message, that session might not exist yet. */
async function keyFor(parts: CommandParts, unit: Unit, place: ChatContext): Promise<string> {
  const bound = await boundSession(parts, unit, place.replyTo);
  return bound?.key ?? keyOfChat(parts.settings, place) ?? "";
}

/** Stores a message that needs no run as settled. Returns false if the message was stored before. */
async function keepSettled(
  unit: Unit,
  admitted: AdmittedMessage,
  state: "done" | "refused",
): Promise<boolean> {
  const body: SettledMessage = { fold: foldOf(admitted.message.text) };
  const seq = await insert(unit, admitted, body);
  if (seq !== undefined) await settleInbound(unit.tx, seq, { state, body: settledBody(body) });
  return seq !== undefined;
}

/**
 * Queues an answer to the chat. Returns false if it was dropped, because too many texts wait for this chat.
 */
async function answer(
  unit: Unit,
  { place }: AdmittedMessage,
  { sessionKey, text, controls }: { sessionKey: string; text: string; controls?: Controls },
): Promise<boolean> {
  if (text.trim() === "") return true;
  const note = { sessionKey, route: place.replyTo, text, ...optional({ controls }) };
  return queueNote(unit, { ...note, about: "command" });
}

/**
 * Runs a command in the transaction that stores its message, after waiting messages have become a run.
 * Returns false if the answer was dropped, because too many texts wait for this chat.
 */
export async function keepCommand(
  parts: CommandParts,
  unit: Unit,
  admitted: AdmittedMessage,
  call: CommandCall,
): Promise<boolean> {
  const { place, burstKey, isOwner } = admitted;
  if (!(await keepSettled(unit, admitted, "done"))) return true;
  await joinBurst(parts, unit, burstKey);
  const sessionKey = await keyFor(parts, unit, place);
  const { text, choices, isRefused } = await performCommand(parts, unit, {
    ...call,
    sender: { channel: place.channel, id: place.peerId, isOwner },
    chatType: place.chat.type,
    sessionKey,
    route: place.replyTo,
    accountId: place.accountId,
  });
  const { pressed } = admitted.message;
  if (isRefused === true && pressed !== undefined) {
    unit.after(() => pressed.refuse(text));
    return true;
  }
  const controls = optional({ choices, answers: pressed?.message });
  const isPlain = Object.keys(controls).length === 0;
  return answer(unit, admitted, { sessionKey, text, ...(isPlain ? {} : { controls }) });
}

/** Stores a message whose processing threw an error as refused, and answers the sender. It is not retried. */
export async function keepFailed(
  parts: CommandParts,
  unit: Unit,
  admitted: AdmittedMessage,
  text: string,
): Promise<void> {
  if (!(await keepSettled(unit, admitted, "refused"))) return;
  const sessionKey = await keyFor(parts, unit, admitted.place);
  await answer(unit, admitted, { sessionKey, text });
}

/** Returns whether the session's model accepts pictures. ACP agents do not. */
export function seesImages(settings: Settings, session: Pick<Session, "agentId" | "model">): boolean {
  const agent = agentOf(settings, session);
  if (agent.runtime !== undefined) return false;
  const name = session.model ?? agent.model;
  return settings.providers.some(({ id, models }) =>
    models.some((model) => model.images && `${id}/${model.id}` === name),
  );
}
