// Defines the bodies of incoming web hooks.

import type { BodySpec } from "../../contract/bodies.ts";
import { name } from "../../contract/methods/parts.ts";
import { about, flag, number, object, oneOf, text } from "../../contract/schema.ts";

const deliveryKey = about(
  name,
  "Id of the delivery, to detect repeats. The header `Idempotency-Key` has priority.",
);
const ACCEPTED = object({ ok: oneOf(true), runId: text(), sessionKey: text() });

export const HOOK_BODIES = {
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
