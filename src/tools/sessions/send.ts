// The tool `sessions_send`: reads arguments and returns one result object. `flows/send` implements the send.

import { resolveSession, type SessionTarget } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { fail, ok, type Result, toolFailure } from "../../core/shapes/errors.ts";
import { LABEL_CHARS_MAX } from "../../core/shapes/session.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { sendToSession, sentBefore } from "../../flows/conversation/send.ts";
import { agentIdLimit, bodyLimit, textLimit } from "../arguments.ts";
import type { Tool, ToolContext } from "../tool.ts";

const MESSAGE_MAX_BYTES = 256 * 1024;
const TIMEOUT_DEFAULT_SECONDS = 30;
export const TIMEOUT_MAX_SECONDS = 3_600;

export const sessionsSend: Tool = {
  spec: {
    name: "sessions_send",
    description:
      "Send a message to another session and, unless timeoutSeconds is 0, wait for its reply. " +
      "`timeout` means only that waiting ended: the other session continues to work, so don't send again; " +
      "read sessions_history later. A message to an outside program (a key with `:mcp:`) goes to its " +
      "inbox. The reply is what that program sends back; after a `timeout` it reaches you as a new message.",
    parameters: {
      type: "object",
      properties: {
        sessionKey: { type: "string", description: "Key or session id, from sessions_list." },
        label: { type: "string", description: "Instead of sessionKey: the session's label." },
        agentId: {
          type: "string",
          description: "With label: the agent of the session. Default: your own agent, else any agent.",
        },
        message: { type: "string", description: "The message. At most 256 KB." },
        timeoutSeconds: {
          type: "number",
          description:
            `Seconds to wait for the reply. Default ${TIMEOUT_DEFAULT_SECONDS}, ` +
            `at most ${TIMEOUT_MAX_SECONDS}; 0: don't wait.`,
        },
      },
      required: ["message"],
    },
    parallel: true,
    idempotent: true,
  },
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    label: textLimit(LABEL_CHARS_MAX),
    agentId: agentIdLimit,
    message: bodyLimit(
      MESSAGE_MAX_BYTES,
      "Send a summary, or put the text in a file that the other session can read.",
    ),
    timeoutSeconds: (value) => readTimeout(value),
  },
  before: (ctx, args, call) => sentBefore(ctx, requestOf(ctx, call, args)),
  async execute(ctx, args, call) {
    const { sessionKey, label, agentId, message } = args as Partial<Record<string, string>>;
    const target: SessionTarget = {
      ...optional({ sessionKey, label, agentId }),
    };
    const found = await resolveSession(ctx, ctx.viewer, "send", target);
    if (!found.ok) return toolFailure(found);
    return sendToSession(ctx, {
      ...requestOf(ctx, call, args),
      target: found.value,
      text: message ?? "",
      ...optional({ requesterRun: ctx.run }),
      ...(ctx.confirmsAnswers === true ? { confirmsAnswers: true } : {}),
    });
  },
};

/** Returns the requester of a send, and how long it waits. */
function requestOf(ctx: ToolContext, call: ToolCallRequest, args: Readonly<Record<string, unknown>>) {
  return {
    requester: ctx.session,
    timeoutSeconds: args.timeoutSeconds as number,
    callId: call.callId,
    signal: ctx.signal,
    ...optional({ wait: ctx.wait }),
  };
}

/** Reads `timeoutSeconds`: how long a tool waits. */
export function readTimeout(value: unknown, fallback = TIMEOUT_DEFAULT_SECONDS): Result<number> {
  if (typeof value !== "number") return ok(fallback);
  // Rounds up to milliseconds, so that a short wait never becomes 0.
  if (value >= 0) return ok(Math.min(Math.ceil(value * 1_000) / 1_000, TIMEOUT_MAX_SECONDS));
  return fail("invalid_argument", `timeoutSeconds must be 0 or more, got ${value}`, {
    hint: "0 means: don't wait.",
  });
}
