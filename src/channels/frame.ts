// Reads parts of a frame that a platform sends, which is untrusted.

import { textOf } from "../core/json.ts";
import { head } from "../core/text/cut.ts";
import type { InboundMedia, InboundMessage } from "./channel.ts";

const ID_CHARS_MAX = 256;
const NAME_CHARS_MAX = 200;
const QUOTE_CHARS_MAX = 8_000;

export type Read =
  | { readonly kind: "message"; readonly message: InboundMessage }
  /** The frame needs no answer, for example a receipt or a typing indicator. */
  | { readonly kind: "nothing" }
  | { readonly kind: "unreadable"; readonly why: string };

/** Returns an id that can be stored, or undefined. */
export function idIn(value: unknown): string | undefined {
  const id = textOf(value);
  return id === undefined || id.length > ID_CHARS_MAX ? undefined : id;
}

export function nameIn(value: unknown): string | undefined {
  const name = textOf(value);
  return name === undefined ? undefined : head(name, NAME_CHARS_MAX);
}

/** Returns the part of a quoted text that is kept. */
export function quoteIn(text: string): string {
  return head(text, QUOTE_CHARS_MAX);
}

/** Returns the kind of a file. `isVoice`: it was recorded in the chat, unless it is a picture or a video. */
export function mediaKind(mimeType = "", isVoice = false): InboundMedia["kind"] {
  const [type] = mimeType.split("/");
  if (type === "image" || type === "video") return type;
  if (isVoice) return "voice";
  return type === "audio" ? "audio" : "file";
}

/** Returns the note for a poll. */
export function pollNote(question: string, options: readonly string[]): string {
  return `[poll: ${question}${options.length === 0 ? "" : ` (${options.join(" | ")})`}]`;
}
