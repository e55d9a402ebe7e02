// Reads the content of a Telegram message: its text, its files, and notes in square brackets for other
// content.

import { type Fields, fieldsOf, integerOf, listOf, textOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { cut } from "../../core/text/cut.ts";
import type { InboundMedia } from "../channel.ts";

/** A file on the server that was not downloaded yet. */
export interface FileRef {
  readonly kind: InboundMedia["kind"];
  readonly fileId: string;
  readonly name?: string;
  readonly mimeType?: string;
  readonly bytes?: number;
}

export interface Content {
  /** The sender's text, or the caption of a file. */
  readonly words: string;
  /** Entities in `words`: Telegram's ranges for mentions, links and formatting. */
  readonly entities: readonly Fields[];
  readonly files: readonly FileRef[];
  /** A note for content that is neither text nor a file. */
  readonly note?: string;
}

const NOTE_CHARS_MAX = 500;
const POLL_OPTIONS_MAX = 12;
/** A file with one of these MIME types counts as a picture. */
const PICTURE = /^image\/(?:jpeg|png|gif|webp)$/i;

/** Formats a note: `[<kind>: <detail>, <detail>]`. */
function note(what: string, ...details: (string | undefined)[]): string {
  const told = details.filter((detail) => detail !== undefined && detail !== "").join(", ");
  const line = `${what}${told === "" ? "" : `: ${told}`}`.replace(/\s+/g, " ");
  return `[${cut(line, NOTE_CHARS_MAX)}]`;
}

/** Returns the first and last name of a user or a contact. */
function fullName({ first_name, last_name }: Fields): string | undefined {
  const name = [textOf(first_name), textOf(last_name)].filter((part) => part !== undefined).join(" ");
  return name === "" ? undefined : name;
}

/** Returns the name of a user or a chat. */
export function nameOf(party: Fields): string | undefined {
  return textOf(party.title) ?? fullName(party) ?? textOf(party.username);
}

/** Returns the name of the author of a forwarded message. */
export function originName(origin: Fields): string | undefined {
  const { sender_user, sender_user_name, sender_chat, chat } = origin;
  return (
    nameOf(fieldsOf(sender_user)) ??
    textOf(sender_user_name) ??
    nameOf(fieldsOf(sender_chat)) ??
    nameOf(fieldsOf(chat))
  );
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
  return note("poll", textOf(question), listed);
}

function checklist({ title, tasks }: Fields): string {
  const listed = listOf(tasks)
    .slice(0, POLL_OPTIONS_MAX)
    .map((task) => textOf(fieldsOf(task).text));
  return note("checklist", textOf(title), listed.filter((task) => task !== undefined).join(" / "));
}

/** Formats notes for content that is neither text nor a file, by its field. */
const NOTES: Readonly<Record<string, (field: Fields) => string>> = {
  sticker: ({ emoji, set_name }) => note("sticker", textOf(emoji), textOf(set_name)),
  // A venue also has the field `location`, so it is checked before it.
  venue: ({ title, address, location }) =>
    note("place", textOf(title), textOf(address), coordinates(fieldsOf(location))),
  location: (field) =>
    note(field.live_period === undefined ? "location" : "live location", coordinates(field)),
  contact: (field) => note("contact", fullName(field), textOf(field.phone_number)),
  poll,
  checklist,
  dice: ({ emoji, value }) => note("dice", `${textOf(emoji) ?? ""} ${integerOf(value) ?? ""}`.trim()),
  game: ({ title }) => note("game", textOf(title)),
  story: () => note("story"),
  invoice: ({ title }) => note("invoice", textOf(title)),
  paid_media: () => note("paid media"),
  giveaway: () => note("giveaway"),
  rich_message: () => note("formatted page, which can't be read here"),
};

/** The fields that contain a file. The first one that is present is used. */
const FILES: readonly { readonly field: string; readonly kind: FileRef["kind"] }[] = [
  // An animation also has the field `document`, so it is checked before it.
  { field: "animation", kind: "video" },
  { field: "voice", kind: "voice" },
  { field: "audio", kind: "audio" },
  { field: "video", kind: "video" },
  { field: "video_note", kind: "video" },
  { field: "live_photo", kind: "video" },
  { field: "document", kind: "file" },
];

/** MIME types that the platform omits because they never vary. */
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

/** Returns the largest version of a photo. */
function photoOf(sizes: readonly unknown[]): FileRef | undefined {
  const area = ({ width, height }: Fields): number => (integerOf(width) ?? 0) * (integerOf(height) ?? 0);
  const [largest] = sizes.map(fieldsOf).sort((one, other) => area(other) - area(one));
  return largest === undefined ? undefined : fileOf(largest, "photo", "image");
}

function filesOf(message: Fields): readonly FileRef[] {
  const photo = photoOf(listOf(message.photo));
  if (photo !== undefined) return [photo];
  for (const { field, kind } of FILES) {
    const file = fileOf(fieldsOf(message[field]), field, kind);
    if (file !== undefined) return [file];
  }
  return [];
}

/** Returns the content of a message. Undefined for a service message, for example that somebody joined. */
export function contentOf(message: Fields): Content | undefined {
  const words = textOf(message.text) ?? textOf(message.caption) ?? "";
  const ofWords = textOf(message.text) === undefined ? message.caption_entities : message.entities;
  const files = filesOf(message);
  const told = Object.keys(NOTES).find((field) => Object.keys(fieldsOf(message[field])).length > 0);
  const content = { words, entities: listOf(ofWords).map(fieldsOf), files };
  if (told !== undefined) return { ...content, note: NOTES[told]?.(fieldsOf(message[told])) ?? "" };
  return words === "" && files.length === 0 ? undefined : content;
}

/** Returns a quoted message as one text. */
export function summaryOf(message: Fields): string | undefined {
  const content = contentOf(message);
  if (content === undefined) return undefined;
  const { words, files, note: told } = content;
  const named = files.map(({ kind, name }) => note(kind, name));
  return [words, ...named, told].filter((part) => part !== undefined && part !== "").join("\n");
}

/** Returns the note that is put before a forwarded text. */
export function forwardNote(origin: Fields): string {
  const name = originName(origin);
  return note(name === undefined ? "forwarded" : `forwarded from ${name}`);
}
