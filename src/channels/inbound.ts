// Handles incoming messages of channels: each becomes part of exactly one run. Nothing is stored from a
// sender who is not allowed to write, except for one entry for a stranger in a list of limited length
// (core/rules/inbound-policy). A message is stored once, even if another process, a restart or a redelivery
// brings it again. When `receive` resolves, the message is stored.
// IN3: the messages of one person in one chat are processed in order, and do not wait for the files of other
//      people.
// IN4: a failed command is reported as failed, and does not block later messages.
// IN5: a message that cannot be processed is skipped after some attempts, because the platform would repeat
//      it for ever, and later messages would wait. A message that cannot be stored is never skipped (I2).
// Admission: inbound/admission.ts. Storing messages and joining them to runs: inbound/burst.ts. The session:
// inbound/chat-session.ts. Files: inbound/media.ts.

import { evictOldest } from "../core/bounded.ts";
import { COMMANDS } from "../core/rules/command.ts";
import { agentOf } from "../core/shapes/settings/settings.ts";
import { head } from "../core/text/cut.ts";
import { safeLine } from "../core/text/safe-text.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Unit } from "../engine/unit.ts";
import { StoreConflict, StoreProblem } from "../store/problems.ts";
import { getCursor, isKnown, putCursor } from "../store/queries/channels/inbound.ts";
import { getBinding } from "../store/queries/channels/thread-bindings.ts";
import { getSession } from "../store/queries/sessions/sessions.ts";
import { accountName } from "./accounts.ts";
import type { ChannelHost, InboundMessage } from "./channel.ts";
import type { CommandParts } from "./commands/context.ts";
import {
  type AdmissionParts,
  type AdmittedMessage,
  burstKeyOf,
  createAdmission,
} from "./inbound/admission.ts";
import { joinBurst, keepCommand, keepFailed, keepMessage, seesImages } from "./inbound/burst.ts";
import { keyOfChat } from "./inbound/chat-session.ts";
import { createMediaReader, type MediaReader, type MediaTarget, NO_MEDIA } from "./inbound/media.ts";

/** Maximum number of attempts to process one message, and of messages whose attempts are counted. */
const ATTEMPTS_MAX = 10;
const COUNTED_MAX = 1_000;
const ID_SHOWN = 100;
const SEE_LOG = "See the gateway's log.";

export interface InboundParts extends AdmissionParts, CommandParts {}

export interface Inbound {
  /** Resolves after the message is stored or rejected. Fails if the store fails. */
  receive(message: InboundMessage): Promise<void>;
  /** Handles the end of a burst (messages of one sender within a short time), which is a stored deadline. */
  readonly burstDue: DeadlineHandler;
}

interface Target extends MediaTarget {
  readonly sessionKey: string;
}

/** Returns whether an error has its cause in the store, which may work again later. */
const isOfStore = (error: unknown): boolean =>
  error instanceof StoreProblem || error instanceof StoreConflict;

/** Runs a command. A failed command is not retried, because that would delay later messages. */
async function takeCommand(parts: InboundParts, admitted: AdmittedMessage): Promise<void> {
  const { engine, world } = parts;
  const { command } = admitted;
  if (command === undefined) return;
  try {
    const isAnswered = await engine.commit((unit) => keepCommand(parts, unit, admitted, command));
    if (isAnswered) return;
    const { channel, accountId, replyTo } = admitted.place;
    const about = { account: accountName(channel, accountId), to: replyTo.to, command: command.command };
    world.log.warn(
      about,
      "a command succeeded, but its answer is dropped: too many texts wait for this chat",
    );
  } catch (error) {
    if (isOfStore(error)) throw error;
    world.log.error({ err: error, command: command.command }, "a command failed");
    await engine.commit((unit) => keepFailed(parts, unit, admitted, `This command failed. ${SEE_LOG}`));
  }
}

