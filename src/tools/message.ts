// The tool `message`: sends a text to people on a channel, at a known destination.
// ME1: an accepted call is an outbox row; the channel acknowledges it later (I5). The same call makes one
//      row.
// ME2: flows/delivery/known-place.ts decides which destinations are allowed, and the send policy whether to
//      send.
// ME3: if the people there have a session, the text is also appended to its transcript, so that its agent
//      knows what they refer to.

import { optional } from "../core/optional.ts";
import { isSandboxed } from "../core/rules/sandbox-policy.ts";
import { fail, ok, type Result } from "../core/shapes/errors.ts";
import { WEBCHAT } from "../core/shapes/route.ts";
import type { ToolCallRequest } from "../core/shapes/tool.ts";
import type { Unit } from "../engine/unit.ts";
import { leaveVerdict, type NamedPlace } from "../flows/delivery/destination.ts";
import { type KnownPlace, knownPlace } from "../flows/delivery/known-place.ts";
import { type Outbound, placeHasRoom, publishOutbox } from "../flows/delivery/outbox.ts";
import { type Delivery, getDelivery, insertDelivery } from "../store/queries/channels/deliveries.ts";
import { bodyLimit, textLimit } from "./arguments.ts";
import type { CallerContext, Tool, WritingContext } from "./tool.ts";

export interface MessageContext extends CallerContext, WritingContext {
  /** Notified of queued deliveries. Absent: this process delivers nothing. */
  readonly outbound?: Outbound | undefined;
}

const MESSAGE_MAX_BYTES = 256 * 1024;
const ID_CHARS_MAX = 512;

const word = (description: string) => ({ type: "string", description });

function deliveryIdOf({ callId }: ToolCallRequest): string {
  return `message-${callId}`;
}

/** The queued text and its place. */
type MessageResult = {
  readonly status: "accepted";
  readonly deliveryId: string;
  readonly channel: string;
  readonly to: string;
  readonly accountId?: string;
  readonly threadId?: string;
};

function accepted({ id, route }: Pick<Delivery, "id" | "route">): MessageResult {
  const { channel, to, accountId, threadId } = route;
  return { status: "accepted", deliveryId: id, channel, to, ...optional({ accountId, threadId }) };
}

interface MessageRequest {
  readonly place: NamedPlace & { readonly channel: string };
  readonly text: string;
}

function requestOf(args: Record<string, unknown>): Result<MessageRequest> {
  const {
    channel = "",
    to = "",
    accountId,
    threadId,
    message: text = "",
  } = args as Partial<Record<string, string>>;
  if (channel.trim().toLowerCase() === WEBCHAT) {
    return fail("channel_unknown", "webchat has no destinations: its readers read a session", {
      hint: "Use sessions_send to write to a session.",
    });
  }
  return ok({ place: { channel, to, accountId, threadId }, text });
}

/** Queues the text, unless this call has queued it before. */
async function queue(
  ctx: MessageContext,
  unit: Unit,
  { id, text, known }: { id: string; text: string; known: KnownPlace },
): Promise<Result<MessageResult>> {
  const before = await getDelivery(unit.tx, id);
  if (before !== undefined) return ok(accepted(before));
  if (ctx.wait !== undefined && !(await ctx.wait.holds(unit))) {
    return fail("run_aborted", "the calling run has ended; nothing was sent");
  }
  const { session, run } = ctx;
  const { route, reader } = known;
  const verdict = await leaveVerdict(unit.tx, ctx.settings, session, route);
  if (!verdict.allowed) return fail("send_denied", verdict.error);
  const room = await placeHasRoom(unit, route);
  if (!room.ok) return room;
  await insertDelivery(unit.tx, {
    ...{ id, sessionKey: session.key, kind: "send", route, text, state: "pending", createdAt: unit.now },
    ...optional({ runId: run?.runId }),
  });
  publishOutbox(unit, { id, sessionKey: session.key }, "pending");
  unit.after(() => ctx.outbound?.deliveryQueued());
  if (reader !== undefined) {
    const input = { text, injected: true };
    await ctx.engine.acceptIn(unit, { sessionKey: reader.key, kind: "append", input, successor: true });
  }
  return ok(accepted({ id, route }));
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
  async before(ctx, _args, call) {
    const sent = await getDelivery(ctx.db, deliveryIdOf(call));
    return sent === undefined ? undefined : accepted(sent);
  },
  async execute(ctx, args, call) {
    const request = requestOf(args);
    if (!request.ok) return request;
    const { settings, chain, viewer, session, run, agent } = ctx;
    const contained = isSandboxed(chain, settings) && agent.sandbox.sessionToolsVisibility === "spawned";
    const writer = { viewer, session, route: run?.route, contained };
    const known = await knownPlace(ctx, writer, request.value.place);
    if (!known.ok) return known;
    const sending = { id: deliveryIdOf(call), text: request.value.text, known: known.value };
    return ctx.engine.commit((unit) => queue(ctx, unit, sending));
  },
};
