// Owns how what people do on Discord becomes a message in the words of every platform.
// DI1: bots, web hooks, Discord itself and the bot's own messages are nobody.
// DI2: a thread is told by its parent and its own id, the same wherever a route or a key names it.
// DI3: only ids count: names can be changed by whoever bears them, and taken over by others.

import { optional } from "../../core/optional.ts";
import type { Route } from "../../core/route.ts";
import type { Clock } from "../../world.ts";
import type { InboundMessage } from "../channel.ts";
import { type Fields, objectOf, objectsOf, textOf } from "../fields.ts";
import { idOf, numberOf, timeOfId } from "./fields.ts";
import { mediaOf } from "./media.ts";
import type { Place, Places, Roles } from "./places.ts";
import { forwardedOf, mentionedUsers, type Names, nameOf, notesOf, readableText } from "./words.ts";

export const DISCORD = "discord";

/** Written by a person: a message, or an answer to one. All other numbers are notices of Discord's. */
const WRITTEN = [0, 19];
/** Discord touches a message again when it shows a link, or somebody pins it; that is no change. */
const EDIT_FRESH_MS = 3_600_000;
const ROLES_MAX = 100;
/** In this place of an interaction the bot is not itself present. */
const ELSEWHERE = 2;
/** The kind of an interaction by which somebody gives a command of the bot's menu. */
const SLASH_COMMAND = 2;

export interface Reader {
  readonly accountId: string;
  readonly botId: string;
  readonly restUrl: string;
  readonly places: Places;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Where a message is: what people see as its chat, and where an answer goes. */
interface Spot {
  readonly chat: InboundMessage["chat"];
  readonly replyTo: Route;
}

const NO_ROLES: Roles = { names: new Map() };

async function spotOf(
  { accountId, places, signal }: Reader,
  channelId: string,
  guildId: string | undefined,
  senderId: string,
): Promise<Spot | undefined> {
  // Without a server it is a direct chat: bots are in no other.
  const place: Place | undefined =
    guildId === undefined ? { id: channelId, kind: "direct" } : await places.placeOf(channelId, signal);
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
        ...optional({ name: roomName }),
        ...optional({ alsoKnownAs: guildId === undefined ? undefined : [guildId] }),
      };
      if (parentId === undefined) return { chat, replyTo: route(id) };
      const thread = { kind: "thread" as const, id, ...optional({ name }) };
      return { chat: { ...chat, thread }, replyTo: { ...route(parentId), threadId: id } };
    }
    default:
      return undefined;
  }
}

/** What the numbers in a message stand for. */
function namesIn(message: Fields, { botId, places }: Reader, roles: Roles): Names {
  const users = mentionedUsers(message);
  return {
    botId,
    ...optional({ ownRole: roles.own }),
    user: (id) => users.get(id),
    role: (id) => roles.names.get(id),
    channel: (id) => places.nameOf(id),
  };
}

/** The text of a message or of one that was passed on, with notes of what is no text. */
function wholeText(message: Fields, names: Names): string {
  const forwarded = forwardedOf(message);
  const own = [readableText(textOf(message.content) ?? "", names), ...notesOf(message)];
  const passedOn =
    forwarded === undefined
      ? []
      : ["[forwarded]", readableText(textOf(forwarded.content) ?? "", names), ...notesOf(forwarded)];
  return [...own, ...passedOn].filter((part) => part !== "").join("\n");
}

function quotedOf(message: Fields, names: Names): InboundMessage["quoted"] {
  const answered = objectOf(message.referenced_message);
  if (answered === undefined) return undefined;
  const text = wholeText(answered, names);
  const senderName = nameOf(objectOf(answered.author));
  const files = objectsOf(answered.attachments, 1).length > 0 ? "[file]" : "";
  return { text: text === "" ? files : text, ...optional({ senderName }) };
}

/** Whether somebody wrote it, and not a program. */
function isWritten(message: Fields, botId: string): boolean {
  const author = objectOf(message.author);
  if (author === undefined || idOf(author.id) === undefined || author.id === botId) return false;
  if (author.bot === true || author.system === true || idOf(message.webhook_id) !== undefined) return false;
  return WRITTEN.includes(numberOf(message.type) ?? 0);
}

/** Different for every change; undefined: nobody changed it, or long ago. `null`: leave it alone. */
function editOf(message: Fields, isUpdate: boolean, now: number): string | undefined | null {
  if (!isUpdate) return undefined;
  const edited = textOf(message.edited_timestamp);
  const at = edited === undefined ? Number.NaN : Date.parse(edited);
  return now - at < EDIT_FRESH_MS ? String(at) : null;
}

/** What somebody wrote; undefined: nothing to be answered. */
export async function readMessage(
  message: Fields,
  reader: Reader,
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
  const names = namesIn(message, reader, roles);
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
    ...{ channel: DISCORD, accountId: reader.accountId, messageId: id, chat: spot.chat, media },
    text: text === "" && media.length === 0 ? "[mention without text]" : text,
    sender: { id: senderId, ...optional({ name: senderName }) },
    ...{ mentioned, ...optional({ quoted, edit }), sentAt: timeOfId(id), replyTo: spot.replyTo },
    ...(forwarded === undefined ? {} : { forwarded: true }),
  };
}

/** A slash command of the bot's own. */
export interface Called {
  readonly id: string;
  /** The right to answer it; a secret for some minutes. */
  readonly token: string;
  /** Undefined: there the bot can't answer. */
  readonly message: InboundMessage | undefined;
}

/** Who called which command, and where; undefined: it is something else. */
export async function readCommand(interaction: Fields, reader: Reader): Promise<Called | undefined> {
  const data = objectOf(interaction.data);
  const [id, token, name] = [idOf(interaction.id), textOf(interaction.token), textOf(data?.name)];
  const channelId = idOf(interaction.channel_id);
  const member = objectOf(interaction.member);
  const user = objectOf(member?.user) ?? objectOf(interaction.user);
  const senderId = idOf(user?.id);
  if (interaction.type !== SLASH_COMMAND || id === undefined || token === undefined) return undefined;
  if (name === undefined || channelId === undefined || senderId === undefined) return undefined;
  const spot =
    numberOf(interaction.context) === ELSEWHERE
      ? undefined
      : await spotOf(reader, channelId, idOf(interaction.guild_id), senderId);
  if (spot === undefined) return { id, token, message: undefined };
  const words = objectsOf(data?.options, 1).flatMap((option) => textOf(option.value) ?? []);
  const senderName = nameOf(user, member);
  const message: InboundMessage = {
    ...{ channel: DISCORD, accountId: reader.accountId, messageId: id, chat: spot.chat, media: [] },
    sender: { id: senderId, ...optional({ name: senderName }) },
    text: [`/${name}`, ...words].join(" "),
    mentioned: true,
    sentAt: timeOfId(id),
    replyTo: spot.replyTo,
    nativeCommand: true,
  };
  return { id, token, message };
}
