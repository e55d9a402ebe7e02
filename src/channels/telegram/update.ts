// Converts a batch of Telegram updates to messages in the format that all channels share.
// TU1: reading an update never throws. An invalid update is skipped, with the reason.
// TU2: nobody can impersonate another person: Telegram's id identifies the sender, never a name. An anonymous
//      administrator and a channel count as themselves, not as the person behind them.
// TU3: text that somebody else wrote (forwarded, quoted) is marked, and never counts as a command.
// TU4: bots get no answer, neither this bot nor others.
// TA1: pictures that were sent together (an album) become one message with the id of the first one. An album
//      at the end of a batch may still grow, so it is not confirmed until one poll finds it unchanged.
// TA2: only consecutive updates are joined, so updates that were not confirmed before a crash are joined in
//      the same way again.

import { createHash } from "node:crypto";
import { type Fields, fieldsOf, integerOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { InboundMessage } from "../channel.ts";
import { idOf } from "./bot.ts";
import {
  type Content,
  contentOf,
  type FileRef,
  forwardNote,
  nameOf,
  originName,
  summaryOf,
} from "./content.ts";

/** The bot account for which updates are read. */
export interface TelegramAccountContext {
  readonly accountId: string;
  /** Id of the bot. */
  readonly id: string;
  readonly username: string;
  /** Commands in the bot's menu: Telegram's name, and our name. */
  readonly menu: ReadonlyMap<string, string>;
}

type Words = Omit<InboundMessage, "media">;

export type Reading =
  | {
      readonly kind: "message";
      readonly message: Words;
      readonly files: readonly FileRef[];
      /** Id of the album, if the message is a picture in an album. */
      readonly albumId?: string;
    }
  /** A group became a supergroup, which has a new id. */
  | { readonly kind: "moved"; readonly from: string; readonly to: string }
  /** The bot's new status in a chat, for example `kicked`. */
  | { readonly kind: "membership"; readonly chatId: string; readonly name?: string; readonly status: string }
  /** `odd`: the update is invalid. False if it only needs no answer. */
  | { readonly kind: "skipped"; readonly why: string; readonly odd: boolean };

const skip = (why: string): Reading => ({ kind: "skipped", why, odd: false });
const oddity = (why: string): Reading => ({ kind: "skipped", why, odd: true });

/** Kinds of updates that Telegram should send. */
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

/** Reads an update for this account. */
export function readUpdate(value: unknown, reader: TelegramAccountContext): Reading {
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
  if (chatId === undefined || status === undefined) return oddity("a membership without a chat or status");
  return { kind: "membership", chatId, status, ...optional({ name: nameOf(fieldsOf(chat)) }) };
}

function readMessage(message: Fields, reader: TelegramAccountContext, isEdit: boolean): Reading {
  const chat = fieldsOf(message.chat);
  const [id, chatId] = [idOf(message.message_id), idOf(chat.id)];
  const type = CHAT_TYPES[textOf(chat.type) ?? ""];
  const at = integerOf(isEdit ? message.edit_date : message.date);
  if (id === undefined || chatId === undefined || type === undefined) return oddity("no message, or no chat");
  if (at === undefined || at <= 0) return oddity("a message without a time");
  const to = idOf(message.migrate_to_chat_id);
  if (to !== undefined) return { kind: "moved", from: chatId, to };
  const content = contentOf(message);
  if (content === undefined) return skip("no content");
  // Such an edit is not made by a person: Telegram updates a live location every few seconds, and a poll at
  // its end.
  if (isEdit && content.words === "" && content.files.length === 0) return skip("an edit without text");
  const sender = senderOf(message, chat, type);
  if (sender === undefined) return oddity("a message without a sender");
  if (sender === "bot" || sender.id === reader.id) return skip("a message of a bot");
  const topic = topicOf(message);
  const albumId = isEdit ? undefined : textOf(message.media_group_id);
  const route = { channel: "telegram", to: chatId, accountId: reader.accountId };
  return {
    kind: "message",
    files: content.files,
    ...optional({ albumId }),
    message: {
      channel: "telegram",
      accountId: reader.accountId,
      messageId: id,
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

/** Returns the sender. For a channel post or an anonymous sender, this is the chat. */
function senderOf(
  message: Fields,
  chat: Fields,
  type: InboundMessage["chat"]["type"],
): InboundMessage["sender"] | "bot" | undefined {
  const behind = fieldsOf(message.sender_chat);
  const person = fieldsOf(message.from);
  const behindId = idOf(behind.id);
  const isChat = behindId !== undefined;
  // Groups and channels have negative ids. A positive id could impersonate a person, even an owner.
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

/** Returns the topic of a forum. Messages in the General topic have none. */
function topicOf(message: Fields): InboundMessage["chat"]["thread"] {
  const id = idOf(message.message_thread_id);
  if (message.is_topic_message !== true || id === undefined) return undefined;
  const created = fieldsOf(fieldsOf(message.reply_to_message).forum_topic_created);
  return { kind: "topic", id, ...optional({ name: textOf(created.name) }) };
}

/**
 * Returns the quoted message. In a topic, every message refers to the creation of the topic, which is not a
 * quote.
 */
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

/** Returns an id that differs for each edit. If Telegram repeats an edit, the id is the same. */
function editOf(at: number, { words, files, note }: Content): string {
  const held = JSON.stringify([words, note ?? "", files.map(({ fileId }) => fileId)]);
  return `${at}-${createHash("sha256").update(held).digest("hex").slice(0, 16)}`;
}

/**
 * A command at the beginning of a text: the command's name, the bot that it is addressed to, and its
 * arguments.
 */
interface Command {
  readonly name: string;
  readonly to: string | undefined;
  readonly rest: string;
}

function commandOf({ words, entities }: Content): Command | undefined {
  const entity = entities.find(({ type, offset }) => type === "bot_command" && offset === 0);
  const length = integerOf(entity?.length) ?? 0;
  const [, name, to] = /^\/([a-z0-9_]{1,32})(?:@(\w{1,64}))?$/i.exec(words.slice(0, length)) ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase(), to, rest: words.slice(length).trim() };
}

function isSame(username: string | undefined, { username: own }: TelegramAccountContext): boolean {
  return username?.toLowerCase() === own.toLowerCase();
}

function wordsAt({ words }: Content, entity: Fields): string {
  const from = integerOf(entity.offset) ?? 0;
  return words.slice(from, from + (integerOf(entity.length) ?? 0));
}

/** Returns whether a mention names the bot. */
function isMention(content: Content, entity: Fields, reader: TelegramAccountContext): boolean {
  if (entity.type === "text_mention") return idOf(fieldsOf(entity.user).id) === reader.id;
  return entity.type === "mention" && isSame(wordsAt(content, entity).slice(1), reader);
}

/** Whether the text mentions the bot. */
function isNamed(content: Content, reader: TelegramAccountContext): boolean {
  return content.entities.some(
    (entity) =>
      isMention(content, entity, reader) ||
      (entity.type === "bot_command" && isSame(wordsAt(content, entity).split("@")[1], reader)),
  );
}

/** Returns the text without a mention of the bot at the start, unless nothing else remains. */
function spokenWords(content: Content, reader: TelegramAccountContext): string {
  const call = content.entities.find((entity) => entity.offset === 0 && isMention(content, entity, reader));
  const rest = content.words.slice(integerOf(call?.length) ?? 0).replace(/^[,:]?\s+/, "");
  return call === undefined || rest.trim() === "" ? content.words : rest;
}

function wordsOf(
  message: Fields,
  content: Content,
  reader: TelegramAccountContext,
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
  // A command for another bot is ignored.
  const isOurs = command !== undefined && (command.to === undefined || isSame(command.to, reader));
  const name = isOurs ? reader.menu.get(command.name) : undefined;
  if (name === undefined) return { text: lines(spokenWords(content, reader), note), mentioned };
  // If the name in the menu differs from ours, like `/start` for `help`, the arguments have another meaning:
  // do not pass them on.
  const isRenamed = command?.name !== name.replaceAll("-", "_");
  const text = isRenamed ? `/${name}` : `/${name} ${command?.rest ?? ""}`.trim();
  // In a group, Telegram's menu adds the bot's name to a command. A command without it may be for any bot.
  const isChosen = type === "direct" || command?.to !== undefined;
  return isChosen ? { text, mentioned, nativeCommand: true } : { text, mentioned };
}

type MessageReading = Extract<Reading, { kind: "message" }>;

/** One message or event, from one or more updates. Its last update is confirmed after it is processed. */
export interface Item {
  readonly firstId: number;
  readonly lastId: number;
  /** Number of updates that were joined. */
  readonly parts: number;
  readonly reading: Reading;
}

/** The content of one response. */
export interface Batch {
  /** Messages and events, sorted by update id. */
  readonly items: readonly Item[];
  /** Number of updates without an id. They are skipped. */
  readonly nameless: number;
}

function readSafely(update: unknown, reader: TelegramAccountContext): Reading {
  try {
    return readUpdate(update, reader);
  } catch (error) {
    // An update that cannot be read must not block later ones.
    const why = error instanceof Error ? error.message : String(error);
    return { kind: "skipped", why: `it could not be read: ${why}`, odd: true };
  }
}

function isSameAlbum(one: MessageReading, other: MessageReading): boolean {
  return (
    one.albumId !== undefined &&
    one.albumId === other.albumId &&
    one.message.chat.id === other.message.chat.id &&
    one.message.sender.id === other.message.sender.id
  );
}

function join(one: MessageReading, other: MessageReading): MessageReading {
  // In a forwarded album, show the note about the source only once.
  const isSaid = other.message.forwarded === true && one.message.text.split("\n")[0] === other.message.text;
  const texts = [one.message.text, isSaid ? "" : other.message.text].filter((text) => text !== "");
  const quoted = one.message.quoted ?? other.message.quoted;
  return {
    ...one,
    files: [...one.files, ...other.files],
    message: {
      ...one.message,
      text: texts.join("\n"),
      mentioned: one.message.mentioned || other.message.mentioned,
      ...optional({ quoted }),
    },
  };
}

/** Reads the updates of one response. */
export function readBatch(updates: readonly unknown[], reader: TelegramAccountContext): Batch {
  const named = updates.flatMap((update): { id: number; update: unknown }[] => {
    const id = integerOf(fieldsOf(update).update_id);
    return id === undefined ? [] : [{ id, update }];
  });
  const items: Item[] = [];
  for (const { id, update } of named.sort((one, other) => one.id - other.id)) {
    const reading = readSafely(update, reader);
    const before = items.at(-1);
    const last = before?.reading;
    if (
      before !== undefined &&
      last?.kind === "message" &&
      reading.kind === "message" &&
      isSameAlbum(last, reading)
    ) {
      const joined = join(last, reading);
      items[items.length - 1] = { ...before, lastId: id, parts: before.parts + 1, reading: joined };
    } else {
      items.push({ firstId: id, lastId: id, parts: 1, reading });
    }
  }
  return { items, nameless: updates.length - named.length };
}

/** Returns the album at the end of the batch, because it may still grow. */
export function openAlbum({ items }: Batch): Item | undefined {
  const last = items.at(-1);
  return last?.reading.kind === "message" && last.reading.albumId !== undefined ? last : undefined;
}
