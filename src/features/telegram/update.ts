// Converts a Telegram update to a message in the format that all channels share: its sender, chat, text and
// files, with notes in square brackets for other content.
// TU1: reading an update never throws. An invalid update is skipped, with the reason.
// TU2: nobody can impersonate another person: Telegram's id identifies the sender, never a name. An anonymous
//      administrator and a channel count as themselves, not as the person behind them.
// TU3: text that somebody else wrote (forwarded, quoted) is marked, and never counts as a command.
// TU4: messages of bots, including this one, are ignored.

import { createHash } from "node:crypto";
import type { InboundMedia, InboundMessage } from "../../channels/channel.ts";
import { type Fields, fieldsOf, integerOf, listOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { cut } from "../../core/text/cut.ts";
import { idOf } from "./bot.ts";
import { linkedText } from "./links.ts";

/** The bot account for which updates are read. */
export interface TelegramAccountContext {
  readonly accountId: string;
  /** Id of the bot. */
  readonly id: string;
  readonly username: string;
  /** The commands in the bot's menu. Key: the name in Telegram. Value: the name in Parley. */
  readonly menu: ReadonlyMap<string, string>;
}

/** A file on Telegram's server that is not downloaded yet. */
export interface FileRef {
  readonly kind: InboundMedia["kind"];
  readonly fileId: string;
  readonly name?: string;
  readonly mimeType?: string;
  readonly bytes?: number;
}

interface Content {
  /** The sender's text, or the caption of a file. */
  readonly words: string;
  /** Entities in `words`: ranges that are a mention, a link or formatted. */
  readonly entities: readonly Fields[];
  readonly files: readonly FileRef[];
  /** A note for content that is neither text nor a file. */
  readonly note?: string;
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
  /** Somebody pressed a button. */
  | {
      readonly kind: "press";
      readonly queryId: string;
      /** False if the message does not have the button, or no longer. */
      readonly isShown: boolean;
      /** When the button was sent, by our clock; ms since 1970. */
      readonly sentAt: number;
      /** The command for which the button stands. It has no time. */
      readonly message: Words;
      /** The message with the button, to change it. */
      readonly pressed: string;
    }
  /** A group has become a supergroup, which has a new id. */
  | { readonly kind: "moved"; readonly from: string; readonly to: string }
  /** The bot's new status in a chat, for example `kicked`. */
  | { readonly kind: "membership"; readonly chatId: string; readonly name?: string; readonly status: string }
  /** An update that needs no answer. `odd`: true if that is because the update is invalid. */
  | { readonly kind: "skipped"; readonly why: string; readonly odd: boolean };

const skip = (why: string): Reading => ({ kind: "skipped", why, odd: false });
const oddity = (why: string): Reading => ({ kind: "skipped", why, odd: true });

/** The kinds of updates that Telegram is asked to send. */
export const UPDATE_KINDS = [
  "message",
  "edited_message",
  "channel_post",
  "edited_channel_post",
  "callback_query",
  "my_chat_member",
] as const;

const NOTE_CHARS_MAX = 500;
const POLL_OPTIONS_MAX = 12;
/** A file with one of these MIME types counts as a picture. */
const PICTURE = /^image\/(?:jpeg|png|gif|webp)$/i;

const CHAT_TYPES: Readonly<Record<string, InboundMessage["chat"]["type"]>> = {
  private: "direct",
  group: "group",
  supergroup: "group",
  channel: "channel",
};

/** Formats a note for the agent: `[<kind>: <detail>, <detail>]`. */
function noteOf(what: string, ...details: (string | undefined)[]): string {
  const told = details.filter((detail) => detail !== undefined && detail !== "").join(", ");
  const line = `${what}${told === "" ? "" : `: ${told}`}`.replace(/\s+/g, " ");
  return `[${cut(line, NOTE_CHARS_MAX)}]`;
}

function fullName({ first_name, last_name }: Fields): string | undefined {
  const name = [textOf(first_name), textOf(last_name)].filter((part) => part !== undefined).join(" ");
  return name === "" ? undefined : name;
}

function nameOf(party: Fields): string | undefined {
  return textOf(party.title) ?? fullName(party) ?? textOf(party.username);
}

/** Returns the name of the author of a forwarded message. */
function originName(origin: Fields): string | undefined {
  const { sender_user, sender_user_name, sender_chat, chat, author_signature } = origin;
  const person = nameOf(fieldsOf(sender_user)) ?? textOf(sender_user_name);
  const party = person ?? nameOf(fieldsOf(sender_chat)) ?? nameOf(fieldsOf(chat));
  const author = textOf(author_signature);
  return party === undefined || author === undefined ? (party ?? author) : `${party} (${author})`;
}

function coordinates(location: Fields): string | undefined {
  const { latitude, longitude } = location;
  return typeof latitude === "number" && typeof longitude === "number"
    ? `${latitude} ${longitude}`
    : undefined;
}

function poll({ question, options }: Fields): string {
  const choices = listOf(options)
    .slice(0, POLL_OPTIONS_MAX)
    .map((option) => textOf(fieldsOf(option).text));
  const listed = choices.filter((choice) => choice !== undefined).join(" / ");
  return noteOf("poll", textOf(question), listed);
}

function checklist({ title, tasks }: Fields): string {
  const listed = listOf(tasks)
    .slice(0, POLL_OPTIONS_MAX)
    .map(fieldsOf)
    .map(({ text, text_entities }) => linkedText(textOf(text) ?? "", listOf(text_entities).map(fieldsOf)));
  return noteOf("checklist", textOf(title), listed.filter((task) => task !== "").join(" / "));
}

/** For each field with content that is neither text nor a file: the function that formats its note. */
const NOTES: Readonly<Record<string, (field: Fields) => string>> = {
  sticker: ({ emoji, set_name }) => noteOf("sticker", textOf(emoji), textOf(set_name)),
  // Check `venue` before `location`, because a venue has both fields.
  venue: ({ title, address, location }) =>
    noteOf("place", textOf(title), textOf(address), coordinates(fieldsOf(location))),
  location: (field) =>
    noteOf(field.live_period === undefined ? "location" : "live location", coordinates(field)),
  contact: (field) => noteOf("contact", fullName(field), textOf(field.phone_number)),
  poll,
  checklist,
  dice: ({ emoji, value }) => noteOf("dice", `${textOf(emoji) ?? ""} ${integerOf(value) ?? ""}`.trim()),
  game: ({ title }) => noteOf("game", textOf(title)),
  story: () => noteOf("story"),
  invoice: ({ title }) => noteOf("invoice", textOf(title)),
  paid_media: () => noteOf("paid media"),
  giveaway: () => noteOf("giveaway"),
  rich_message: () => noteOf("formatted page, which can't be read here"),
};

/** The fields that may contain a file. The first one that a message has is used. */
const FILES: readonly { readonly field: string; readonly kind: FileRef["kind"] }[] = [
  // Check `animation` before `document`, because an animation has both fields.
  { field: "animation", kind: "video" },
  { field: "voice", kind: "voice" },
  { field: "audio", kind: "audio" },
  { field: "video", kind: "video" },
  { field: "video_note", kind: "video" },
  { field: "live_photo", kind: "video" },
  { field: "document", kind: "file" },
];

/** MIME types of kinds of files for which Telegram sends none, because it never varies. */
const TYPES: Readonly<Record<string, string>> = {
  photo: "image/jpeg",
  voice: "audio/ogg",
  video_note: "video/mp4",
};

function fileOf(file: Fields, field: string, kind: FileRef["kind"]): FileRef | undefined {
  const fileId = textOf(file.file_id);
  if (fileId === undefined) return undefined;
  const mimeType = textOf(file.mime_type) ?? TYPES[field];
  return {
    kind: kind === "file" && PICTURE.test(mimeType ?? "") ? "image" : kind,
    fileId,
    ...optional({ name: textOf(file.file_name), mimeType, bytes: integerOf(file.file_size) }),
  };
}

function filesOf(message: Fields): readonly FileRef[] {
  const area = ({ width, height }: Fields): number => (integerOf(width) ?? 0) * (integerOf(height) ?? 0);
  const [largest] = listOf(message.photo)
    .map(fieldsOf)
    .sort((one, other) => area(other) - area(one));
  const photo = largest === undefined ? undefined : fileOf(largest, "photo", "image");
  if (photo !== undefined) return [photo];
  for (const { field, kind } of FILES) {
    const file = fileOf(fieldsOf(message[field]), field, kind);
    if (file !== undefined) return [file];
  }
  return [];
}

/**
 * Returns the content of a message. Returns undefined for a service message, for example that somebody
 * joined.
 */
function contentOf(message: Fields): Content | undefined {
  const words = textOf(message.text) ?? textOf(message.caption) ?? "";
  const ofWords = textOf(message.text) === undefined ? message.caption_entities : message.entities;
  const files = filesOf(message);
  const told = Object.keys(NOTES).find((field) => Object.keys(fieldsOf(message[field])).length > 0);
  const content = { words, entities: listOf(ofWords).map(fieldsOf), files };
  if (told !== undefined) return { ...content, note: NOTES[told]?.(fieldsOf(message[told])) ?? "" };
  return words === "" && files.length === 0 ? undefined : content;
}

/** Returns the content of a quoted message as one text. */
function summaryOf(message: Fields): string | undefined {
  const content = contentOf(message);
  if (content === undefined) return undefined;
  const { words, entities, files, note: told } = content;
  const named = files.map(({ kind, name }) => noteOf(kind, name));
  const parts = [forwardNote(message), linkedText(words, entities), ...named, told];
  return parts.filter((part) => part !== undefined && part !== "").join("\n");
}

/** Returns the id of the author of a forwarded message, if Telegram tells it. */
function originIds({ sender_user, sender_chat, chat }: Fields): string[] {
  return [sender_user, sender_chat, chat].flatMap(partyIds).slice(0, 1);
}

const partyIds = (party: unknown): string[] => [idOf(fieldsOf(party).id) ?? []].flat();

/** Returns the ids of the authors of the texts that the message forwards or quotes, but not the bot's. */
function authorsOf(message: Fields, { id: own }: TelegramAccountContext): string[][] {
  const isThere = (fields: unknown) => Object.keys(fieldsOf(fields)).length > 0;
  const answered = answeredBy(message);
  const { external_reply: elsewhere, via_bot } = message;
  const origins = [message.forward_origin, answered.forward_origin, fieldsOf(elsewhere).origin];
  const authors = origins.filter(isThere).map((origin) => originIds(fieldsOf(origin)));
  if (isThere(via_bot)) authors.push(partyIds(via_bot));
  const { sender_chat, from } = answered;
  const party = isThere(sender_chat) ? sender_chat : from;
  if (isThere(answered) && !isThere(answered.forward_origin)) authors.push(partyIds(party));
  return authors.filter(([id]) => id !== own);
}

/** Returns the note that is put before a forwarded text. Returns undefined for other messages. */
function forwardNote({ forward_origin }: Fields): string | undefined {
  const origin = fieldsOf(forward_origin);
  if (Object.keys(origin).length === 0) return undefined;
  const name = originName(origin);
  return noteOf(name === undefined ? "forwarded" : `forwarded from ${name}`);
}

export function readUpdate(value: unknown, reader: TelegramAccountContext): Reading {
  const update = fieldsOf(value);
  const kind = UPDATE_KINDS.find((one) => Object.keys(fieldsOf(update[one])).length > 0);
  if (kind === undefined) return skip(`no kind that is read: ${Object.keys(update).slice(0, 4).join(", ")}`);
  const message = fieldsOf(update[kind]);
  if (kind === "my_chat_member") {
    const chatId = idOf(fieldsOf(message.chat).id);
    const status = textOf(fieldsOf(message.new_chat_member).status);
    if (chatId === undefined || status === undefined) return oddity("a membership without a chat or status");
    return { kind: "membership", chatId, status, ...optional({ name: nameOf(fieldsOf(message.chat)) }) };
  }
  if (kind === "callback_query") return readPress(message, reader);
  return readMessage(message, reader, kind.startsWith("edited_"));
}

/** Reads the press of a button. A client may send any data, so it counts only if a button has it. */
function readPress(query: Fields, reader: TelegramAccountContext): Reading {
  const message = fieldsOf(query.message);
  const chat = fieldsOf(message.chat);
  const [queryId, chatId, id] = [textOf(query.id), idOf(chat.id), idOf(message.message_id)];
  const type = CHAT_TYPES[textOf(chat.type) ?? ""];
  const data = textOf(query.data);
  if (queryId === undefined || chatId === undefined || id === undefined || type === undefined)
    return oddity("a press without a message");
  if (data === undefined || !data.startsWith("/")) return skip("a press of an unknown button");
  const sender = senderOf({ from: query.from }, {}, type);
  if (sender === undefined || sender === "bot") return oddity("a press without a person");
  const topic = topicOf(message);
  const route = { channel: "telegram", to: chatId, accountId: reader.accountId };
  const buttons = listOf(fieldsOf(message.reply_markup).inline_keyboard).flatMap(listOf).map(fieldsOf);
  const { text, entities } = message;
  // See keyboardOf of send.ts.
  const [command = "", seconds = "0"] = data.split("#");
  return {
    kind: "press",
    queryId,
    isShown: buttons.some(({ callback_data }) => callback_data === data),
    sentAt: Number.parseInt(seconds, 36) * 1_000,
    pressed: JSON.stringify({ id: Number(id), text, entities }),
    message: {
      channel: "telegram",
      accountId: reader.accountId,
      messageId: `press-${queryId}`,
      chat: { type, id: chatId, ...chatNames(chat, type), ...optional({ thread: topic }) },
      sender,
      text: command,
      mentioned: true,
      nativeCommand: true,
      accountName: reader.username,
      sentAt: 0,
      replyTo: topic === undefined ? route : { ...route, threadId: topic.id },
    },
  };
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
  // Skip an edit without text and files, because no person made it: Telegram edits a live location every few
  // seconds, and a poll when it ends.
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
      authors: authorsOf(message, reader),
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

/** Returns the sender. For a channel post or an anonymous sender, the chat counts as the sender. */
function senderOf(
  message: Fields,
  chat: Fields,
  type: InboundMessage["chat"]["type"],
): InboundMessage["sender"] | "bot" | undefined {
  const behind = fieldsOf(message.sender_chat);
  const person = fieldsOf(message.from);
  const behindId = idOf(behind.id);
  const isChat = behindId !== undefined;
  // Groups and channels have negative ids. With a positive id, a chat could impersonate a person, even an
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

/**
 * Returns the topic in which a message was written. Returns undefined outside of forums and for the General
 * topic.
 */
function topicOf(message: Fields): InboundMessage["chat"]["thread"] {
  const id = idOf(message.message_thread_id);
  if (message.is_topic_message !== true || id === undefined) return undefined;
  const created = fieldsOf(fieldsOf(message.reply_to_message).forum_topic_created);
  return { kind: "topic", id, ...optional({ name: textOf(created.name) }) };
}

/**
 * Returns the message that was quoted. In a topic, a message that quotes nothing refers to the creation of
 * the topic, which is not a quote.
 */
function answeredBy(message: Fields): Fields {
  const answered = fieldsOf(message.reply_to_message);
  return answered.forum_topic_created === undefined ? answered : {};
}

function quotedOf(message: Fields): InboundMessage["quoted"] {
  const answered = answeredBy(message);
  const elsewhere = fieldsOf(message.external_reply);
  const { text: part, entities } = fieldsOf(message.quote);
  const whole = Object.keys(answered).length > 0 ? answered : elsewhere;
  const text = summaryOf(textOf(part) === undefined ? whole : { ...whole, text: part, entities });
  if (text === undefined) return undefined;
  const party = Object.keys(fieldsOf(answered.sender_chat)).length > 0 ? answered.sender_chat : answered.from;
  const senderName = nameOf(fieldsOf(party)) ?? originName(fieldsOf(elsewhere.origin));
  return { text, ...optional({ senderName }) };
}

/**
 * Returns an id that differs for each edit of a message. If Telegram sends an edit again, the id is the same.
 */
function editOf(at: number, { words, entities, files, note }: Content): string {
  const held = JSON.stringify([linkedText(words, entities), note ?? "", files.map(({ fileId }) => fileId)]);
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
  const rest = linkedText(words, entities, length).trim();
  return name === undefined ? undefined : { name: name.toLowerCase(), to, rest };
}

function isSame(username: string | undefined, { username: own }: TelegramAccountContext): boolean {
  return username?.toLowerCase() === own.toLowerCase();
}

function wordsAt({ words }: Content, entity: Fields): string {
  const from = integerOf(entity.offset) ?? 0;
  return words.slice(from, from + (integerOf(entity.length) ?? 0));
}

function isMention(content: Content, entity: Fields, reader: TelegramAccountContext): boolean {
  if (entity.type === "text_mention") return idOf(fieldsOf(entity.user).id) === reader.id;
  return entity.type === "mention" && isSame(wordsAt(content, entity).slice(1), reader);
}

/** Returns whether the text mentions the bot. */
function isNamed(content: Content, reader: TelegramAccountContext): boolean {
  return content.entities.some(
    (entity) =>
      isMention(content, entity, reader) ||
      (entity.type === "bot_command" && isSame(wordsAt(content, entity).split("@")[1], reader)),
  );
}

/** Removes a mention of the bot at the start of the text, unless nothing else would remain. */
function spokenWords(content: Content, reader: TelegramAccountContext): string {
  const { words, entities } = content;
  const call = entities.find((entity) => entity.offset === 0 && isMention(content, entity, reader));
  const rest = words.slice(integerOf(call?.length) ?? 0).replace(/^[,:]?\s+/, "");
  const isCall = call !== undefined && rest.trim() !== "";
  return linkedText(words, entities, isCall ? words.length - rest.length : 0);
}

function wordsOf(
  message: Fields,
  content: Content,
  reader: TelegramAccountContext,
  type: InboundMessage["chat"]["type"],
): Pick<Words, "text" | "mentioned" | "nativeCommand" | "forwarded"> {
  const { words, entities, note } = content;
  const forwarded = forwardNote(message);
  const answers = idOf(fieldsOf(answeredBy(message).from).id) === reader.id;
  const lines = (...parts: (string | undefined)[]): string =>
    parts.filter((part) => part !== undefined && part !== "").join("\n");
  if (forwarded !== undefined) {
    const text = lines(forwarded, linkedText(words, entities), note);
    return { text, mentioned: answers, forwarded: true };
  }
  const mentioned = answers || isNamed(content, reader);
  const command = commandOf(content);
  // A command that names another bot is not for us.
  const isOurs = command !== undefined && (command.to === undefined || isSame(command.to, reader));
  const name = isOurs ? reader.menu.get(command.name) : undefined;
  if (name === undefined) return { text: lines(spokenWords(content, reader), note), mentioned };
  // If the name in the menu differs from ours, like `/start` for `help`, the arguments may mean something
  // else: do not pass them on.
  const isRenamed = command?.name !== name.replaceAll("-", "_");
  const text = isRenamed ? `/${name}` : `/${name} ${command?.rest ?? ""}`.trim();
  // In a group, Telegram's menu adds the bot's name to a command. Without the name, the command may be for
  // any bot.
  const isChosen = type === "direct" || command?.to !== undefined;
  return isChosen ? { text, mentioned, nativeCommand: true } : { text, mentioned };
}
