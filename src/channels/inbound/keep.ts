// Owns the transaction that keeps a message, or does the command that it is.
// KE1: a message is kept once, whichever process, restart or second delivery brings it again.
// KE2: messages that come within a moment of each other are one run; the moment is a stored date, which no
//      crash forgets, and which ends after five times its length whatever comes.
// KE3: a command is done in the transaction that keeps its message, whatever waits before it becoming a run
//      first.
// KE4: an edit changes a message that still waits. Later it is a message of its own, which says so.

import { createHash } from "node:crypto";
import type { CommandCall } from "../../core/command.ts";
import { cleanText, cutQuoted, cutText, foldText } from "../../core/inbound-text.ts";
import type { Unit } from "../../engine/unit.ts";
import { boundSession } from "../../flows/bindings.ts";
import { INBOUND_DEADLINE, keepInboundFiles } from "../../flows/inbound-files.ts";
import { queueNote } from "../../flows/outbox.ts";
import { burstOf, insertInbound, otherVersions, rewriteInbound, settleInbound } from "../../store/inbound.ts";
import type { CommandParts } from "../commands/context.ts";
import { performCommand } from "../commands.ts";
import type { Admitted } from "./admission.ts";
import { joinBurst, type SettledMessage, settledBody, TEXT_MAX_BYTES, type WaitingMessage } from "./burst.ts";
import type { KeptMedia } from "./media.ts";
import { keyOfPlace, type Place } from "./place.ts";

/** A burst ends after so many times its pause, whatever still comes. */
const PAUSES_MAX = 5;
/** Messages of one burst, and characters of what they hold: more do not wait. */
const BURST_MAX = 50;
const BURST_MAX_CHARS = 16 * 1024 * 1024;

function foldOf(text: string): string {
  return createHash("sha256").update(foldText(text)).digest("hex").slice(0, 32);
}

function insert(unit: Unit, { id, burstKey }: Admitted, body: object): Promise<number | undefined> {
  const row = { ...id, burstKey, body: JSON.stringify(body), receivedAt: unit.now };
  return insertInbound(unit.tx, row);
}

/** Keeps a message. False: it says nothing new, and what came with it is not needed. */
export async function keepMessage(
  parts: CommandParts,
  unit: Unit,
  admitted: Admitted,
  came: { readonly media: KeptMedia; readonly sessionKey: string },
): Promise<boolean> {
  const { engine } = parts;
  const { account, message, place, burstKey } = admitted;
  const { media, sessionKey } = came;
  const text = cutText(cleanText(message.text), TEXT_MAX_BYTES);
  const said: WaitingMessage = {
    ...{ place, text, images: media.images, notes: media.notes, fold: foldOf(text) },
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
 * Whether a version of a message says something of its own. A change of one that waits is put in its place,
 * one that only looks otherwise is ignored; and what comes after a change of it is late, and ignored, too.
 */
async function isNews(unit: Unit, { id }: Admitted, seq: number, said: WaitingMessage): Promise<boolean> {
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

/** Which session a command is about; before the first message it may not be there. */
async function keyFor(parts: CommandParts, unit: Unit, place: Place): Promise<string> {
  const bound = await boundSession(parts, parts.engine, unit, place.replyTo);
  return bound?.key ?? keyOfPlace(parts.settings, place) ?? "";
}

/** Keeps the message of a command. False: it is known. */
async function keepSettled(unit: Unit, admitted: Admitted, state: "done" | "refused"): Promise<boolean> {
  const body: SettledMessage = { fold: foldOf(admitted.message.text) };
  const seq = await insert(unit, admitted, body);
  if (seq !== undefined) await settleInbound(unit.tx, seq, { state, body: settledBody(body) });
  return seq !== undefined;
}

/** False: the answer is left out, as too many texts wait for the place. */
async function answer(
  parts: CommandParts,
  unit: Unit,
  { place }: Admitted,
  { sessionKey, text }: { sessionKey: string; text: string },
): Promise<boolean> {
  if (text.trim() === "") return true;
  return queueNote(parts, unit, { sessionKey, route: place.replyTo, text, about: "command" });
}

/**
 * Does a command in the unit that keeps its message. What waits before it becomes a run first. False: it is
 * done, and its answer is left out, as too many texts wait for the place.
 */
export async function keepCommand(
  parts: CommandParts,
  unit: Unit,
  admitted: Admitted,
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

/** A command that failed by a mistake of ours is told as that, and not tried again. */
export async function keepFailedCommand(parts: CommandParts, unit: Unit, admitted: Admitted): Promise<void> {
  if (!(await keepSettled(unit, admitted, "refused"))) return;
  const sessionKey = await keyFor(parts, unit, admitted.place);
  const text = "This command failed; the log of the gateway says why.";
  await answer(parts, unit, admitted, { sessionKey, text });
}
