// Formats texts of conversations for spans. Used only if content is traced.
// Credentials are redacted before text is cut; otherwise the cut could leave a part of a credential.
// The text of a span is limited; the newest messages are kept.

import { type Entry, isCompaction, type Message } from "../core/shapes/message.ts";
import type { Redactor } from "../core/text/redact/redact.ts";

/** Maximum characters of one text. */
const TEXT_MAX = 4_000;
/** Maximum characters of all messages in one attribute. */
const MESSAGES_MAX = 16_000;
/** Maximum characters of arguments; longer ones are omitted, because redacting them would take too long. */
const MASKED_MAX = 1_000_000;

export function shownText(text: string, redactor: Redactor): string {
  return redactor.cut(text, TEXT_MAX);
}

/** Returns the arguments of a tool call as JSON. */
export function shownArguments(args: unknown, redactor: Redactor): string {
  const known = typeof args === "object" && args !== null ? (args as Record<string, unknown>) : {};
  const { length } = JSON.stringify(known);
  if (length > MASKED_MAX) return `[${length} characters]`;
  return shownText(JSON.stringify(redactor.json(known)), redactor);
}

function partOf(block: Message["content"][number], redactor: Redactor): object {
  switch (block.type) {
    case "text":
      return { type: "text", content: shownText(block.text, redactor) };
    case "thinking":
      return { type: "reasoning", content: shownText(block.thinking, redactor) };
    case "image":
      return { type: "blob", modality: "image", mime_type: block.mimeType };
    case "toolCall": {
      const args = shownArguments(block.arguments, redactor);
      return { type: "tool_call", id: block.id, name: block.name, arguments: args };
    }
  }
}

/** A message in the form of the OpenTelemetry conventions: role and parts. */
type Spoken = Pick<Message, "role" | "content"> & { readonly toolCallId?: string };

function shownMessage(message: Spoken, redactor: Redactor): object {
  const { role, content } = message;
  if (role !== "toolResult") return { role, parts: content.map((block) => partOf(block, redactor)) };
  const response = content.map((block) => partOf(block, redactor));
  return { role: "tool", parts: [{ type: "tool_call_response", id: message.toolCallId ?? "", response }] };
}

/** Returns as JSON the newest messages that fit. */
export function shownMessages(messages: readonly (Spoken | Entry)[], redactor: Redactor): string {
  const shown: string[] = [];
  let chars = 0;
  for (const message of messages.toReversed()) {
    if ("type" in message && isCompaction(message)) continue;
    const text = JSON.stringify(shownMessage(message as Spoken, redactor));
    chars += text.length;
    if (chars > MESSAGES_MAX && shown.length > 0) break;
    shown.unshift(text);
  }
  return `[${shown.join(",")}]`;
}
