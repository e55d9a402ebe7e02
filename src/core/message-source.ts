// Hides the session that a message names as its source from readers of its transcript who may not see that
// session (I9).

import { NOT_VISIBLE } from "./rules/visibility.ts";
import type { Message, Provenance } from "./shapes/message.ts";

/** Returns the session that a text came from or is about, or undefined if it names none. */
export function sourceKeyIn(provenance: Provenance | undefined): string | undefined {
  return provenance !== undefined && "sourceSessionKey" in provenance
    ? provenance.sourceSessionKey
    : undefined;
}

/** Like `sourceKeyIn`, for a message. */
export const sourceKeyOf = (message: Message): string | undefined =>
  message.role === "user" ? sourceKeyIn(message.provenance) : undefined;

/** Returns a message's source, without the name of a session that the reader may not see. */
export function shownProvenance(provenance: Provenance, sees: (key: string) => boolean): Provenance {
  if (provenance.kind !== "inter_session" && provenance.kind !== "notice") return provenance;
  const { sourceSessionKey } = provenance;
  if (sourceSessionKey === undefined || sees(sourceSessionKey)) return provenance;
  return { ...provenance, sourceSessionKey: NOT_VISIBLE };
}

/** Returns a message as a reader of the session may see it. */
export function shownMessage(message: Message, sees: (key: string) => boolean): Message {
  if (message.role !== "user" || message.provenance === undefined) return message;
  return { ...message, provenance: shownProvenance(message.provenance, sees) };
}
