// Implements the tool `message`: reads the destination and the text of a call. flows/delivery/known-place.ts
// checks the destination, and sends the text.

import type { ToolResultOf } from "../contract/tools.ts";
import { optional } from "../core/optional.ts";
import { fail, ok } from "../core/shapes/errors.ts";
import { WEBCHAT } from "../core/shapes/route.ts";
import { type QueuedText, sendToPlace, sentToPlace } from "../flows/delivery/known-place.ts";
import { bodyLimit, textLimit } from "./arguments.ts";
import { messageSink } from "./labels/sinks.ts";
import { type CallerContext, type Tool, tool, type WritingContext } from "./tool.ts";

export interface MessageContext extends CallerContext, WritingContext {}

const MESSAGE_MAX_BYTES = 256 * 1024;
const ID_CHARS_MAX = 512;

function answerFor({ id, route }: QueuedText): ToolResultOf<"message"> {
  const { channel, to, accountId, threadId } = route;
  return { status: "accepted", deliveryId: id, channel, to, ...optional({ accountId, threadId }) };
}

export const messageTool: Tool<MessageContext> = tool("message", {
  isUsable: ({ settings }) => settings.channels.length > 0,
  limits: {
    channel: textLimit(ID_CHARS_MAX),
    to: textLimit(ID_CHARS_MAX),
    accountId: textLimit(ID_CHARS_MAX),
    threadId: textLimit(ID_CHARS_MAX),
    message: bodyLimit(MESSAGE_MAX_BYTES),
  },
  sink: (ctx, args) => messageSink(ctx, args, args.message),
  async before(ctx, _args, { callId }) {
    const sent = await sentToPlace(ctx.db, callId);
    return sent && answerFor(sent);
  },
  async execute(ctx, args, { callId }) {
    const { channel, to, accountId, threadId } = args;
    if (channel.trim().toLowerCase() === WEBCHAT)
      return fail("channel_unknown", "webchat has no destinations: a message there belongs to a session", {
        hint: "Use sessions_send to write to a session.",
      });
    const { viewer, session, chain, run, wait } = ctx;
    const sent = await sendToPlace(ctx, {
      viewer,
      session,
      chain,
      callId,
      place: { channel, to, accountId, threadId },
      text: args.message,
      ...optional({ run, wait }),
    });
    return sent.ok ? ok(answerFor(sent.value)) : sent;
  },
});
