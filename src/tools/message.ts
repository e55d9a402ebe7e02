// The tool `message`: reads the place and the text of a call. flows/delivery/known-place.ts decides where an
// agent may write, and sends the text.

import { optional } from "../core/optional.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { WEBCHAT } from "../core/shapes/route.ts";
import { type PlaceText, type QueuedText, sendToPlace, sentToPlace } from "../flows/delivery/known-place.ts";
import type { Outbound } from "../flows/delivery/outbox.ts";
import { bodyLimit, textLimit } from "./arguments.ts";
import type { CallerContext, Tool, WritingContext } from "./tool.ts";

export interface MessageContext extends CallerContext, WritingContext {
  /** Notified of queued deliveries. Absent: this process delivers nothing. */
  readonly outbound?: Outbound | undefined;
}

const MESSAGE_MAX_BYTES = 256 * 1024;
const ID_CHARS_MAX = 512;

type Words = Partial<Record<string, string>>;

const word = (description: string) => ({ type: "string", description });

/** The queued text and its place. */
type MessageResult = {
  readonly status: "accepted";
  readonly deliveryId: string;
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
};

function accepted({ id, route }: QueuedText): MessageResult {
  const { channel, to, accountId, threadId } = route;
  return { status: "accepted", deliveryId: id, channel, to, ...optional({ accountId, threadId }) };
}

/** Reads the place of a call. */
function placeOf({ channel = "", to = "", accountId, threadId }: Words): Result<PlaceText["place"]> {
  if (channel.trim().toLowerCase() === WEBCHAT) {
    return fail("channel_unknown", "webchat has no destinations: its readers read a session", {
      hint: "Use sessions_send to write to a session.",
    });
  }
  return ok({ channel, to, accountId, threadId });
}

export const messageTool: Tool<MessageContext, MessageResult> = {
  spec: {
    name: "message",
    description:
      "Send a text to people on a channel: to your own people, to the people of a session that you may " +
      "send to, or to a person or group that the settings name. Your reply reaches your own people " +
      "automatically: use this for other people, or for more than one message.",
    parameters: {
      type: "object",
      properties: {
        channel: word("telegram, discord, whatsapp, signal or imessage, if configured."),
        to: word("The platform's id of the chat, group, room or person."),
        message: word("The text, in Markdown."),
        accountId: word("Account of the channel. Default: the first one that knows the destination."),
        threadId: word("The thread or topic."),
      },
      required: ["channel", "to", "message"],
    },
    parallel: true,
    idempotent: true,
  },
  limits: {
    channel: textLimit(ID_CHARS_MAX),
    to: textLimit(ID_CHARS_MAX),
    accountId: textLimit(ID_CHARS_MAX),
    threadId: textLimit(ID_CHARS_MAX),
    message: bodyLimit(MESSAGE_MAX_BYTES),
  },
  async before(ctx, _args, { callId }) {
    const sent = await sentToPlace(ctx.db, callId);
    return sent && accepted(sent);
  },
  async execute(ctx, args, { callId }) {
    const words = args as Words;
    const place = placeOf(words);
    if (!place.ok) return place;
    const { viewer, session, chain, run, wait } = ctx;
    const sent = await sendToPlace(ctx, {
      ...{ viewer, session, chain, callId, place: place.value, text: words.message ?? "" },
      ...optional({ run, wait }),
    });
    return sent.ok ? ok(accepted(sent.value)) : sent;
  },
};
