// Decides which messages of a channel are accepted, before anything is stored. Nothing is stored from a
// sender who is not allowed to write, except for one entry for a stranger in a list of limited length
// (flows/delivery/pairing). Group messages that are not for an agent are rejected without reading the store.

import { createHash } from "node:crypto";
import { evictOldest } from "../../core/bounded.ts";
import { optional } from "../../core/optional.ts";
import type { CommandCall } from "../../core/rules/command.ts";
import { decideInbound, type InboundQuestion, type InboundVerdict } from "../../core/rules/inbound-policy.ts";
import { accountOf, type ChannelAccount } from "../../core/shapes/settings/channels.ts";
import { defaultAgent, findAgent, type Settings } from "../../core/shapes/settings/settings.ts";
import { head } from "../../core/text/cut.ts";
import { cleanName, isVisible } from "../../core/text/inbound-text.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { askToPair, wasToldLately } from "../../flows/delivery/pairing.ts";
import { getPeer } from "../../store/queries/channels/channel-peers.ts";
import type { InboundId } from "../../store/queries/channels/inbound.ts";
import { getBinding } from "../../store/queries/channels/thread-bindings.ts";
import type { World } from "../../world.ts";
import { accountName } from "../accounts.ts";
import type { InboundMessage } from "../channel.ts";
import { readCommand } from "../commands.ts";
import { type ChatContext, keyOfChat } from "./chat-session.ts";

const ID_CHARS_MAX = 256;
/** Maximum number of chats that are remembered as ignored, so that each is logged only once. */
const LOGGED_MAX = 1_000;

export interface AdmissionParts {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly world: World;
}

export interface AdmittedMessage {
  readonly message: InboundMessage;
  readonly account: ChannelAccount;
  readonly id: InboundId;
  readonly place: ChatContext;
  readonly burstKey: string;
  readonly isOwner: boolean;
  readonly command: CommandCall | undefined;
}

/** Returns whether each id can be stored: it must be short, and contain no control characters. */
function hasFitIds(message: InboundMessage): boolean {
  const { channel, accountId, chat, messageId, sender, edit, replyTo } = message;
  const { to, threadId } = replyTo;
  const ids = [channel, accountId, chat.id, messageId, sender.id, to];
  return [...ids, chat.thread?.id, edit, threadId].every((id) => {
    if (id === undefined) return true;
    return id !== "" && id.length <= ID_CHARS_MAX && id.isWellFormed() && !/\p{Cc}/u.test(id);
  });
}

/** Returns the key of a burst: a combination of account, chat and sender. */
export function burstKeyOf({ channel, accountId, chat, sender }: InboundMessage): string {
  const key = JSON.stringify([channel, accountId, chat.id, chat.thread?.id ?? null, sender.id]);
  return createHash("sha256").update(key).digest("hex").slice(0, 40);
}

function saysNothing(message: InboundMessage): boolean {
  const { text, media, quoted, mentioned, chat } = message;
  // In a group, a mention without text is a message, too.
  if (chat.type !== "direct" && mentioned) return false;
  return media.length === 0 && quoted === undefined && !isVisible(text);
}

function chatContextOf(
  settings: Settings,
  account: ChannelAccount,
  message: InboundMessage,
  agentId = account.agentId,
): ChatContext {
  const { channel, accountId, chat, sender, replyTo } = message;
  const agent = agentId === undefined ? undefined : findAgent(settings, agentId);
  const { type, id, thread } = chat;
  const [name, threadName, peerName] = [chat.name, thread?.name, sender.name].map(cleanName);
  return {
    channel,
    accountId,
    replyTo,
    peerId: sender.id,
    agentId: (agent ?? defaultAgent(settings)).id,
    chat: {
      type,
      id,
      ...optional({
        name,
        thread: thread && { kind: thread.kind, id: thread.id, ...optional({ name: threadName }) },
      }),
    },
    ...optional({ peerName }),
  };
}

