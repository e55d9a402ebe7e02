// The tool `sessions_send`: reads the arguments of a send and writes its outcome as one JSON object.
// flows/conversation/send.ts implements the send.

import { keyRulesOf } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { SEND_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import type { ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { ok } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { displayKey, KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { LABEL_CHARS_MAX } from "../../core/text/label.ts";
import { type FollowUp, type SendOutcome, sendToSession, sentBefore } from "../../flows/conversation/send.ts";
import { agentIdLimit, bodyLimit, textLimit, waitLimit } from "../arguments.ts";
import { type Tool, tool, type WritingContext } from "../tool.ts";

export interface SendContext extends WritingContext {
  /** True if the caller confirms that each answer was written to the client. Default: false. */
  readonly confirmsAnswers?: boolean;
}

const MESSAGE_MAX_BYTES = 256 * 1024;
export const sessionsSend: Tool<SendContext> = tool("sessions_send", {
  limits: {
    sessionKey: textLimit(KEY_CHARS_MAX),
    label: textLimit(LABEL_CHARS_MAX),
    agentId: agentIdLimit,
    message: bodyLimit(
      MESSAGE_MAX_BYTES,
      "Send a summary, or put the text in a file that the other session can read.",
    ),
    timeoutSeconds: waitLimit(SEND_WAIT_SECONDS),
  },
  async before(ctx, args, call) {
    const before = await sentBefore(ctx, requestOf(ctx, call, args));
    return before && sendResult(ctx.settings, ctx.session, before);
  },
  async execute(ctx, args, call) {
    const { sessionKey, label, agentId, message } = args;
    const target = optional({ sessionKey, label, agentId });
    const found = await resolveSession(ctx, ctx.viewer, "send", target);
    if (!found.ok) return found;
    const sent = await sendToSession(ctx, {
      ...requestOf(ctx, call, args),
      requester: ctx.session,
      target: found.value,
      text: message,
      ...optional({ requesterRun: ctx.run }),
      ...(ctx.confirmsAnswers === true ? { confirmsAnswers: true } : {}),
    });
    return sent.ok ? ok(sendResult(ctx.settings, ctx.session, sent.value)) : sent;
  },
});

type SendResult = ToolResultOf<"sessions_send">;
type Delivery = Extract<SendResult, { readonly status: "ok" }>["delivery"];

function deliveryOf(followUp: FollowUp): Delivery {
  switch (followUp) {
    case "announcement":
      return { status: "pending", mode: "announce" };
    case "inbox_answer":
      return { status: "pending", mode: "inbox" };
    case "none":
      return { status: "skipped", mode: "announce" };
  }
}

/** Writes the outcome of a send as the result that its sender reads. */
export function sendResult(settings: Settings, sender: Session, outcome: SendOutcome): SendResult {
  const { runId, state: runState } = outcome.run;
  const sessionKey = displayKey(outcome.run.sessionKey, sender.agentId, keyRulesOf(settings));
  switch (outcome.kind) {
    case "accepted":
      return { runId, status: "accepted", sessionKey, delivery: deliveryOf(outcome.followUp) };
    case "answered_waiter": {
      const note =
        "The sender of the message that this answers has been waiting for it and has it. No reply follows.";
      return { runId, status: "accepted", sessionKey, note, delivery: deliveryOf("none") };
    }
    case "replied": {
      const { reply, followUp } = outcome;
      return { runId, status: "ok", reply, sessionKey, delivery: deliveryOf(followUp) };
    }
    case "failed":
      return { runId, status: "error", code: outcome.code, error: outcome.error, sessionKey };
    case "still_running": {
      const { waitedSeconds, queuedBehind, followUp } = outcome;
      const state = runState === "queued" ? "queued" : "running";
      const error =
        `waiting ended after ${waitedSeconds} s; the message was accepted and its run goes on (${state}). ` +
        `Do not send it again; read sessions_history of "${sessionKey}" later.`;
      const delivery = deliveryOf(followUp);
      return { runId, status: "timeout", error, state, queuedBehind, sessionKey, delivery };
    }
    case "unanswered": {
      const { waitedSeconds, followUp } = outcome;
      const error =
        `waiting ended after ${waitedSeconds} s; the message is in the inbox of "${sessionKey}", and there ` +
        "is no answer yet. Do not send it again; an answer that comes later is a new message to your " +
        "session.";
      const delivery = deliveryOf(followUp);
      return { runId, status: "timeout", error, state: "queued", queuedBehind: 0, sessionKey, delivery };
    }
  }
}

/** Returns how long a send waits, and how. */
function requestOf(
  ctx: SendContext,
  call: ToolCallRequest,
  { timeoutSeconds }: { readonly timeoutSeconds: number },
) {
  return {
    timeoutSeconds,
    callId: call.callId,
    signal: ctx.signal,
    ...optional({ wait: ctx.wait }),
  };
}
