// Reads the content of a WhatsApp message: its text and its media.
// WC1: each kind of message becomes text, media, or a short note in square brackets. Reactions, deleted
//      messages and notices of the platform are ignored.
// A note is always one line of limited length, whatever the message contains.

import type { InboundMedia } from "../../channels/channel.ts";
import { type Fields, fieldsOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { textOf } from "./fields.ts";

const NOTE_CHARS_MAX = 1_000;
const CONTACTS_MAX = 10;
/** Maximum length of a file's name and of its MIME type. */
const NAME_CHARS_MAX = 255;
const MEDIA_ID = /^[\w-]{1,200}$/;

export interface Content {
  readonly text: string;
  readonly media: readonly MediaFields[];
  /** Present if the sender forwarded the message. */
  readonly forwarded?: true;
}

/** A media file of a message that is not downloaded yet. */
export type MediaFields = Omit<InboundMedia, "load"> & { readonly id: string };

/** Formats a note in square brackets for the agent. */
function note(...parts: readonly string[]): string {
  const line = parts
    .map((part) => part.replace(/[\s[\]]+/g, " ").trim())
    .filter((part) => part !== "")
    .join(", ");
  return `[${head(line, NOTE_CHARS_MAX)}]`;
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
  // Media without an id cannot be read. For example, the id is missing if the platform could not store the
  // file.
  if (!MEDIA_ID.test(id))
    return { text: `${note(words, "it could not be read")}${text && `\n${text}`}`, media: [] };
  const name = head(textOf(fields.filename), NAME_CHARS_MAX) || undefined;
  const mimeType = head(textOf(fields.mime_type), NAME_CHARS_MAX) || undefined;
  return { text, media: [{ kind, id, ...optional({ name, mimeType }) }] };
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

/** Kinds of changes that have no readable content, like edits, polls and reactions. */
const UNREADABLE_CHANGES = ["edit", "pin", "poll_update", "reaction", "revoke"];

function textContent(type: string, message: Fields): string | undefined {
  const fields = fieldsOf(message[type]);
  switch (type) {
    case "text":
      return textOf(fields.body);
    case "button":
      return textOf(fields.text) || textOf(fields.payload);
    case "interactive": {
      const button = fieldsOf(fields.button_reply);
      const row = fieldsOf(fields.list_reply);
      const chosen = textOf(button.title) || textOf(row.title);
      if (chosen !== "") return chosen;
      const form = fieldsOf(fields.nfm_reply);
      return note("a form was filled in", textOf(form.name), textOf(form.body), textOf(form.response_json));
    }
    case "sticker":
      return note("sticker");
    case "location": {
      const { latitude, longitude, name, address } = fields;
      const at =
        typeof latitude === "number" && typeof longitude === "number" ? `${latitude} ${longitude}` : "";
      return note(`location: ${at}`, textOf(name), textOf(address));
    }
    case "contacts":
      return contacts(message.contacts);
    case "order":
      return note(`order of ${listOf(fields.product_items).length} products`, textOf(fields.text));
    case "unsupported": {
      const kind = textOf(fields.type);
      if (UNREADABLE_CHANGES.includes(kind)) return undefined;
      const named = /^[a-z_]{1,40}$/.test(kind) ? kind.replaceAll("_", " ") : "";
      return note("a message of a kind that WhatsApp does not forward to programs", named);
    }
    // A reaction needs no answer, and the kinds below it are notices of the platform.
    case "reaction":
    case "revoke":
    case "system":
    case "request_welcome":
      return undefined;
    default:
      return note("a message of an unknown kind", /^[a-z_]{1,40}$/.test(type) ? type : "");
  }
}

/** Returns the content of a message. Undefined if it needs no answer. */
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
  // Tell the agent that another person wrote this, as other channels do.
  return { text: text === "" ? "[forwarded]" : `[forwarded]\n${text}`, media, forwarded: true };
}
