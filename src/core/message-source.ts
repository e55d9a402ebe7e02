// Hides the sessions that a message names, as its source or in the error of a failed answer, from readers of
// its transcript who may not see those sessions (I9).

import { NOT_VISIBLE } from "./rules/visibility.ts";
import { visibleErrorText } from "./shapes/chain-step.ts";
import type { Message, Provenance } from "./shapes/message.ts";

/** Returns the session that a message came from or is about, or undefined if it names none. */
export function sourceKeyOf(message: Message): string | undefined {
  const provenance = message.role === "user" ? message.provenance : undefined;
  return provenance !== undefined && "sourceSessionKey" in provenance
    ? provenance.sourceSessionKey
    : undefined;
}

/** Returns a message's source, without the name of a session that the reader may not see. */
export function shownProvenance(provenance: Provenance, sees: (key: string) => boolean): Provenance {
  if (provenance.kind !== "inter_session" && provenance.kind !== "notice") return provenance;
  const { sourceSessionKey } = provenance;
  if (sourceSessionKey === undefined || sees(sourceSessionKey)) return provenance;
  return { ...provenance, sourceSessionKey: NOT_VISIBLE };
}

/** Returns a message as a reader of the session may see it. */
export function shownMessage(message: Message, sees: (key: string) => boolean): Message {
  if (message.role === "assistant" && message.errorMessage !== undefined)
    return { ...message, errorMessage: visibleErrorText(message.errorMessage, sees) };
  if (message.role !== "user" || message.provenance === undefined) return message;
  return { ...message, provenance: shownProvenance(message.provenance, sees) };
}
