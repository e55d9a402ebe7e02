// Implements the tool `sessions_send`: reads the arguments of a send and writes its outcome as one JSON
// object. flows/conversation/send.ts implements the send.

import { keyOfAgent, keyRulesOf } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { SEND_WAIT_SECONDS } from "../../contract/tools/sessions.ts";
import { TOOLS, type ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { withLabels } from "../../core/rules/labels/labels.ts";
import { isGuest } from "../../core/rules/prompt/memory.ts";
import { isInInbox, sourceOf } from "../../core/rules/receipt.ts";
import { checkRunTimeout } from "../../core/rules/spawn-policy.ts";
import { type Failure, fail, ok } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { displayKey, KEY_CHARS_MAX, peerInKey } from "../../core/shapes/session-key.ts";
import type { Settings } from "../../core/shapes/settings/settings.ts";
import type { ToolCallRequest } from "../../core/shapes/tool.ts";
import { LABEL_CHARS_MAX } from "../../core/text/label.ts";
import type { FollowUp } from "../../flows/conversation/recipient.ts";
import { type SendOutcome, sendToSession, sentBefore, UNCLEAR } from "../../flows/conversation/send.ts";
import { listRuns } from "../../store/queries/runs/runs.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { agentIdLimit, bodyLimit, textLimit, waitLimit } from "../arguments.ts";
import { sessionSink } from "../labels/sinks.ts";
import { type Tool, tool, type WritingContext } from "../tool.ts";

export interface SendContext extends WritingContext {
  /** True if the caller confirms that each answer was written to the client. Default: false. */
  readonly confirmsAnswers?: boolean;
}

const MESSAGE_MAX_BYTES = 256 * 1024;
const MESSAGE_ID_CHARS_MAX = 200;
/** Maximum number of the caller's runs that are read to find a sender that was deleted. */
const SENDERS_FROM_MAX = 200;

const { params } = TOOLS.sessions_send;
const { inReplyTo: _, ...others } = params.properties;
/** The arguments that models see: only an outside program has an inbox. */
const WITHOUT_INBOX = { ...params, properties: others };

export const sessionsSend: Tool<SendContext> = tool("sessions_send", {
  describe: ({ external }) => (external ? {} : { parameters: WITHOUT_INBOX }),
  limits: {
    inReplyTo: textLimit(MESSAGE_ID_CHARS_MAX),
    sessionKey: textLimit(KEY_CHARS_MAX),
    label: textLimit(LABEL_CHARS_MAX),
    agentId: agentIdLimit,
    message: bodyLimit(
      MESSAGE_MAX_BYTES,
      "Send a summary, or put the text in a file that the other session can read.",
    ),
    timeoutSeconds: waitLimit(SEND_WAIT_SECONDS),
    runTimeoutSeconds: (value: unknown) => checkRunTimeout(typeof value === "number" ? value : 0),
  },
  async sink(ctx, { sessionKey, label, agentId, message, inReplyTo }) {
    // An answer goes to the place that the message came from.
    if (inReplyTo !== undefined) return undefined;
    const found = await resolveSession(ctx, ctx.viewer, "send", optional({ sessionKey, label, agentId }));
    return found.ok ? sessionSink(ctx, found.value, message) : undefined;
  },
  async before(ctx, args, call) {
    const before = await sentBefore(ctx, requestOf(ctx, call, args));
    return before && labelledResult(ctx, before);
  },
  async execute(ctx, args, call) {
    const { sessionKey, label, agentId, message, inReplyTo, runTimeoutSeconds, announce, notify } = args;
    const target = optional({ sessionKey, label, agentId });
    const found = await resolveSession(ctx, ctx.viewer, "send", target);
    if (!found.ok) return (await goneSender(ctx, sessionKey)) ?? found;
    const sent = await sendToSession(ctx, {
      ...requestOf(ctx, call, args),
      requester: ctx.session,
      target: found.value,
      text: message,
      runTimeoutSeconds,
      ...optional({ requesterRun: ctx.run, guest: isGuest(ctx.viewer) || undefined }),
      ...optional({ inReplyTo, announce, notify }),
      ...(ctx.confirmsAnswers === true ? { confirmsAnswers: true } : {}),
    });
    return sent.ok ? ok(labelledResult(ctx, sent.value)) : sent;
  },
});

const labelledResult = ({ settings, session }: SendContext, outcome: SendOutcome): SendResult =>
  withLabels(sendResult(settings, session, outcome), outcome.labels);

/** Returns a failure if this session has written to the caller and was deleted or archived since. */
async function goneSender(ctx: SendContext, sessionKey: string | undefined): Promise<Failure | undefined> {
  const { db, settings, session } = ctx;
  if (sessionKey === undefined) return undefined;
  const key = keyOfAgent(settings, sessionKey, session.agentId);
  const sender = await getSession(db, key);
  if (sender !== undefined && sender.archivedAt === undefined) return undefined;
  // A session of a peer that this gateway cannot write to was never one of its own.
  if (sender === undefined && peerInKey(key) !== undefined) return undefined;
  const runs = await listRuns(db, { sessionKey: session.key, limit: SENDERS_FROM_MAX });
  if (!runs.some(({ input }) => sourceOf(input) === key)) return undefined;
  const [code, done] =
    sender === undefined
      ? (["session_not_found", "deleted"] as const)
      : (["session_archived", "archived"] as const);
  return fail(
    code,
    `session ${JSON.stringify(sessionKey)} was ${done} after it wrote to you; the reply was not sent`,
    {
      hint: "That session key is no longer used. sessions_list shows the sessions that you can write to.",
    },
  );
}

const IDLE_LATER = "You get one message when that session has finished all its work. Do not poll.";

type SendResult = ToolResultOf<"sessions_send">;
type Delivery = Extract<SendResult, { readonly status: "ok" }>["delivery"];

function deliveryOf(followUp: FollowUp): Delivery {
  switch (followUp) {
    case "announcement":
      return { status: "pending", mode: "announce" };
    case "inbox_answer":
      return { status: "pending", mode: "inbox" };
    case "idle_notice":
    case "none":
      return { status: "skipped", mode: "announce" };
  }
}

/** Returns whether the result of a call is the outcome of its send. Otherwise it is an error of the call. */
export const isOutcome = (result: object): boolean => "receipt" in result;

/** Converts the outcome of a send to the result for its sender. */
export function sendResult(settings: Settings, sender: Session, outcome: SendOutcome): SendResult {
  const { runId, state: runState } = outcome.run;
  const { receipt } = outcome;
  const sessionKey = displayKey(outcome.run.sessionKey, sender.agentId, keyRulesOf(settings));
  const sent = { runId, messageId: runId, sessionKey, receipt };
  const notes = [
    ...("followUp" in outcome && outcome.followUp === "idle_notice" ? [IDLE_LATER] : []),
    ...(outcome.isUnclear === true ? [UNCLEAR] : []),
  ];
  const base = { ...sent, ...optional({ note: notes.join(" ") || undefined }) };
  switch (outcome.kind) {
    case "accepted":
      return { ...base, status: "accepted", delivery: deliveryOf(outcome.followUp) };
    case "answered_waiter": {
      const note = "The other session was waiting for this answer and has received it. No reply follows.";
      return { ...base, status: "accepted", note, delivery: deliveryOf("none") };
    }
    case "replied": {
      const { reply, followUp } = outcome;
      const note = outcome.run.error;
      return { ...base, status: "ok", reply, ...optional({ note }), delivery: deliveryOf(followUp) };
    }
    case "failed":
      return {
        ...sent,
        status: "error",
        code: outcome.code,
        error: outcome.error,
        ...optional({ reply: outcome.reply }),
      };
    case "pending": {
      const { waitedSeconds, queuedBehind, followUp, run } = outcome;
      const isThere = isInInbox(run);
      const state = isThere || runState === "queued" ? "queued" : "running";
      // A call that a crash interrupted is answered later, when the run may have ended.
      const [now, when] =
        run.endedAt === undefined ? [`continues (${state})`, " later"] : ["has ended since", ""];
      const [place, then] = isThere
        ? [
            `the message is in the inbox of "${sessionKey}", and there is no answer yet`,
            "an answer that comes later is a new message to your session",
          ]
        : [`the message was accepted and its run ${now}`, `read sessions_history of "${sessionKey}"${when}`];
      const error = `waiting ended after ${waitedSeconds} s; ${place}. Do not send it again; ${then}.`;
      const delivery = deliveryOf(followUp);
      return { ...base, status: "timeout", error, state, queuedBehind, delivery };
    }
  }
}

/** Returns the part of a send that concerns the wait for its reply. */
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
