// Rows and messages with all required fields, for tests that need only a few of them.

import {
  type AssistantMessage,
  type ToolResultMessage,
  type UserMessage,
  ZERO_USAGE,
} from "../../src/core/shapes/message.ts";
import { NOT_YET_USED, type Session } from "../../src/core/shapes/session.ts";

export function sessionRow(key: string, fields: Partial<Session> = {}): Session {
  return {
    key,
    sessionId: "s1",
    agentId: "a",
    kind: "other",
    createdAt: 1,
    updatedAt: 1,
    spawnDepth: 0,
    external: false,
    ...NOT_YET_USED,
    ...fields,
  };
}

export function userMessage(id: string, text: string, fields: Partial<UserMessage> = {}): UserMessage {
  return { id, role: "user", content: [{ type: "text", text }], timestamp: 1, ...fields };
}

export function assistantMessage(
  id: string,
  content: AssistantMessage["content"],
  fields: Partial<AssistantMessage> = {},
): AssistantMessage {
  return {
    id,
    role: "assistant",
    content,
    timestamp: 1,
    api: "openai-completions",
    provider: "p",
    model: "m",
    usage: ZERO_USAGE,
    stopReason: "stop",
    ...fields,
  };
}

export function toolResult(
  id: string,
  text: string,
  fields: Partial<ToolResultMessage> = {},
): ToolResultMessage {
  return {
    id,
    role: "toolResult",
    toolCallId: "c1",
    toolName: "read",
    content: [{ type: "text", text }],
    isError: false,
    timestamp: 1,
    ...fields,
  };
}
