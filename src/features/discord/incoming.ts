// Converts Discord events to the message format that all channels share.
// DI1: messages of bots, webhooks, Discord itself and the bot's own account are ignored.
// DI2: a thread is identified by its parent and its own id, in every route and key.
// DI3: only ids identify people, because a name can be changed, and then used by somebody else.

import type { InboundMessage } from "../../channels/channel.ts";
import { type Fields, numberOf, objectOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Clock } from "../../world.ts";
import type { DiscordChannelInfo, Places, Roles } from "./channel-cache.ts";
import { idOf, timeOfId } from "./ids.ts";
import { mediaOf } from "./media.ts";
import { forwardedOf, mentionedUsers, type Names, nameOf, notesOf, readableText } from "./text.ts";

export const DISCORD = "discord";

/**
 * Discord's types for messages that a person writes: a message and a reply. All other types are notices of
 * Discord.
 */
const WRITTEN = [0, 19];
/** If the last edit is older than this, an update is not an edit, but a link preview or a pin. */
const EDIT_FRESH_MS = 3_600_000;
const ROLES_MAX = 100;
/** Discord's number for a chat of which the bot is not a member. */
const ELSEWHERE = 2;
/** Discord's number for a command that was chosen from the bot's menu. */
const SLASH_COMMAND = 2;
/** Discord's number for the press of a button. */
const PRESS = 3;

