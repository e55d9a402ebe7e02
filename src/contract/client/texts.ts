// Assembles the live text of runs from deltas, so that listeners get the whole text so far.

import { withDelta } from "../../core/text/text-delta.ts";
import type { ChatEvent, ChatMessage, EventFrame } from "../protocol.ts";

/**
 * Keeps the texts of one connection. The returned function gives the event with its whole text; undefined: an
 * earlier part is missing, and the whole text follows.
 */
export function createTextKeeper(now: () => number): (frame: EventFrame) => EventFrame | undefined {
  const texts = new Map<string, string>();
  return (frame) => {
    if (frame.event !== "chat") return frame;
    const event = frame.payload as ChatEvent;
    const { runId, state, delta, offset = 0, message } = event;
    const before = texts.get(runId) ?? "";
    texts.delete(runId);
    if (state !== "delta") return frame;
    const text = withDelta(before, { offset, text: delta ?? message?.content[0]?.text ?? "" });
    if (text === undefined) return undefined;
    texts.set(runId, text);
    const whole: ChatMessage = { role: "assistant", content: [{ type: "text", text }], timestamp: now() };
    return { ...frame, payload: { ...event, message: whole } };
  };
}
