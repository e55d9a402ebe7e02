// Owns how an update of Telegram is read: which are messages of people, in the words of every channel.
// TU1: an update of any shape is read without a throw: what makes no sense is skipped, with the reason.
// TU2: nobody speaks as another: the sender is who Telegram says, never a name; an anonymous administrator
//      and a channel are themselves, not the person behind them.
// TU3: what somebody else wrote (forwarded, quoted) is marked, and is never a command.
// TU4: bots are not answered: neither this one nor others.

import { createHash } from "node:crypto";
import { fieldsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { InboundMessage } from "../channel.ts";
import { type Fields, textOf } from "../fields.ts";
import {
  type Content,
  contentOf,
  type FileRef,
  forwardNote,
  nameOf,
  originName,
  summaryOf,
} from "./content.ts";
import { idOf, numberOf } from "./fields.ts";

/** Whose updates are read. */
export interface Reader {
  readonly accountId: string;
  /** The bot's id and user name. */
  readonly id: string;
  readonly username: string;
  /** Commands of the menu: their name there, and ours. */
  readonly menu: ReadonlyMap<string, string>;
}

type Words = Omit<InboundMessage, "media">;

export type Reading =
  | {
      readonly kind: "message";
      readonly message: Words;
      readonly files: readonly FileRef[];
      /** Pictures that were sent together are messages of one album. */
      readonly albumId?: string;
    }
  /** A group became a supergroup, which has another id. */
  | { readonly kind: "moved"; readonly from: string; readonly to: string }
  /** What the bot is in a chat now, such as `kicked`. */
  | { readonly kind: "membership"; readonly chatId: string; readonly name?: string; readonly status: string }
  /** `odd`: no update of Telegram looks like that. */
  | { readonly kind: "skipped"; readonly why: string; readonly odd: boolean };

const skip = (why: string): Reading => ({ kind: "skipped", why, odd: false });
const oddity = (why: string): Reading => ({ kind: "skipped", why, odd: true });

/** The kinds that are asked for. */
export const UPDATE_KINDS = [
  "message",
  "edited_message",
  "channel_post",
  "edited_channel_post",
  "my_chat_member",
] as const;

const CHAT_TYPES: Readonly<Record<string, InboundMessage["chat"]["type"]>> = {
  private: "direct",
  group: "group",
  supergroup: "group",
  channel: "channel",
};

/** What an update says, to this reader. */
export function readUpdate(value: unknown, reader: Reader): Reading {
  const update = fieldsOf(value);
  const kind = UPDATE_KINDS.find((one) => Object.keys(fieldsOf(update[one])).length > 0);
  if (kind === undefined) return skip(`no kind that is read: ${Object.keys(update).slice(0, 4).join(", ")}`);
  const message = fieldsOf(update[kind]);
  if (kind === "my_chat_member") return readMembership(message);
  return readMessage(message, reader, kind.startsWith("edited_"));
}

function readMembership({ chat, new_chat_member }: Fields): Reading {
  const chatId = idOf(fieldsOf(chat).id);
  const status = textOf(fieldsOf(new_chat_member).status);
  if (chatId === undefined || status === undefined) return oddity("a membership of nothing");
  return { kind: "membership", chatId, status, ...optional({ name: nameOf(fieldsOf(chat)) }) };
}

function readMessage(message: Fields, reader: Reader, isEdit: boolean): Reading {
  const chat = fieldsOf(message.chat);
  const [id, chatId] = [idOf(message.message_id), idOf(chat.id)];
  const type = CHAT_TYPES[textOf(chat.type) ?? ""];
  const at = numberOf(isEdit ? message.edit_date : message.date);
  if (id === undefined || chatId === undefined || type === undefined) return oddity("no message, or no chat");
  if (at === undefined || at <= 0) return oddity("a message without a time");
  const to = idOf(message.migrate_to_chat_id);
  if (to !== undefined) return { kind: "moved", from: chatId, to };
  const content = contentOf(message);
  if (content === undefined) return skip("nothing that anybody said");
  // A live location tells of itself every few seconds, a poll when it ends.
  if (isEdit && content.words === "" && content.files.length === 0) return skip("a change of no words");
  const sender = senderOf(message, chat, type);
  if (sender === undefined) return oddity("a message of nobody");
  if (sender === "bot" || sender.id === reader.id) return skip("a message of a bot");
  const topic = topicOf(message);
  const albumId = isEdit ? undefined : textOf(message.media_group_id);
  const route = { channel: "telegram", to: chatId, accountId: reader.accountId };
  return {
    kind: "message",
    files: content.files,
    ...optional({ albumId }),
    message: {
      ...{ channel: "telegram", accountId: reader.accountId, messageId: id },
      chat: { type, id: chatId, ...chatNames(chat, type), ...optional({ thread: topic }) },
      sender,
      ...wordsOf(message, content, reader, type),
      accountName: reader.username,
      ...optional({ quoted: quotedOf(message) }),
      ...(isEdit ? { edit: editOf(at, content) } : {}),
      sentAt: at * 1_000,
      replyTo: topic === undefined ? route : { ...route, threadId: topic.id },
    },
  };
}

function chatNames(chat: Fields, type: string): { name?: string; alsoKnownAs?: string[] } {
  const username = textOf(chat.username);
  const known = username === undefined || type === "direct" ? undefined : [`@${username}`];
  return optional({ name: nameOf(chat), alsoKnownAs: known });
}

/** Who said it. In a channel, and for whoever hides behind a chat, that is the chat. */
function senderOf(
  message: Fields,
  chat: Fields,
  type: InboundMessage["chat"]["type"],
): InboundMessage["sender"] | "bot" | undefined {
  const behind = fieldsOf(message.sender_chat);
  const person = fieldsOf(message.from);
  const behindId = idOf(behind.id);
  const isChat = behindId !== undefined;
  // Telegram puts groups and channels here, whose ids are negative. Any other id is a person's, who may be an
  // owner.
  if (isChat && !behindId.startsWith("-")) return undefined;
  if (!isChat && person.is_bot === true) return "bot";
  const own = type === "channel" ? chat : {};
  const party = isChat ? behind : idOf(person.id) === undefined ? own : person;
  const id = idOf(party.id);
  if (id === undefined) return undefined;
  const username = textOf(party.username);
  const alsoKnownAs = username === undefined ? undefined : [`@${username}`];
  return { id, ...optional({ name: nameOf(party), alsoKnownAs }) };
}

/** The topic of a forum; its general one has none. */
function topicOf(message: Fields): InboundMessage["chat"]["thread"] {
  const id = idOf(message.message_thread_id);
  if (message.is_topic_message !== true || id === undefined) return undefined;
  const created = fieldsOf(fieldsOf(message.reply_to_message).forum_topic_created);
  return { kind: "topic", id, ...optional({ name: textOf(created.name) }) };
}

/** What the message answers. In a topic every message answers that the topic was made: that is none. */
function answeredBy(message: Fields): Fields {
  const answered = fieldsOf(message.reply_to_message);
  return answered.forum_topic_created === undefined ? answered : {};
}

function quotedOf(message: Fields): InboundMessage["quoted"] {
  const answered = answeredBy(message);
  const elsewhere = fieldsOf(message.external_reply);
  const text = textOf(fieldsOf(message.quote).text) ?? summaryOf(answered) ?? summaryOf(elsewhere);
  if (text === undefined) return undefined;
  const party = Object.keys(fieldsOf(answered.sender_chat)).length > 0 ? answered.sender_chat : answered.from;
  const senderName = nameOf(fieldsOf(party)) ?? originName(fieldsOf(elsewhere.origin));
  return { text, ...optional({ senderName }) };
}

/** Different for every change of a message, and the same when the same change is told again. */
function editOf(at: number, { words, files, note }: Content): string {
  const held = JSON.stringify([words, note ?? "", files.map(({ fileId }) => fileId)]);
  return `${at}-${createHash("sha256").update(held).digest("hex").slice(0, 16)}`;
}

/** A command at the very beginning: its name, to which bot it is said, and what follows. */
interface Command {
  readonly name: string;
  readonly to: string | undefined;
  readonly rest: string;
}

function commandOf({ words, entities }: Content): Command | undefined {
  const entity = entities.find(({ type, offset }) => type === "bot_command" && offset === 0);
  const length = numberOf(entity?.length) ?? 0;
  const [, name, to] = /^\/([a-z0-9_]{1,32})(?:@(\w{1,64}))?$/i.exec(words.slice(0, length)) ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase(), to, rest: words.slice(length).trim() };
}

