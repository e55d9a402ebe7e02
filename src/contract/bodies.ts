// Lists the HTTP requests with a body of ours that are not methods: a tool call, incoming web hooks.

import { idempotencyKey, name } from "./methods/parts.ts";
import { TOOL_METHODS } from "./methods/tools.ts";
import {
  about,
  anything,
  flag,
  mapOf,
  number,
  type ObjectSchema,
  type Of,
  object,
  oneOf,
  type Schema,
  text,
} from "./schema.ts";

/** An HTTP request, for its senders, its handler and its documentation. */
interface BodySpec {
  /** One sentence for the documentation. */ readonly summary: string;
  readonly body: ObjectSchema;
  /** The body of the answer. A refused request gets `{ok: false, error}`. */
  readonly result: Schema;
}

const { name: tool, arguments: args, sessionKey } = TOOL_METHODS["tools.invoke"].params.properties;
const deliveryKey = about(name, "The id of this delivery; the header `Idempotency-Key` has priority.");
const ACCEPTED = object({ ok: oneOf(true), runId: text(), sessionKey: text() });

export const BODIES = {
  "POST /tools/invoke": {
    summary: "Calls a tool as a session, like `tools.invoke`.",
    body: object({ tool }, { args, sessionKey, idempotencyKey }),
    result: object({
      ok: flag("False: the tool's own result is an error, or there is no such tool."),
      result: about(mapOf(anything), "The tool's result."),
    }),
  },
  "POST /hooks/agent": {
    summary: "Starts a run with a message.",
    body: object(
      { message: text("At most 100,000 characters.") },
      {
        name: about(name, "The sender's name, and the label of a new session."),
        agentId: about(name, "The agent. Default: the default agent."),
        sessionKey: about(
          name,
          "Default: a new `hook:<uuid>`. `hook:ci` is created by its first hook and reused.",
        ),
        deliver: flag("Whether the reply also goes to `channel` and `to`."),
        channel: about(
          name,
          "`webchat` (the default): a session. `last`: where people of the default agent's main session " +
            "last wrote. Or a channel.",
        ),
        to: about(name, "The session (default: the default agent's main session), or the chat of a channel."),
        accountId: about(name, "The account of that channel. Default: the first."),
        threadId: about(name, "The thread or topic."),
        model: about(name, "`<provider>/<model>`, only in sessions `hook:<id>`."),
        thinking: about(name, "The model's thinking level in this run."),
        timeoutSeconds: number("Ends the run this long after its start."),
        idempotencyKey: deliveryKey,
      },
    ),
    result: ACCEPTED,
  },
  "POST /hooks/wake": {
    summary: "Adds a note to the main session of the default agent.",
    body: object(
      { text: text("The note.") },
      {
        mode: about(
          oneOf("now", "next-heartbeat"),
          "`now` (the default) starts a run; `next-heartbeat` leaves it for the next run.",
        ),
        idempotencyKey: deliveryKey,
      },
    ),
    result: ACCEPTED,
  },
} as const satisfies Record<`POST /${string}`, BodySpec>;

export type BodyName = keyof typeof BODIES;

/** The checked body of a request. */
export type BodyOf<B extends BodyName> = Of<(typeof BODIES)[B]["body"]>;

/** The body of the answer to a request. */
export type BodyAnswerOf<B extends BodyName> = Of<(typeof BODIES)[B]["result"]>;