/** Logs that a chat is ignored, once for each chat, so that an operator can find the id of a group. */
function tellIgnored(
  { world }: AdmissionParts,
  told: Set<string>,
  message: InboundMessage,
  why: string,
): void {
  const { channel, accountId, chat, sender } = message;
  const who = chat.type === "direct" ? { from: safeLine(sender.id) } : { chat: safeLine(chat.id) };
  const key = JSON.stringify([channel, accountId, who, why]);
  if (told.has(key)) return;
  told.add(key);
  evictOldest(told, LOGGED_MAX);
  world.log.info({ account: accountName(channel, accountId), ...who, why }, "messages are not answered");
}

/** Treats every message as a mention if its thread was created for a sub-agent. */
async function asSaidToSomebody(
  { settings, engine }: AdmissionParts,
  account: ChannelAccount,
  message: InboundMessage,
  question: InboundQuestion,
): Promise<InboundQuestion> {
  if (question.mentioned || message.chat.thread === undefined) return question;
  const named = { ...question, mentioned: true };
  const [asItIs, asNamed] = [question, named].map((one) => decideInbound(account, settings.owners, one).kind);
  if (asItIs !== "ignore" || asNamed === "ignore") return question;
  const binding = await getBinding(engine.store.db, message.replyTo);
  return binding?.kind === "created" ? named : question;
}

async function judge(
  parts: AdmissionParts,
  told: Set<string>,
  account: ChannelAccount,
  message: InboundMessage,
  command: CommandCall | undefined,
): Promise<InboundVerdict> {
  const { settings, engine } = parts;
  const written = command === undefined ? undefined : "written";
  const kind = message.nativeCommand === true ? "native" : written;
  const question = await asSaidToSomebody(parts, account, message, { ...message, command: kind });
  // Most group messages are not for an agent. Reject them without reading the store.
  const asStranger = decideInbound(account, settings.owners, question);
  if (asStranger.kind === "ignore") {
    tellIgnored(parts, told, message, asStranger.why);
    return asStranger;
  }
  const { channel, accountId, sender } = message;
  const peer = await getPeer(engine.store.db, { channel, accountId, peerId: sender.id });
  const verdict = decideInbound(account, settings.owners, { ...question, peer: peer?.state });
  if (verdict.kind === "ask" && !wasToldLately(peer, parts.world.clock.now())) {
    const userName = sender.alsoKnownAs?.find((one) => one.startsWith("@"));
    const names = [cleanName(sender.name), cleanName(userName)].filter((one) => one !== undefined);
    const name = names.length === 0 ? undefined : names.join(" ");
    await engine.commit((unit) =>
      askToPair(parts, unit, {
        channel,
        accountId,
        peerId: sender.id,
        route: message.replyTo,
        ...optional({ name }),
      }),
    );
  }
  return verdict;
}

/** Creates the function that decides whether an incoming message is admitted. */
export function createAdmission(
  parts: AdmissionParts,
): (message: InboundMessage) => Promise<AdmittedMessage | undefined> {
  const told = new Set<string>();
  // A rejected stranger may get a pairing code.
  return async (message) => {
    const { settings, world } = parts;
    const { channel } = message;
    const account = accountOf(settings.channels, message);
    if (account === undefined || !hasFitIds(message)) {
      const why = account === undefined ? "its account is not configured" : "an id in it is invalid";
      world.log.warn({ channel: safeLine(head(channel, 64)), why }, "a message was skipped");
      return undefined;
    }
    const command = readCommand(message);
    const verdict = await judge(parts, told, account, message, command);
    if (verdict.kind !== "admit") return undefined;
    const place = chatContextOf(settings, account, message, verdict.agentId ?? account.agentId);
    if (keyOfChat(settings, place) === undefined) {
      world.log.warn({ channel }, "a message was skipped: its chat's id is too long for a session key");
      return undefined;
    }
    if (saysNothing(message)) return undefined;
    const { accountId, chat, messageId, edit = "" } = message;
    const id = { channel, accountId, chatId: chat.id, messageId, edit };
    const { isOwner } = verdict;
    return { message, account, id, place, burstKey: burstKeyOf(message), isOwner, command };
  };
}