function isSame(username: string | undefined, { username: own }: Reader): boolean {
  return username?.toLowerCase() === own.toLowerCase();
}

function wordsAt({ words }: Content, entity: Fields): string {
  const from = numberOf(entity.offset) ?? 0;
  return words.slice(from, from + (numberOf(entity.length) ?? 0));
}

/** Whether the bot is meant by this mention. */
function isMention(content: Content, entity: Fields, reader: Reader): boolean {
  if (entity.type === "text_mention") return idOf(fieldsOf(entity.user).id) === reader.id;
  return entity.type === "mention" && isSame(wordsAt(content, entity).slice(1), reader);
}

/** Whether the words name the bot. */
function isNamed(content: Content, reader: Reader): boolean {
  return content.entities.some(
    (entity) =>
      isMention(content, entity, reader) ||
      (entity.type === "bot_command" && isSame(wordsAt(content, entity).split("@")[1], reader)),
  );
}

/** What is said. The bot's own name before it is a call, not a part of that; alone it is all there is. */
function spokenWords(content: Content, reader: Reader): string {
  const call = content.entities.find((entity) => entity.offset === 0 && isMention(content, entity, reader));
  const rest = content.words.slice(numberOf(call?.length) ?? 0).replace(/^[,:]?\s+/, "");
  return call === undefined || rest.trim() === "" ? content.words : rest;
}

function wordsOf(
  message: Fields,
  content: Content,
  reader: Reader,
  type: InboundMessage["chat"]["type"],
): Pick<Words, "text" | "mentioned" | "nativeCommand" | "forwarded"> {
  const { words, note } = content;
  const origin = fieldsOf(message.forward_origin);
  const answers = idOf(fieldsOf(answeredBy(message).from).id) === reader.id;
  const lines = (...parts: (string | undefined)[]): string =>
    parts.filter((part) => part !== undefined && part !== "").join("\n");
  if (Object.keys(origin).length > 0) {
    return { text: lines(forwardNote(origin), words, note), mentioned: answers, forwarded: true };
  }
  const mentioned = answers || isNamed(content, reader);
  const command = commandOf(content);
  // What is said to another bot is not ours to do.
  const isOurs = command !== undefined && (command.to === undefined || isSame(command.to, reader));
  const name = isOurs ? reader.menu.get(command.name) : undefined;
  if (name === undefined) return { text: lines(spokenWords(content, reader), note), mentioned };
  // What stands behind a command that goes by another name here is not meant for that one.
  const isRenamed = command?.name !== name.replaceAll("-", "_");
  const text = isRenamed ? `/${name}` : `/${name} ${command?.rest ?? ""}`.trim();
  // In a group the menu writes the bot's name behind the command: without it all bots are meant, or none.
  const isChosen = type === "direct" || command?.to !== undefined;
  return isChosen ? { text, mentioned, nativeCommand: true } : { text, mentioned };
}
