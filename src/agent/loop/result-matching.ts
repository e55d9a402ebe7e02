// Finds the results of tool calls.

import {
  callOfResult,
  type Message,
  type PlacedCall,
  type ToolResultMessage,
  toolCallsOf,
} from "../../core/shapes/message.ts";

/** Returns the results of every assistant message, by the index of the call. */
export function matchResults(messages: readonly Message[]): Map<Message, Map<number, ToolResultMessage>> {
  const matched = new Map<Message, Map<number, ToolResultMessage>>();
  const open: (PlacedCall & { readonly message: Message })[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") {
      const at = callOfResult(open, message);
      const [call] = at < 0 ? [] : open.splice(at, 1);
      if (call !== undefined) matched.get(call.message)?.set(call.index, message);
    } else if (message.role === "assistant") {
      matched.set(message, new Map());
      for (const [index, call] of toolCallsOf(message).entries())
        open.push({ message, messageId: message.id, index, call });
    }
  }
  return matched;
}
