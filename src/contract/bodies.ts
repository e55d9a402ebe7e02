// Lists the HTTP requests with a body that are not methods: tool calls and incoming webhooks.

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

/** The entry of one kind of HTTP request. Its senders, its handler and the documentation use it. */
interface BodySpec {
  /** One sentence for the documentation. */ readonly summary: string;
  readonly body: ObjectSchema;
  /** The response body. A refused request gets `{ok: false, error}` instead. */
  readonly result: Schema;
}

const { name: tool, arguments: args, sessionKey } = TOOL_METHODS["tools.invoke"].params.properties;
const deliveryKey = about(
  name,
  "Id of the delivery, to detect repeats. The header `Idempotency-Key` has priority.",
);
const ACCEPTED = object({ ok: oneOf(true), runId: text(), sessionKey: text() });

export const BODIES = {
  "POST /tools/invoke": {
    summary: "Calls a tool as a session, like `tools.invoke`.",
    body: object({ tool }, { args, sessionKey, idempotencyKey }),
    result: object({
      ok: flag("False if the tool does not exist or its result is an error."),
      result: about(mapOf(anything), "Result of the tool."),
    }),
  },
  "POST /hooks/agent": {
    summary: "Starts a run with a message.",
    body: object(
      { message: text("The message to the agent. At most 100,000 characters.") },
      {
        name: about(name, "Name of the sender. A new session gets it as its label."),
        agentId: about(name, "The agent to run. Default: the default agent."),
        sessionKey: about(
          name,
          "Session of the run, created if needed, like `hook:ci`. Default: a new `hook:<uuid>`.",
        ),
        deliver: flag("Whether to deliver the reply to `channel` and `to` as well."),
        channel: about(
          name,
          "`webchat` (the default): a session. `last`: the chat in which people last wrote to the default " +
            "agent's main session. Otherwise the name of a channel.",
        ),
        to: about(name, "Session (default: the default agent's main session), or chat on the channel."),
        accountId: about(name, "Account of the channel. Default: the first one."),
        threadId: about(name, "Thread or topic of the chat."),
        model: about(name, "Model as `<provider>/<model>`. Only for sessions `hook:<id>`."),
        thinking: about(name, "Thinking level of the model in this run."),
        timeoutSeconds: number("Stops the run this many seconds after its start."),
        idempotencyKey: deliveryKey,
      },
    ),
    result: ACCEPTED,
  },
  "POST /hooks/wake": {
    summary: "Adds a note to the main session of the default agent.",
    body: object(
      { text: text("Text of the note.") },
      {
        mode: about(
          oneOf("now", "next-heartbeat"),
          "`now` (the default) starts a run. `next-heartbeat` keeps the note for the next run.",
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
