// Owns the tool `sessions_send`: arguments in, one result object out. What a send is, `flows/send` knows.

import { fail, ok, type Result, toolFailure } from "../core/errors.ts";
import { LABEL_CHARS_MAX } from "../core/session.ts";
import { KEY_CHARS_MAX } from "../core/session-key.ts";
import type { ToolCallRequest } from "../core/tool.ts";
import { resolveSession, type SessionTarget } from "../flows/access.ts";
import { sendToSession, sentBefore } from "../flows/send.ts";
import { textArgument } from "./arguments.ts";
import { readAgentId } from "./sessions-list.ts";
import type { Tool, ToolContext } from "./tool.ts";

const MESSAGE_MAX_BYTES = 256 * 1024;
const TIMEOUT_DEFAULT_SECONDS = 30;
const TIMEOUT_MAX_SECONDS = 3_600;

export const sessionsSend: Tool = {
  spec: {
    name: "sessions_send",
    description:
      "Send a message to another session and, unless timeoutSeconds is 0, wait for its reply. " +
      "`timeout` means only that waiting ended: the other session goes on working, so don't send again; " +
      "read sessions_history later.",
    parameters: {
      type: "object",
      properties: {
        sessionKey: { type: "string", description: "Key or session id, from sessions_list." },
        label: { type: "string", description: "Instead of sessionKey: the session's label." },
        agentId: { type: "string", description: "With label: whose session. Default: your own agent's." },
        message: { type: "string", description: "What to tell or ask. At most 256 KB." },
        timeoutSeconds: {
          type: "number",
          description:
            `How long to wait for the reply. Default ${TIMEOUT_DEFAULT_SECONDS}, ` +
            `at most ${TIMEOUT_MAX_SECONDS}; 0: don't wait.`,
        },
      },
      required: ["message"],
    },
    parallel: true,
    idempotent: true,
  },
  async before(ctx, args, call) {
    const timeoutSeconds = readTimeout(args.timeoutSeconds);
    return timeoutSeconds.ok ? sentBefore(ctx, asked(ctx, call, timeoutSeconds.value)) : undefined;
  },
  async execute(ctx, args, call) {
    const request = readRequest(args);
    if (!request.ok) return toolFailure(request);
    const { message, timeoutSeconds, target } = request.value;
    const found = await resolveSession(ctx, ctx.viewer, "send", target);
    if (!found.ok) return toolFailure(found);
    return sendToSession(ctx, {
      ...asked(ctx, call, timeoutSeconds),
      target: found.value,
      text: message,
      ...(ctx.run === undefined ? {} : { requesterRun: ctx.run }),
    });
  },
};

/** Who asks, and how long it waits. */
function asked(ctx: ToolContext, call: ToolCallRequest, timeoutSeconds: number) {
  return {
    requester: ctx.session,
    timeoutSeconds,
    callId: call.callId,
    signal: ctx.signal,
    ...(ctx.wait === undefined ? {} : { wait: ctx.wait }),
  };
}

interface SendRequest {
  readonly target: SessionTarget;
  readonly message: string;
  readonly timeoutSeconds: number;
}

function readRequest(args: Record<string, unknown>): Result<SendRequest> {
  const message = readMessage(args.message);
  if (!message.ok) return message;
  const sessionKey = textArgument(args, "sessionKey", KEY_CHARS_MAX);
  if (!sessionKey.ok) return sessionKey;
  const label = textArgument(args, "label", LABEL_CHARS_MAX);
  if (!label.ok) return label;
  const agentId = readAgentId(args.agentId);
  if (!agentId.ok) return agentId;
  const timeoutSeconds = readTimeout(args.timeoutSeconds);
  if (!timeoutSeconds.ok) return timeoutSeconds;
  const target: SessionTarget = {
    ...(sessionKey.value === undefined ? {} : { sessionKey: sessionKey.value }),
    ...(label.value === undefined ? {} : { label: label.value }),
    ...(agentId.value === undefined ? {} : { agentId: agentId.value }),
  };
  return ok({ target, message: message.value, timeoutSeconds: timeoutSeconds.value });
}

function readMessage(value: unknown): Result<string> {
  if (typeof value !== "string" || value.trim() === "") {
    return fail("invalid_argument", "message must not be empty");
  }
  const bytes = Buffer.byteLength(value);
  if (bytes <= MESSAGE_MAX_BYTES) return ok(value);
  return fail("too_large", `message has ${bytes} bytes; the most is ${MESSAGE_MAX_BYTES}`, {
    hint: "Send a summary, or put the text in a file that the other session can read.",
  });
}

function readTimeout(value: unknown): Result<number> {
  if (typeof value !== "number") return ok(TIMEOUT_DEFAULT_SECONDS);
  // Whole milliseconds, rounded up: a short wait never turns into none.
  if (value >= 0) return ok(Math.min(Math.ceil(value * 1_000) / 1_000, TIMEOUT_MAX_SECONDS));
  return fail("invalid_argument", `timeoutSeconds must be 0 or more, got ${value}`, {
    hint: "0 means: don't wait for the reply.",
  });
}
