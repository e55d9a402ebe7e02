// Owns what a place of the platform looks like: a person's number, their id where they hide it, a group's id.
// WL1: whoever can write here can be answered: what comes in and what goes out are judged alike.

/** Where a text goes, as the platform wants to be told. */
export type Recipient =
  | { readonly recipient_type: "individual"; readonly to: string }
  | { readonly recipient_type: "individual"; readonly recipient: string }
  | { readonly recipient_type: "group"; readonly to: string };

/** In E.164 no number has more digits; ids of groups do. */
const NUMBER = /^\d{5,15}$/;
/** A number as people write it, with blanks and the like. */
const WRITTEN_NUMBER = /^\+?[\d ().-]{5,30}$/;
const USER_ID = /^[A-Z]{2}\.[\w.]{1,150}$/;
const GROUP = /^[A-Za-z0-9][\w+/=@.:-]{5,255}$/;

/** Whether this can be who wrote something. */
export function isPerson(id: string): boolean {
  return NUMBER.test(id) || USER_ID.test(id);
}

export function isGroup(id: string): boolean {
  return GROUP.test(id) && !isPerson(id);
}

/** Reads what a route says; undefined: it is no place of this platform. */
export function recipientOf(to: string): Recipient | undefined {
  const digits = to.replace(/\D/g, "");
  if (WRITTEN_NUMBER.test(to) && NUMBER.test(digits)) return { recipient_type: "individual", to: digits };
  if (USER_ID.test(to)) return { recipient_type: "individual", recipient: to };
  return isGroup(to) ? { recipient_type: "group", to } : undefined;
}

/** The chat that a place is: what a message from there is said in. */
export function chatIdOf(recipient: Recipient): string {
  return "to" in recipient ? recipient.to : recipient.recipient;
}
