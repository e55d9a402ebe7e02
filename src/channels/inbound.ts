// Owns the way in from channels: what somebody says there becomes a run, once.
// IN1: who is not answered leaves nothing behind but, as a stranger, an entry among a few
//      (core/inbound-policy).
// IN2: a message is kept, or known already, when `receive` resolves; it is kept once, whichever process,
//      restart or second delivery brings it again.
// IN3: what one person writes in one place is taken in the order in which it came; nobody waits for another
//      one's files.
// IN4: a command that fails is told as failed, and stops nothing that comes behind it.
// Who is answered: inbound/admission.ts; how a message is kept: inbound/keep.ts; when and how messages
// become a run: inbound/burst.ts; in which session: inbound/place.ts; files: inbound/media.ts.

import { agentOf } from "../core/settings.ts";
import type { DeadlineHandler } from "../engine/deadlines.ts";
import type { Unit } from "../engine/unit.ts";
import { isKnown } from "../store/inbound.ts";
import { StoreConflict, StoreProblem } from "../store/problems.ts";
import { getSession } from "../store/sessions.ts";
import { getBinding } from "../store/thread-bindings.ts";
import { accountName } from "./accounts.ts";
import type { InboundMessage } from "./channel.ts";
import type { CommandParts } from "./commands/context.ts";
import { type AdmissionParts, type Admitted, burstKeyOf, createAdmission } from "./inbound/admission.ts";
import { joinBurst, seesImages } from "./inbound/burst.ts";
import { keepCommand, keepFailedCommand, keepMessage } from "./inbound/keep.ts";
import { createMediaReader, type MediaReader, type MediaTarget, NO_MEDIA } from "./inbound/media.ts";
import { keyOfPlace } from "./inbound/place.ts";

export interface InboundParts extends AdmissionParts, CommandParts {}

export interface Inbound {
  /** Resolves once the message is kept, or need not be; rejects if the store can't keep it. */
  receive(message: InboundMessage): Promise<void>;
  /** Acts on the stored date at which a burst ends. */
  readonly burstDue: DeadlineHandler;
}

/** For whom the files of a message are read, and the session that they are kept for. */
interface Target extends MediaTarget {
  readonly sessionKey: string;
}

/** The agent of the session that the place has at the moment. */
async function targetOf({ settings, engine }: InboundParts, { place, account }: Admitted): Promise<Target> {
  const { db } = engine.store;
  const own = keyOfPlace(settings, place) ?? "";
  const sessionKey = (await getBinding(db, place.replyTo))?.sessionKey ?? own;
  const session = (await getSession(db, sessionKey)) ?? { agentId: place.agentId };
  return {
    sessionKey,
    agent: agentOf(settings, session),
    maxBytes: account.inbound.mediaMaxBytes,
    seesImages: seesImages(settings, session),
  };
}

/** Does a command. One that fails is not tried again: it would hold up what comes behind it. */
async function takeCommand(parts: InboundParts, admitted: Admitted): Promise<void> {
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
      "a command was done, but its answer is left out: too many texts wait for this place",
    );
  } catch (error) {
    if (error instanceof StoreProblem || error instanceof StoreConflict) throw error;
    world.log.error({ err: error, command: command.command }, "a command failed");
    await engine.commit((unit) => keepFailedCommand(parts, unit, admitted));
  }
}

/** Keeps a message, unless it is known. */
async function take(parts: InboundParts, reader: MediaReader, admitted: Admitted): Promise<void> {
  const { engine } = parts;
  const { id, message, command } = admitted;
  if (await isKnown(engine.store.db, id)) return;
  if (command !== undefined) return takeCommand(parts, admitted);
  const target = await targetOf(parts, admitted);
  const media = message.edit === undefined ? await reader.read(message.media, target) : NO_MEDIA;
  // After a failure nobody knows whether it was kept: what was not needed is removed by the next start.
  const isKept = await engine.commit((unit) => keepMessage(parts, unit, admitted, { media, ...target }));
  if (!isKept) await reader.drop(media, target);
}

/** Opens the way in. Nothing is done before the first message. */
export function openInbound(parts: InboundParts): Inbound {
  const admit = createAdmission(parts);
  const reader = createMediaReader({ world: parts.world, store: parts.settings.store });
  /** What is being taken, by who writes where: the last of each. */
  const taking = new Map<string, Promise<void>>();
  /** One after the other, whatever becomes of the one before. */
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
      // From here on: what comes second must not be decided on first.
      await inTurn(burstKeyOf(message), async () => {
        const admitted = await admit(message);
        if (admitted !== undefined) await take(parts, reader, admitted);
      });
    },
    async burstDue(unit: Unit, burstKey: string) {
      await joinBurst(parts, unit, burstKey);
      return "done";
    },
  };
}
