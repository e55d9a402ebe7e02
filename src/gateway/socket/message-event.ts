// Translates a stored message into the event that clients of version 4 expect.
// The event names no other session (I9), and its text is redacted (I14).

import type { LiveEvent } from "../../core/shapes/event.ts";
import { textOf } from "../../core/shapes/message.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import type { OutEvent } from "./events.ts";

const TEXT_MAX_CHARS = 16_000;

/** Returns undefined for a message without text, and for results of tools. */
export function messageEvent(
  { sessionKey, sessionId, message }: Extract<LiveEvent, { kind: "message" }>,
  redactor: Redactor,
): OutEvent | undefined {
  const { id: messageId, role, timestamp } = message;
  if (role !== "user" && role !== "assistant") return undefined;
  const { text } = redactor.beginning(textOf(message), TEXT_MAX_CHARS);
  if (text === "") return undefined;
  const content = [{ type: "text" as const, text }];
  const payload = { sessionKey, sessionId, messageId, message: { role, content, timestamp } };
  return { event: "session.message", sessionKey, payload, access: "messages" };
}
