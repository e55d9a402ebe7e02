// Owns what a message of the platform holds, in our words: its text, and what came with it.
// WC1: each kind becomes text, media, or a short note in square brackets. What is no message (a reaction, a
//      message that was taken back, news of the platform's own) is none.
// WC2: notes are of bounded length and on one line, whatever stands in the fields that they are made of.

import { fieldsOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import type { InboundMedia } from "../channel.ts";
import { type Fields, listOf } from "../fields.ts";
import { textOf } from "./fields.ts";

const NOTE_CHARS_MAX = 1_000;
const CONTACTS_MAX = 10;
/** Of a file's name, and of its type. */
const NAME_CHARS_MAX = 255;
const MEDIA_ID = /^[\w-]{1,200}$/;

export interface Content {
  readonly text: string;
  readonly media: readonly MediaFields[];
  /** The sender passed it on. */
  readonly forwarded?: true;
}

/** Media as it stands in a message: not read yet. */
export type MediaFields = Omit<InboundMedia, "load"> & { readonly id: string };

/** A note for the agent. */
function note(...parts: readonly string[]): string {
  const line = parts
    .map((part) => part.replace(/[\s[\]]+/g, " ").trim())
    .filter((part) => part !== "")
    .join(", ");
  return `[${line.slice(0, NOTE_CHARS_MAX).toWellFormed()}]`;
}

const MEDIA_KINDS: ReadonlyMap<string, InboundMedia["kind"]> = new Map([
  ["image", "image"],
  ["video", "video"],
  ["document", "file"],
  ["audio", "audio"],
]);

function mediaContent(kind: InboundMedia["kind"], fields: Fields): Content {
  const id = textOf(fields.id);
  const text = textOf(fields.caption);
  const words = kind === "file" ? "a file" : kind === "voice" ? "a voice message" : kind;
  // Without an id there is nothing to be read: media that the platform could not take in, for one.
  if (!MEDIA_ID.test(id))
    return { text: `${note(words, "it could not be had")}${text && `\n${text}`}`, media: [] };
  const name = textOf(fields.filename).slice(0, NAME_CHARS_MAX).toWellFormed() || undefined;
  const mimeType = textOf(fields.mime_type).slice(0, NAME_CHARS_MAX).toWellFormed() || undefined;
  return { text, media: [{ kind, id, ...optional({ name, mimeType }) }] };
}

function location(fields: Fields): string {
  const { latitude, longitude, name, address } = fields;
  const at = typeof latitude === "number" && typeof longitude === "number" ? `${latitude} ${longitude}` : "";
  return note(`location: ${at}`, textOf(name), textOf(address));
}

function contacts(list: unknown): string {
  const shown = listOf(list).slice(0, CONTACTS_MAX);
  const lines = shown.map((one) => {
    const { name, phones, emails } = fieldsOf(one);
    const numbers = listOf(phones).map((phone) => textOf(fieldsOf(phone).phone));
    const addresses = listOf(emails).map((email) => textOf(fieldsOf(email).email));
    return note(`contact: ${textOf(fieldsOf(name).formatted_name)}`, ...numbers, ...addresses);
  });
  const more = listOf(list).length - shown.length;
  return [...lines, ...(more > 0 ? [note(`and ${more} more contacts`)] : [])].join("\n");
}

/** What somebody has chosen, or filled in. */
function interactive(fields: Fields): string {
  const button = fieldsOf(fields.button_reply);
  const row = fieldsOf(fields.list_reply);
  const chosen = textOf(button.title) || textOf(row.title);
  if (chosen !== "") return chosen;
  const form = fieldsOf(fields.nfm_reply);
  return note("a form was filled in", textOf(form.name), textOf(form.body), textOf(form.response_json));
}

/** Changes of a message, a poll or a list that only people's own programs can read. */
const UNREADABLE_CHANGES = ["edit", "pin", "poll_update", "reaction", "revoke"];

function unsupported(fields: Fields): string | undefined {
  const kind = textOf(fields.type);
  if (UNREADABLE_CHANGES.includes(kind)) return undefined;
  const named = /^[a-z_]{1,40}$/.test(kind) ? kind.replaceAll("_", " ") : "";
  return note("a message of a kind that WhatsApp does not hand on", named);
}

function textContent(type: string, message: Fields): string | undefined {
  const fields = fieldsOf(message[type]);
  switch (type) {
    case "text":
      return textOf(fields.body);
    case "button":
      return textOf(fields.text) || textOf(fields.payload);
    case "interactive":
      return interactive(fields);
    case "sticker":
      return note("sticker");
    case "location":
      return location(fields);
    case "contacts":
      return contacts(message.contacts);
    case "order":
      return note(`order of ${listOf(fields.product_items).length} products`, textOf(fields.text));
    case "unsupported":
      return unsupported(fields);
    // A reaction asks for no answer; the others tell of somebody, or of something that is gone.
    case "reaction":
    case "revoke":
    case "system":
    case "request_welcome":
      return undefined;
    default:
      return note("a message of a kind that is not known here", /^[a-z_]{1,40}$/.test(type) ? type : "");
  }
}

/** What a message holds; undefined: it is none that somebody could answer. */
export function contentOf(message: Fields): Content | undefined {
  const type = textOf(message.type);
  const kind = MEDIA_KINDS.get(type);
  const fields = fieldsOf(message[type]);
  const whole =
    kind === undefined
      ? { text: textContent(type, message), media: [] }
      : mediaContent(kind === "audio" && fields.voice === true ? "voice" : kind, fields);
  const { text, media } = whole;
  if (text === undefined || (text === "" && media.length === 0)) return undefined;
  const { forwarded, frequently_forwarded } = fieldsOf(message.context);
  const isForwarded = forwarded === true || frequently_forwarded === true;
  if (!isForwarded) return { text, media };
  // The agent is told that these are somebody else's words, as at other channels.
  return { text: text === "" ? "[forwarded]" : `[forwarded]\n${text}`, media, forwarded: true };
}
