// Owns the bodies of HTTP requests that are not methods: a tool call, incoming web hooks.

import { idempotencyKey, name } from "./methods/parts.ts";
import { anyObject, flag, number, type Of, object, oneOf, text } from "./schema.ts";

/** The body of `POST /tools/invoke`; the params of `tools.invoke` with other names for two of them. */
export const TOOL_CALL = object({ tool: name }, { args: anyObject, sessionKey: name, idempotencyKey });

/** The body of `POST /hooks/agent`. docs/HOOKS.md describes it. */
export const HOOK_AGENT = object(
  { message: text() },
  {
    name,
    agentId: name,
    sessionKey: name,
    deliver: flag,
    channel: name,
    to: name,
    accountId: name,
    threadId: name,
    model: name,
    thinking: name,
    timeoutSeconds: number(),
    idempotencyKey: name,
  },
);
export type HookAgentBody = Of<typeof HOOK_AGENT>;

/** The body of `POST /hooks/wake`. */
export const HOOK_WAKE = object(
  { text: text() },
  { mode: oneOf("now", "next-heartbeat"), idempotencyKey: name },
);
export type HookWakeBody = Of<typeof HOOK_WAKE>;
