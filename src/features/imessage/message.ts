// Converts imsg's messages to the message format that all channels share.
// IM1: the data is untrusted. A message that cannot be read is skipped, and the reason is logged.
// IM2: reactions, and messages from this Mac's own account, are ignored.
// IM3: the Messages app has no mentions. A text mentions the agent if it contains one of the agent's names as
//      a separate word.

import type { InboundMedia } from "../../channels/channel.ts";
import { idIn, mediaKind, nameIn, pollNote, quoteIn, type Read } from "../../channels/frame.ts";
import { countOf, type Fields, fieldsOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";

const PATH_CHARS_MAX = 4_096;
const ATTACHMENTS_MAX = 32;
const POLL_OPTIONS_MAX = 20;

/** The message that a reply answers, as far as it is known. */
export interface Parent {
  readonly text: string;
  readonly isOwn: boolean;
  readonly sender?: string;
  /** Number or address of the sender. Absent if it is unknown. */
  readonly senderId?: string;
}

export interface Reading {
  readonly channel: string;
  readonly accountId: string;
  /** Names of the agent. In a group, a text that contains one of them mentions the agent. */
  readonly names: readonly string[];
  /** Returns a function that loads an attachment. */
  readonly load: (path: string) => InboundMedia["load"];
  /** Finds the message with this id in this chat. */
  readonly parentOf: (guid: string, chatId: number) => Promise<Parent | undefined>;
  /** The current time, for a message that has no time. */
  readonly now: number;
}

/**
 * Returns whether an id belongs to a group: it contains `;+;`. A person's id is like `+15550100` or
 * `ada@example.org`.
 */
export function isGroupId(id: string): boolean {
  return id.includes(";+;");
}

function mediaOf(message: Fields, load: Reading["load"]): { media: InboundMedia[]; notes: string[] } {
  const notes: string[] = [];
  const media = objectsOf(message.attachments, ATTACHMENTS_MAX).flatMap((one): InboundMedia[] => {
    if (one.is_sticker === true) {
      notes.push("[sticker]");
      return [];
    }
    const name = nameIn(one.transfer_name);
    const path = textOf(one.original_path) ?? textOf(one.path) ?? textOf(one.filename);
    if (one.missing === true || path === undefined || path.length > PATH_CHARS_MAX) {
      notes.push(`[a file that is not on the Mac${name === undefined ? "" : `: ${name}`}]`);
      return [];
    }
    const mimeType = nameIn(one.mime_type);
    const bytes = countOf(one.total_bytes) ?? countOf(one.byte_size);
    return [
      {
        // Only voice messages have the format of Core Audio.
        kind: mediaKind(mimeType, one.uti === "com.apple.coreaudio-format"),
        ...optional({ name, mimeType, bytes }),
        load: load(path),
      },
    ];
  });
  return { media, notes };
}

/** Escapes the characters with a meaning in a pattern. With the flag `u`, no other one may be escaped. */
function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** Returns whether the text contains one of the names, with or without an `@`. */
function isNamed(text: string, names: readonly string[]): boolean {
  return names.some((name) => {
    const word = `(?<![\\p{L}\\p{N}_])${escapePattern(name)}(?![\\p{L}\\p{N}_])`;
    return name !== "" && new RegExp(word, "iu").test(text);
  });
}

/** Removes an `@name` at the start, because a command may follow it. */
function withoutCall(text: string, names: readonly string[]): string {
  const call = names.map(escapePattern).join("|");
  return call === "" ? text : text.replace(new RegExp(`^@(?:${call})[,:]?\\s+(?=\\S)`, "iu"), "");
}

/** The character that stands for a file in a message's text. */
const PLACEHOLDER = /\uFFFC/g;

async function quoteOf(message: Fields, { parentOf }: Reading): Promise<Parent | undefined> {
  const guid = idIn(message.reply_to_guid) ?? idIn(message.thread_originator_guid);
  if (guid === undefined) return undefined;
  const chatId = countOf(message.chat_id);
  const known = chatId === undefined ? undefined : await parentOf(guid, chatId);
  if (known !== undefined) return known;
  // imsg does not report whether the agent's account wrote the quoted message.
  const text = textOf(message.reply_to_text);
  const sender = nameIn(message.reply_to_sender);
  const senderId = idIn(message.reply_to_sender);
  return text === undefined ? undefined : { text, isOwn: false, ...optional({ sender, senderId }) };
}

/** Returns the author of a quoted text. In a direct chat, that is the sender or the agent. */
function authorsOf(parent: Parent | undefined): string[][] {
  if (parent === undefined || parent.isOwn) return [];
  return [parent.senderId === undefined ? [] : [parent.senderId]];
}

export async function readMessage(message: Fields, reading: Reading): Promise<Read> {
  const { channel, accountId, names, load, now } = reading;
  if (message.is_from_me === true || message.is_reaction === true) return { kind: "nothing" };
  const row = countOf(message.id);
  const messageId = idIn(message.guid) ?? (row === undefined ? undefined : `row:${row}`);
  if (messageId === undefined) return { kind: "unreadable", why: "it has no id" };
  const sender = idIn(message.sender);
  if (sender === undefined) return { kind: "unreadable", why: "it has no sender" };
  const guid = idIn(message.chat_guid);
  const identifier = idIn(message.chat_identifier);
  const isGroup = message.is_group === true || (guid !== undefined && isGroupId(guid));
  if (isGroup && guid === undefined) return { kind: "unreadable", why: "its group has no id" };
  const chatId = isGroup && guid !== undefined ? guid : sender;
  const { media, notes } = mediaOf(message, load);
  const said = (textOf(message.text) ?? "").replace(PLACEHOLDER, "").toWellFormed();
  const { kind, question, options } = fieldsOf(message.poll);
  const words = objectsOf(options, POLL_OPTIONS_MAX).flatMap(({ text }) => nameIn(text) ?? []);
  const polls = kind === "created" ? [pollNote(nameIn(question) ?? "without a question", words)] : [];
  const text = [isGroup ? withoutCall(said, names) : said, ...notes, ...polls]
    .filter((part) => part !== "")
    .join("\n");
  if (text === "" && media.length === 0) return { kind: "nothing" };
  const parent = await quoteOf(message, reading);
  const quoted = parent && { text: quoteIn(parent.text), ...optional({ senderName: parent.sender }) };
  const alsoKnownAs = [identifier, countOf(message.chat_id)?.toString()].filter((id) => id !== undefined);
  const sentAt = Date.parse(textOf(message.created_at) ?? "");
  return {
    kind: "message",
    message: {
      channel,
      accountId,
      messageId,
      chat: {
        type: isGroup ? "group" : "direct",
        id: chatId,
        ...(isGroup ? optional({ name: nameIn(message.chat_name) }) : {}),
        ...(isGroup && alsoKnownAs.length > 0 ? { alsoKnownAs } : {}),
      },
      sender: { id: sender, ...optional({ name: nameIn(message.sender_name) }) },
      text,
      mentioned: parent?.isOwn === true || (isGroup && isNamed(said, names)),
      ...optional({ quoted }),
      authors: isGroup ? authorsOf(parent) : [],
      media,
      sentAt: Number.isSafeInteger(sentAt) && sentAt > 0 ? sentAt : now,
      replyTo: { channel, to: chatId, accountId },
    },
  };
}
