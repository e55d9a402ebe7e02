// Converts signal-cli's events to the message format that all channels share.
// EN1: the data is untrusted. A message that cannot be read is skipped, and the reason is logged.
// A message and its edits have the same id, built from sender and time, as in Signal itself.
// EN3: messages that this account wrote itself, on any of its devices, are ignored. View-once pictures are
//      not kept.

import type { InboundMedia, InboundMessage } from "../../channels/channel.ts";
import { idIn, mediaKind, nameIn, pollNote, quoteIn, type Read } from "../../channels/frame.ts";
import { countOf, type Fields, fieldsOf, objectsOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";

const MENTIONS_MAX = 500;
const ATTACHMENTS_MAX = 32;
const POLL_OPTIONS_MAX = 20;
/**
 * MIME type of the attachment that holds the rest of a long text. signal-cli has already appended this rest
 * to the text.
 */
const LONG_TEXT = "text/x-signal-plain";

export type LoadAttachment = (id: string) => InboundMedia["load"];

export interface Reading {
  readonly channel: string;
  readonly accountId: string;
  /** The number and the id of the agent's account, if they are known. */
  readonly own: ReadonlySet<string>;
  readonly load: LoadAttachment;
}

const NOTHING: Read = { kind: "nothing" };

/** Returns the ids of a person. The number comes first, because it is what people know and configure. */
function idsOf(number: unknown, uuid: unknown, either: unknown): string[] {
  const ids = [idIn(number), idIn(uuid), idIn(either)].filter((id) => id !== undefined);
  return [...new Set(ids)];
}

interface Mention {
  readonly start: number;
  readonly length: number;
  readonly ids: readonly string[];
}

function mentionsOf(value: unknown): Mention[] {
  return objectsOf(value, MENTIONS_MAX)
    .flatMap((one): Mention[] => {
      const [start, length] = [countOf(one.start), countOf(one.length)];
      const ids = idsOf(one.number, one.uuid, one.name);
      return start === undefined || length === undefined || ids.length === 0 ? [] : [{ start, length, ids }];
    })
    .sort((one, other) => one.start - other.start);
}

/**
 * Replaces each placeholder in the text with the name of the mentioned person. Offsets are in UTF-16 units.
 */
function withNames(text: string, mentions: readonly Mention[]): string {
  let out = "";
  let at = 0;
  for (const { start, length, ids } of mentions) {
    // Skip a mention that is not within the text, or that overlaps the mention before it.
    if (start < at || start + length > text.length) continue;
    out += `${text.slice(at, start)}@${ids[0]}`;
    at = start + length;
  }
  return out + text.slice(at);
}

/** Returns the text of a message, without a mention of the agent at the start. */
function spokenText(text: string, mentions: readonly Mention[], own: ReadonlySet<string>): string {
  const [first, ...others] = mentions;
  const isCall = first !== undefined && first.start === 0 && first.ids.some((id) => own.has(id));
  if (!isCall || first.length > text.length) return withNames(text, mentions);
  const moved = others.map((one) => ({ ...one, start: one.start - first.length }));
  return withNames(text.slice(first.length), moved).trimStart();
}

function mediaOf(data: Fields, load: LoadAttachment): InboundMedia[] {
  if (data.viewOnce === true) return [];
  return objectsOf(data.attachments, ATTACHMENTS_MAX).flatMap((one): InboundMedia[] => {
    const id = idIn(one.id);
    const mimeType = nameIn(one.contentType);
    if (id === undefined || mimeType === LONG_TEXT) return [];
    const name = nameIn(one.filename);
    const bytes = countOf(one.size);
    // A voice message has no file name, but an attached audio file has one.
    const isVoice = name === undefined && mimeType?.startsWith("audio/") === true;
    return [{ kind: mediaKind(mimeType, isVoice), ...optional({ name, mimeType, bytes }), load: load(id) }];
  });
}

/** Returns notes in square brackets for content that is neither text nor a file. */
function notesOf(data: Fields): string[] {
  const notes: string[] = [];
  if (data.viewOnce === true) notes.push("[a view-once picture, which was not kept]");
  if (data.sticker !== undefined && data.sticker !== null) notes.push("[sticker]");
  for (const contact of objectsOf(data.contacts, POLL_OPTIONS_MAX)) {
    const { display, given, family } = fieldsOf(contact.name);
    const name = nameIn(display) ?? [nameIn(given), nameIn(family)].filter(Boolean).join(" ");
    const numbers = objectsOf(contact.phone, POLL_OPTIONS_MAX).flatMap(({ value }) => nameIn(value) ?? []);
    notes.push(`[contact: ${[name, ...numbers].filter(Boolean).join(", ") || "without a name"}]`);
  }
  const poll = fieldsOf(data.pollCreate);
  const question = nameIn(poll.question);
  if (question !== undefined) {
    const given = Array.isArray(poll.options) ? poll.options.slice(0, POLL_OPTIONS_MAX) : [];
    const options = given.flatMap((option) => nameIn(option) ?? nameIn(fieldsOf(option).text) ?? []);
    notes.push(pollNote(question, options));
  }
  if (data.payment !== undefined && data.payment !== null) notes.push("[payment]");
  return notes;
}

function quoteOf(data: Fields, own: ReadonlySet<string>) {
  const quote = fieldsOf(data.quote);
  if (countOf(quote.id) === undefined) return undefined;
  const author = idsOf(quote.authorNumber, quote.authorUuid, quote.author);
  const isOwn = author.some((id) => own.has(id));
  const said = withNames(textOf(quote.text) ?? "", mentionsOf(quote.mentions));
  const hasFile = objectsOf(quote.attachments, 1).length > 0;
  const text = said === "" && hasFile ? "[a file]" : said;
  const senderName = isOwn ? undefined : author[0];
  return { isOwn, author, quoted: { text: quoteIn(text), ...optional({ senderName }) } };
}

interface Spoken {
  readonly envelope: Fields;
  readonly data: Fields;
  /** Time of the message. For an edit, the time of the edited message. */
  readonly at: number;
  readonly edit?: string;
}

function messageOf({ envelope, data, at, edit }: Spoken, reading: Reading): Read {
  const { channel, accountId, own, load } = reading;
  const [sender, ...alsoKnownAs] = idsOf(envelope.sourceNumber, envelope.sourceUuid, envelope.source);
  if (sender === undefined) return { kind: "unreadable", why: "it has no sender" };
  if ([sender, ...alsoKnownAs].some((id) => own.has(id))) return NOTHING;
  const group = fieldsOf(data.groupInfo);
  const isGroup = data.groupInfo !== undefined && data.groupInfo !== null;
  const groupId = idIn(group.groupId);
  if (isGroup && groupId === undefined) return { kind: "unreadable", why: "its group has no id" };
  const mentions = mentionsOf(data.mentions);
  const quote = quoteOf(data, own);
  const media = mediaOf(data, load);
  const body = spokenText(textOf(data.message) ?? "", mentions, own);
  const text = [body, ...notesOf(data)].filter((part) => part !== "").join("\n");
  const isNamed = mentions.some(({ ids }) => ids.some((id) => own.has(id)));
  // Skip content that is not a message, like a reaction or a new name of a group. A mention without text is a
  // message.
  if (text === "" && media.length === 0 && !isNamed) return NOTHING;
  const chatId = groupId ?? sender;
  const chatName = groupId === undefined ? undefined : nameIn(group.groupName);
  const message: InboundMessage = {
    channel,
    accountId,
    // Prefer the account id to the number, because it never changes. A sender may get a number later.
    messageId: `${at}:${idIn(envelope.sourceUuid) ?? sender}`,
    chat: {
      type: groupId === undefined ? "direct" : "group",
      id: chatId,
      ...optional({ name: chatName }),
    },
    sender: {
      id: sender,
      ...optional({ name: nameIn(envelope.sourceName) }),
      ...(alsoKnownAs.length === 0 ? {} : { alsoKnownAs }),
    },
    text: text.toWellFormed(),
    mentioned: isNamed || quote?.isOwn === true,
    ...optional({ quoted: quote?.quoted, edit }),
    authors: quote === undefined || quote.isOwn ? [] : [quote.author],
    media,
    sentAt: countOf(data.timestamp) ?? at,
    replyTo: { channel, to: chatId, accountId },
  };
  return { kind: "message", message };
}

export function readEnvelope(event: Fields, reading: Reading): Read {
  const envelope = fieldsOf(event.envelope);
  const data = envelope.dataMessage;
  if (typeof data === "object" && data !== null) {
    const fields = fieldsOf(data);
    const at = countOf(fields.timestamp) ?? countOf(envelope.timestamp);
    if (at === undefined) return { kind: "unreadable", why: "it has no time" };
    return messageOf({ envelope, data: fields, at }, reading);
  }
  if (typeof envelope.editMessage === "object" && envelope.editMessage !== null) {
    const { targetSentTimestamp, dataMessage } = fieldsOf(envelope.editMessage);
    const fields = fieldsOf(dataMessage);
    const [at, changedAt] = [countOf(targetSentTimestamp), countOf(fields.timestamp)];
    if (at === undefined || changedAt === undefined)
      return { kind: "unreadable", why: "it is an edit without the time of the edited message" };
    return messageOf({ envelope, data: fields, at, edit: String(changedAt) }, reading);
  }
  const { message } = fieldsOf(event.exception);
  if (textOf(message) !== undefined) return { kind: "unreadable", why: "signal-cli could not read it" };
  return Object.keys(envelope).length === 0 ? { kind: "unreadable", why: "it is not an envelope" } : NOTHING;
}
