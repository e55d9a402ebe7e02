// Parses webhook bodies: incoming messages, and the status of messages that we sent.
// WI1: each invalid part is skipped, and the other parts are still read. The account's own messages are
//      ignored.

import { type Fields, fieldsOf, listOf } from "../../core/json.ts";
import { optional } from "../../core/optional.ts";
import { head } from "../../core/text/cut.ts";
import { type Content, contentOf } from "./content.ts";
import { textOf } from "./fields.ts";
import { isGroup, isPerson } from "./recipient.ts";

const ID_CHARS_MAX = 512;
const NAME_CHARS_MAX = 200;
/** Maximum valid time in seconds since 1970: the year 9999. */
const SECONDS_MAX = 253_402_300_799;

export interface Arrived {
  readonly kind: "message";
  readonly messageId: string;
  /** An id of the edit. Present if this message edits an earlier one. */
  readonly edit?: string;
  readonly groupId?: string;
  readonly senderId: string;
  readonly senderName?: string;
  readonly alsoKnownAs: readonly string[];
  readonly sentAtMs?: number;
  readonly content: Content;
  /** The message that this one quotes, and whether the account sent that message. */
  readonly answers?: { readonly id: string; readonly isOurs: boolean };
  /** True if the text contains the account's number: people mention it that way in groups. */
  readonly namesUs: boolean;
}

/** A text of the account that the platform accepted but did not deliver. */
export interface Failed {
  readonly kind: "failed";
  readonly messageId: string;
  readonly to: string;
  /** The first of the errors that the platform reports. */
  readonly error: unknown;
}

/** An error that does not belong to a message. */
export interface AccountError {
  readonly kind: "told";
  readonly error: unknown;
}

export interface Skipped {
  readonly kind: "skipped";
  readonly why: string;
  /** True if the part is valid, but there is nothing to do. */
  readonly isFine: boolean;
}

export type WebHookEvent = Arrived | Failed | AccountError | Skipped;

/** The events that a webhook reports about one phone number, in order. */
export interface NumberNews {
  readonly phoneNumberId: string;
  readonly events: readonly WebHookEvent[];
}

const skipMessage = (why: string, isFine = false): Skipped => ({ kind: "skipped", why, isFine });
const isId = (id: string): boolean => id.length <= ID_CHARS_MAX && /^[!-~]+$/.test(id);

function sentAt(timestamp: unknown): { sentAtMs?: number } {
  const text = typeof timestamp === "number" ? String(timestamp) : textOf(timestamp);
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  return seconds > 0 && seconds <= SECONDS_MAX ? { sentAtMs: seconds * 1_000 } : {};
}

type Sender = Pick<Arrived, "senderId" | "senderName" | "alsoKnownAs">;

/** Returns the sender, or undefined if the message has no valid sender. */
function senderOf(message: Fields, contacts: readonly Fields[]): Sender | undefined {
  const number = textOf(message.from);
  const userId = textOf(message.from_user_id);
  const senderId = number || userId;
  if (!isPerson(senderId)) return undefined;
  const contact =
    contacts.find(({ wa_id, user_id }) => wa_id === senderId || (userId !== "" && user_id === userId)) ??
    (contacts.length === 1 ? contacts[0] : undefined);
  const { name, username } = fieldsOf(contact?.profile);
  // Leave out user names, because another person may use them later.
  const others = [userId, textOf(contact?.wa_id)];
  const alsoKnownAs = others.filter((id) => id !== "" && id !== senderId && isId(id));
  const shown = textOf(name) || textOf(username);
  const senderName = head(shown, NAME_CHARS_MAX) || undefined;
  return { senderId, alsoKnownAs, ...optional({ senderName }) };
}

/** Reads the fields of an edit, which contains the whole new message. */
function readEdit(message: Fields): { now: Fields; messageId: string; edit?: string } {
  const messageId = textOf(message.id);
  if (message.type !== "edit") return { now: message, messageId };
  const { original_message_id, message: now } = fieldsOf(message.edit);
  return { now: fieldsOf(now), messageId: textOf(original_message_id), edit: messageId };
}

function messageEvent(raw: unknown, contacts: readonly Fields[], ourNumber: string): Arrived | Skipped {
  const message = fieldsOf(raw);
  const { now, messageId, edit } = readEdit(message);
  if (!isId(messageId) || edit === "") return skipMessage("a message without an id");
  const sender = senderOf(message, contacts);
  if (sender === undefined) return skipMessage("a message without a sender");
  if (ourNumber !== "" && sender.senderId === ourNumber) return skipMessage("a message of our own", true);
  const groupId = textOf(message.group_id);
  if (groupId !== "" && !isGroup(groupId)) return skipMessage("a message of a group without a usable id");
  const content = contentOf(now);
  if (content === undefined) return skipMessage("a message without content for the agent", true);
  const { id, from } = fieldsOf(now.context);
  const answers = isId(textOf(id))
    ? { id: textOf(id), isOurs: ourNumber !== "" && from === ourNumber }
    : undefined;
  return {
    kind: "message",
    messageId,
    content,
    ...sender,
    ...sentAt(message.timestamp),
    namesUs: ourNumber !== "" && content.text.includes(`@${ourNumber}`),
    ...optional({ edit, answers, groupId: groupId || undefined }),
  };
}

function statusEvent(raw: unknown): Failed | undefined {
  const { id, status, recipient_id, recipient_user_id, errors } = fieldsOf(raw);
  if (status !== "failed" || !isId(textOf(id))) return undefined;
  const to = (textOf(recipient_id) || textOf(recipient_user_id)).slice(0, ID_CHARS_MAX);
  return { kind: "failed", messageId: textOf(id), to, error: listOf(errors)[0] };
}

function newsOf(change: unknown): NumberNews | undefined {
  const { field, value } = fieldsOf(change);
  const { metadata, contacts, messages, statuses, errors } = fieldsOf(value);
  const { phone_number_id, display_phone_number } = fieldsOf(metadata);
  const phoneNumberId = textOf(phone_number_id);
  if (field !== "messages" || phoneNumberId === "") return undefined;
  const ourNumber = textOf(display_phone_number).replace(/\D/g, "");
  const people = listOf(contacts).map(fieldsOf);
  return {
    phoneNumberId,
    events: [
      ...listOf(errors).map((error): AccountError => ({ kind: "told", error })),
      ...listOf(statuses).flatMap((status) => statusEvent(status) ?? []),
      ...listOf(messages).map((message) => messageEvent(message, people, ourNumber)),
    ],
  };
}

/** Returns the events in the body of a webhook. The list is empty if the body has an unknown format. */
export function readWebHook(body: unknown): NumberNews[] {
  const { object, entry } = fieldsOf(body);
  if (object !== "whatsapp_business_account") return [];
  return listOf(entry).flatMap((one) =>
    listOf(fieldsOf(one).changes).flatMap((change) => newsOf(change) ?? []),
  );
}
