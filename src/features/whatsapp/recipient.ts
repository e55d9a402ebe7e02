// Defines the formats of WhatsApp recipients: a person's number, their id if they hide the number, and a
// group's id.
// Incoming and outgoing ids pass the same check, so every sender can get an answer.

/** Recipient of a text, in the format of the API. */
export type Recipient =
  | { readonly recipient_type: "individual"; readonly to: string }
  | { readonly recipient_type: "individual"; readonly recipient: string }
  | { readonly recipient_type: "group"; readonly to: string };

/** Matches a phone number. E.164 allows at most 15 digits; ids of groups have more. */
const NUMBER = /^\d{5,15}$/;
/** Matches a phone number as people write it, with spaces and punctuation. */
const WRITTEN_NUMBER = /^\+?[\d ().-]{5,30}$/;
const USER_ID = /^[A-Z]{2}\.[\w.]{1,150}$/;
const GROUP = /^[A-Za-z0-9][\w+/=@.:-]{5,255}$/;

export function isPerson(id: string): boolean {
  return NUMBER.test(id) || USER_ID.test(id);
}

export function isGroup(id: string): boolean {
  return GROUP.test(id) && !isPerson(id);
}

/** Returns the recipient that a route names, or undefined if it is not a WhatsApp recipient. */
export function recipientOf(to: string): Recipient | undefined {
  const digits = to.replace(/\D/g, "");
  if (WRITTEN_NUMBER.test(to) && NUMBER.test(digits)) return { recipient_type: "individual", to: digits };
  if (USER_ID.test(to)) return { recipient_type: "individual", recipient: to };
  return isGroup(to) ? { recipient_type: "group", to } : undefined;
}

/** Returns the chat id of messages that come from this recipient. */
export function chatIdOf(recipient: Recipient): string {
  return "to" in recipient ? recipient.to : recipient.recipient;
}