/** Stores a message, unless it is stored already. */
async function take(parts: InboundParts, reader: MediaReader, admitted: AdmittedMessage): Promise<void> {
  const { engine, settings } = parts;
  const { id, message, command } = admitted;
  if (await isKnown(engine.store.db, id)) return;
  if (command !== undefined) return takeCommand(parts, admitted);
  const { place, account } = admitted;
  const { db } = engine.store;
  const usualKey = keyOfChat(settings, place) ?? "";
  const sessionKey = (await getBinding(db, place.replyTo))?.sessionKey ?? usualKey;
  const session = (await getSession(db, sessionKey)) ?? { agentId: place.agentId };
  const target: Target = {
    sessionKey,
    agent: agentOf(settings, session),
    maxBytes: account.inbound.mediaMaxBytes,
    seesImages: seesImages(settings, session),
  };
  const media = message.edit === undefined ? await reader.read(message, target) : NO_MEDIA;
  // Do not delete the files if the commit fails, because the message may be stored nevertheless. The gateway
  // removes files that are not needed at its next start.
  const isKept = await engine.commit((unit) => keepMessage(parts, unit, admitted, { media, ...target }));
  if (!isKept) await reader.drop(media, target);
}

/**
 * Handles a failure to process a message: rethrows it, or skips the message after the last attempt.
 * `attempts`: for each message, the number of failures.
 */
async function handleFailure(
  parts: InboundParts,
  attempts: Map<string, number>,
  failed: { readonly message: InboundMessage; readonly admitted: AdmittedMessage | undefined },
  error: unknown,
): Promise<void> {
  if (isOfStore(error)) throw error;
  const { message, admitted } = failed;
  const { channel, accountId, messageId, edit } = message;
  const key = JSON.stringify([burstKeyOf(message), messageId, edit]);
  const count = (attempts.get(key) ?? 0) + 1;
  attempts.delete(key);
  attempts.set(key, count);
  evictOldest(attempts, COUNTED_MAX);
  if (count < ATTEMPTS_MAX) throw error;
  // If this fails, the store may be the cause after all, so the message is not skipped.
  if (admitted !== undefined) {
    const text = `This message cannot be processed. ${SEE_LOG}`;
    await parts.engine.commit((unit) => keepFailed(parts, unit, admitted, text));
  }
  attempts.delete(key);
  const about = { account: accountName(channel, accountId), messageId: safeLine(head(messageId, ID_SHOWN)) };
  parts.world.log.error({ err: error, ...about }, "a message is skipped, because it cannot be processed");
}

/** Creates the handler for incoming messages. It does nothing before the first message. */
export function openInbound(parts: InboundParts): Inbound {
  const admit = createAdmission(parts);
  const reader = createMediaReader({ world: parts.world, store: parts.settings.store });
  /** For each sender and chat, the task that runs or waits last. */
  const taking = new Map<string, Promise<void>>();
  const attempts = new Map<string, number>();
  /** Runs tasks with the same key one after the other, even if one of them fails. */
  const inTurn = async (key: string, work: () => Promise<void>): Promise<void> => {
    const own = (taking.get(key) ?? Promise.resolve()).then(work, work);
    taking.set(key, own);
    try {
      await own;
    } finally {
      if (taking.get(key) === own) taking.delete(key);
    }
  };
  return {
    async receive(message) {
      // Decide about admission in this queue, too, so that decisions about one sender's messages are made in
      // order.
      await inTurn(burstKeyOf(message), async () => {
        let admitted: AdmittedMessage | undefined;
        try {
          admitted = await admit(message);
          if (admitted !== undefined) await take(parts, reader, admitted);
          else message.pressed?.refuse("This button is not for you.");
        } catch (error) {
          await handleFailure(parts, attempts, { message, admitted }, error);
        }
      });
    },
    async burstDue(unit: Unit, burstKey: string) {
      await joinBurst(parts, unit, burstKey);
      return "done";
    },
  };
}

/** Returns the services for the accounts of one channel. */
export function hostOf(channel: string, { engine, world }: InboundParts, inbound: Inbound): ChannelHost {
  const { db } = engine.store;
  return {
    world,
    receive: (message) => inbound.receive(message),
    cursor: (accountId, name) => getCursor(db, { channel, accountId, name }),
    remember: (accountId, name, value) =>
      engine.commit((unit) => putCursor(unit.tx, { channel, accountId, name }, value)),
    commands: COMMANDS.map(({ name, description }) => ({ name, description })),
  };
}
