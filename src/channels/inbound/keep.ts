// Stores a message, or runs the command in it, in one transaction.
// A message is stored once, even if another process, a restart or a redelivery brings it again. Messages
// within a short time of each other (a burst) become one run. The end of the burst is a stored deadline, so
// that a crash does not lose it, and is at most five pauses after the first message.
// KE3: a command runs in the transaction that stores its message. Before that, waiting messages become a run.
// An edit of a waiting message changes that message. A later edit becomes a separate message that is marked
// as an edit.

import { createHash } from "node:crypto";
import type { CommandCall } from "../../core/rules/command.ts";
import { cleanText, cutQuoted, cutText, foldText } from "../../core/text/inbound-text.ts";
import type { Unit } from "../../engine/unit.ts";
import { boundSession } from "../../flows/delivery/bindings.ts";
import { INBOUND_DEADLINE, keepInboundFiles } from "../../flows/delivery/inbound-files.ts";
import { queueNote } from "../../flows/delivery/outbox.ts";
import {
  burstOf,
  insertInbound,
  otherVersions,
  rewriteInbound,
  settleInbound,
} from "../../store/queries/channels/inbound.ts";
import type { CommandParts } from "../commands/context.ts";
import { performCommand } from "../commands.ts";
import type { AdmittedMessage } from "./admission.ts";
import { joinBurst, type SettledMessage, settledBody, TEXT_MAX_BYTES, type WaitingMessage } from "./burst.ts";
import { type ChatContext, keyOfChat } from "./chat-session.ts";
import type { KeptMedia } from "./media.ts";

/** Maximum length of a burst, in pauses, even if messages still arrive. */
const PAUSES_MAX = 5;
/** Maximum number of messages in one burst, and of their characters. */
const BURST_MAX = 50;
const BURST_MAX_CHARS = 16 * 1024 * 1024;

function foldOf(text: string): string {
  return createHash("sha256").update(foldText(text)).digest("hex").slice(0, 32);
}

function insert(unit: Unit, { id, burstKey }: AdmittedMessage, body: object): Promise<number | undefined> {
  const row = { ...id, burstKey, body: JSON.stringify(body), receivedAt: unit.now };
  return insertInbound(unit.tx, row);
}

/** Stores a message. Returns false if the message is not new, so that its files can be deleted. */
export async function keepMessage(
  parts: CommandParts,
  unit: Unit,
  admitted: AdmittedMessage,
  came: { readonly media: KeptMedia; readonly sessionKey: string },
): Promise<boolean> {
  const { engine } = parts;
  const { account, message, place, burstKey } = admitted;
  const { media, sessionKey } = came;
  const text = cutText(cleanText(message.text), TEXT_MAX_BYTES);
  const said: WaitingMessage = {
    place,
    text,
    images: media.images,
    notes: media.notes,
    fold: foldOf(text),
    ...(message.quoted === undefined ? {} : { quoted: cutQuoted(message.quoted) }),
  };
  const seq = await insert(unit, admitted, said);
  if (seq === undefined) return false;
  if (!(await isNews(unit, admitted, seq, said))) return false;
  const { folder } = media;
  if (folder !== undefined) await keepInboundFiles(engine, unit, folder, sessionKey);
  const { debounceMs } = account.inbound;
  const { count, chars, firstAt = unit.now } = await burstOf(unit.tx, burstKey);
  if (debounceMs === 0 || count >= BURST_MAX || chars >= BURST_MAX_CHARS) {
    await joinBurst(parts, unit, burstKey);
    return true;
  }
  const dueAt = Math.min(unit.now + debounceMs, firstAt + PAUSES_MAX * debounceMs);
  await engine.setDeadline(unit, { kind: INBOUND_DEADLINE, key: burstKey, dueAt });
  return true;
}

/**
 * Returns whether a version of a message is new. An edit of a waiting message replaces that message. An edit
 * with the same text is ignored, and so is an older version that arrives late.
 */
async function isNews(
  unit: Unit,
  { id }: AdmittedMessage,
  seq: number,
  said: WaitingMessage,
): Promise<boolean> {
  const others = await otherVersions(unit.tx, id);
  const ignored = { state: "ignored", body: settledBody(said) } as const;
  if (id.edit === "") {
    if (others.length === 0) return true;
    await settleInbound(unit.tx, seq, ignored);
    return false;
  }
  const waiting = others.findLast(({ state }) => state === "pending");
  if (waiting !== undefined) {
    const before = JSON.parse(waiting.body) as WaitingMessage;
    const changed = { ...before, text: said.text, fold: said.fold };
    await rewriteInbound(unit.tx, waiting.seq, JSON.stringify(changed));
    await settleInbound(unit.tx, seq, ignored);
    return false;
  }
  const latest = others.at(-1);
  if (latest === undefined) return true;
  if ((JSON.parse(latest.body) as SettledMessage).fold === said.fold || said.text.trim() === "") {
    await settleInbound(unit.tx, seq, ignored);
    return false;
  }
  await rewriteInbound(unit.tx, seq, JSON.stringify({ ...said, changes: true }));
  return true;
}

/** Returns the session key for a command. Before the first message, that session may not exist. */
async function keyFor(parts: CommandParts, unit: Unit, place: ChatContext): Promise<string> {
  const bound = await boundSession(parts, parts.engine, unit, place.replyTo);
  return bound?.key ?? keyOfChat(parts.settings, place) ?? "";
}

/** Stores the message of a command. Returns false if it was stored before. */
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

/** Queues an answer. Returns false if it was dropped, because too many texts wait for the chat. */
async function answer(
  parts: CommandParts,
  unit: Unit,
  { place }: AdmittedMessage,
  { sessionKey, text }: { sessionKey: string; text: string },
): Promise<boolean> {
  if (text.trim() === "") return true;
  return queueNote(parts, unit, { sessionKey, route: place.replyTo, text, about: "command" });
}

/**
 * Runs a command in the transaction that stores its message, after waiting messages have become a run.
 * Returns false if the answer was dropped, because too many texts wait for the chat.
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
  const text = await performCommand(parts, unit, {
    ...call,
    sender: { channel: place.channel, id: place.peerId, isOwner },
    chatType: place.chat.type,
    sessionKey,
    route: place.replyTo,
    accountId: place.accountId,
  });
  return answer(parts, unit, admitted, { sessionKey, text });
}

/**
 * Stores the message of a command that threw an error, and answers the sender. The command is not retried.
 */
export async function keepFailedCommand(
  parts: CommandParts,
  unit: Unit,
  admitted: AdmittedMessage,
): Promise<void> {
  if (!(await keepSettled(unit, admitted, "refused"))) return;
  const sessionKey = await keyFor(parts, unit, admitted.place);
  const text = "This command failed. See the gateway's log.";
  await answer(parts, unit, admitted, { sessionKey, text });
}