export interface DiscordAccountContext {
  readonly accountId: string;
  readonly botId: string;
  readonly restUrl: string;
  readonly places: Places;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** The chat of a message, and the route for a reply. */
interface MessageOrigin {
  readonly chat: InboundMessage["chat"];
  readonly replyTo: Route;
}

const NO_ROLES: Roles = { names: new Map() };

async function spotOf(
  { accountId, places, signal }: DiscordAccountContext,
  channelId: string,
  guildId: string | undefined,
  senderId: string,
): Promise<MessageOrigin | undefined> {
  // A message without a guild comes from a direct chat, because bots cannot be in other private chats.
  const place: DiscordChannelInfo | undefined =
    guildId === undefined ? { id: channelId, kind: "direct" } : await places.channelInfoOf(channelId, signal);
  const route = (to: string): Route => ({ channel: DISCORD, to, accountId });
  switch (place?.kind) {
    case "direct":
      return { chat: { type: "direct", id: senderId }, replyTo: route(channelId) };
    case "room":
    case "thread": {
      const { id, name, parentId } = place;
      const roomName = parentId === undefined ? name : places.nameOf(parentId);
      const chat: InboundMessage["chat"] = {
        type: "channel",
        id: parentId ?? id,
        ...optional({ name: roomName, alsoKnownAs: guildId === undefined ? undefined : [guildId] }),
      };
      if (parentId === undefined) return { chat, replyTo: route(id) };
      const thread = { kind: "thread" as const, id, ...optional({ name }) };
      return { chat: { ...chat, thread }, replyTo: { ...route(parentId), threadId: id } };
    }
    default:
      return undefined;
  }
}

/** Returns the text of a message, and of the message that it forwards, with notes for other content. */
function wholeText(message: Fields, names: Names): string {
  const listParts = (one: Fields) => [readableText(textOf(one.content) ?? "", names), ...notesOf(one, names)];
  const forwarded = forwardedOf(message);
  const passedOn = forwarded === undefined ? [] : ["[forwarded]", ...listParts(forwarded)];
  return [...listParts(message), ...passedOn].filter((part) => part !== "").join("\n");
}

function quotedOf(message: Fields, names: Names): InboundMessage["quoted"] {
  const answered = objectOf(message.referenced_message);
  if (answered === undefined) return undefined;
  const text = wholeText(answered, names);
  const senderName = nameOf(objectOf(answered.author));
  const files = objectsOf(answered.attachments, 1).length > 0 ? "[file]" : "";
  return { text: text === "" ? files : text, ...optional({ senderName }) };
}

/** Returns the ids of the authors of the texts that the message forwards or quotes, but not the bot's. */
function authorsOf(message: Fields, botId: string): string[][] {
  const answered = objectOf(message.referenced_message);
  const authors = [message, ...(answered === undefined ? [] : [answered])].flatMap((one) =>
    forwardedOf(one) === undefined ? [] : [[]],
  );
  const id = idOf(objectOf(answered?.author)?.id);
  return answered === undefined || id === botId ? authors : [...authors, id === undefined ? [] : [id]];
}

/** Returns whether a person wrote the message. Otherwise a program did. */
function isWritten(message: Fields, botId: string): boolean {
  const author = objectOf(message.author);
  if (author === undefined || idOf(author.id) === undefined || author.id === botId) return false;
  if (author.bot === true || author.system === true || idOf(message.webhook_id) !== undefined) return false;
  return WRITTEN.includes(numberOf(message.type) ?? 0);
}

/**
 * Returns an id that differs for each edit. Returns undefined for a new message, and `null` for an update
 * that is not an edit.
 */
function editOf(message: Fields, isUpdate: boolean, now: number): string | undefined | null {
  if (!isUpdate) return undefined;
  const edited = textOf(message.edited_timestamp);
  const at = edited === undefined ? Number.NaN : Date.parse(edited);
  return now - at < EDIT_FRESH_MS ? String(at) : null;
}

/** Converts a message. Returns undefined if the message needs no answer. */
export async function readMessage(
  message: Fields,
  reader: DiscordAccountContext,
  isUpdate = false,
): Promise<InboundMessage | undefined> {
  const [id, channelId] = [idOf(message.id), idOf(message.channel_id)];
  const author = objectOf(message.author);
  const senderId = idOf(author?.id);
  if (id === undefined || channelId === undefined || senderId === undefined) return undefined;
  const edit = editOf(message, isUpdate, reader.clock.now());
  if (!isWritten(message, reader.botId) || edit === null) return undefined;
  const guildId = idOf(message.guild_id);
  const spot = await spotOf(reader, channelId, guildId, senderId);
  if (spot === undefined) return undefined;
  const namedRoles = Array.isArray(message.mention_roles) ? message.mention_roles.slice(0, ROLES_MAX) : [];
  const roles =
    namedRoles.length === 0 || guildId === undefined
      ? NO_ROLES
      : await reader.places.rolesOf(guildId, reader.botId, reader.signal);
  const users = mentionedUsers(message);
  const names: Names = {
    botId: reader.botId,
    ...optional({ ownRole: roles.own }),
    user: (id) => users.get(id),
    role: (id) => roles.names.get(id),
    channel: (id) => reader.places.nameOf(id),
  };
  const answered = objectOf(objectOf(message.referenced_message)?.author);
  const text = wholeText(message, names);
  const forwarded = forwardedOf(message);
  const media = [message, ...(forwarded === undefined ? [] : [forwarded])].flatMap((one) =>
    mediaOf(one, reader),
  );
  const mentioned =
    objectsOf(message.mentions, ROLES_MAX).some((user) => user.id === reader.botId) ||
    (roles.own !== undefined && namedRoles.includes(roles.own)) ||
    answered?.id === reader.botId;
  if (text === "" && media.length === 0 && !mentioned) return undefined;
  const quoted = quotedOf(message, names);
  const senderName = nameOf(author, objectOf(message.member));
  return {
    channel: DISCORD,
    accountId: reader.accountId,
    messageId: id,
    chat: spot.chat,
    media,
    text: text === "" && media.length === 0 ? "[mention without text]" : text,
    sender: { id: senderId, ...optional({ name: senderName }) },
    mentioned,
    ...optional({ quoted, edit }),
    authors: authorsOf(message, reader.botId),
    sentAt: timeOfId(id),
    replyTo: spot.replyTo,
    ...(forwarded === undefined ? {} : { forwarded: true }),
  };
}

/** A slash command from the bot's menu, or the press of a button, which stands for a command. */
export interface CalledCommand {
  readonly id: string;
  /** Token with which the command is answered. It is secret as long as it is valid, which is some minutes. */
  readonly token: string;
  /** Undefined if the bot cannot answer in this chat. */
  readonly message: InboundMessage | undefined;
  /** The message that has the pressed button, to change it, and the time since which it shows the button. */
  readonly pressed?: { readonly message: string; readonly shownAt: number };
}

/** Returns the text of a command, or undefined for another interaction. */
function calledText({ type, data }: Fields): string | undefined {
  const { name, options, custom_id } = objectOf(data) ?? {};
  if (type === PRESS) return textOf(custom_id)?.startsWith("/") === true ? textOf(custom_id) : undefined;
  if (type !== SLASH_COMMAND || textOf(name) === undefined) return undefined;
  return [`/${name}`, ...objectsOf(options, 1).flatMap(({ value }) => textOf(value) ?? [])].join(" ");
}

function pressedOf(message: Fields | undefined): CalledCommand["pressed"] {
  const [id, channelId] = [idOf(message?.id), idOf(message?.channel_id)];
  if (id === undefined || channelId === undefined) return undefined;
  const edited = Date.parse(textOf(message?.edited_timestamp) ?? "");
  const shown = { id, channelId, content: textOf(message?.content) ?? "" };
  return { message: JSON.stringify(shown), shownAt: Number.isNaN(edited) ? timeOfId(id) : edited };
}

/** Converts a slash command or a press. Returns undefined for any other interaction. */
export async function readCommand(
  interaction: Fields,
  reader: DiscordAccountContext,
): Promise<CalledCommand | undefined> {
  const [id, token, text] = [idOf(interaction.id), textOf(interaction.token), calledText(interaction)];
  const channelId = idOf(interaction.channel_id);
  const member = objectOf(interaction.member);
  const user = objectOf(member?.user) ?? objectOf(interaction.user);
  const senderId = idOf(user?.id);
  if (id === undefined || token === undefined || text === undefined) return undefined;
  if (channelId === undefined || senderId === undefined) return undefined;
  const spot =
    numberOf(interaction.context) === ELSEWHERE
      ? undefined
      : await spotOf(reader, channelId, idOf(interaction.guild_id), senderId);
  if (spot === undefined) return { id, token, message: undefined };
  const senderName = nameOf(user, member);
  const message: InboundMessage = {
    channel: DISCORD,
    accountId: reader.accountId,
    messageId: id,
    chat: spot.chat,
    media: [],
    sender: { id: senderId, ...optional({ name: senderName }) },
    text,
    mentioned: true,
    sentAt: timeOfId(id),
    replyTo: spot.replyTo,
    nativeCommand: true,
  };
  const pressed = interaction.type === PRESS ? pressedOf(objectOf(interaction.message)) : undefined;
  return { id, token, message, ...optional({ pressed }) };
}
