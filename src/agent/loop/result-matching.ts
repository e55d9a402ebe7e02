// Finds the results of tool calls. Providers may reuse the ids of calls.

import { type Message, resultIdOf, type ToolResultMessage, toolCallsOf } from "../../core/shapes/message.ts";

/** Returns the results of every assistant message, by the index of the call. */
export function matchResults(messages: readonly Message[]): Map<Message, Map<number, ToolResultMessage>> {
  const matched = new Map<Message, Map<number, ToolResultMessage>>();
  const open: { message: Message; at: number; id: string }[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") {
      // A provider may reuse an id in a later message, so the place of the call decides. A result without a
      // place belongs to the latest open call with its id.
      const placed = open.findIndex(
        (call) => message.id === resultIdOf({ messageId: call.message.id, index: call.at }),
      );
      const latest = open.findLast((call) => call.id === message.toolCallId)?.message;
      const index =
        placed >= 0
          ? placed
          : open.findIndex((call) => call.message === latest && call.id === message.toolCallId);
      const [call] = index < 0 ? [] : open.splice(index, 1);
      if (call !== undefined) matched.get(call.message)?.set(call.at, message);
    } else if (message.role === "assistant") {
      matched.set(message, new Map());
      toolCallsOf(message).forEach((call, at) => {
        open.push({ message, at, id: call.id });
      });
    }
  }
  return matched;
}
