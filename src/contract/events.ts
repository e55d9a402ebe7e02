// Lists all events that clients get: when each is sent, to which clients, and its payload.

import type { Usage } from "../core/shapes/message.ts";
import type { ModelRetry } from "../core/shapes/model-retry.ts";
import type { EndedRunState, FlowStep, ReceiptState } from "../core/shapes/run.ts";
import { added } from "../features.ts";
import { PRESENCE_ENTRY } from "./frames.ts";
import { HEALTH } from "./methods/operations.ts";
import { deliveryState } from "./methods/parts.ts";
import {
  about,
  anything,
  declared,
  either,
  flag,
  list,
  named,
  number,
  type Of,
  object,
  oneOf,
  type Schema,
  text,
} from "./schema.ts";

const ofRun = {
  runId: text(),
  sessionKey: text(),
  seq: number("Increases with each event of a run, even if a resumed run starts its text again."),
};

const CHAT_MESSAGE = named(
  "ChatMessage",
  "The message in a chat event.",
  object({
    role: oneOf("assistant"),
    content: list(object({ type: oneOf("text"), text: text() })),
    timestamp: number(),
  }),
);
export type ChatMessage = Of<typeof CHAT_MESSAGE>;

const CHAT = named(
  "ChatEvent",
  "The text of a run so far, or the end of the run.",
  object(
    { ...ofRun, state: oneOf("delta", "final", "aborted", "error") },
    {
      message: about(
        CHAT_MESSAGE,
        "The whole text so far: it replaces the text of earlier events. Absent if a run ends without text.",
      ),
      delta: text("Sent instead of `message` to clients with `text-deltas`: the text from `offset` on."),
      offset: number("Position of `delta` in the whole text, in UTF-16 units."),
      errorMessage: text(),
      code: text(),
      usage: declared<Usage>("Usage"),
      stopReason: text(),
    },
  ),
);
export type ChatEvent = Of<typeof CHAT>;

const THINKING_DELTA = named(
  "ThinkingDelta",
  "Thinking that is being written, for clients with `thinking-deltas`.",
  object(
    {
      offset: number("Position of `delta` in the whole text, in UTF-16 units. 0 starts a new text."),
      delta: text("The text from `offset` on."),
      ms: number("Time since the first piece of this thinking."),
    },
    { text: text("The whole text so far. The client library adds it.") },
  ),
);

const LIFECYCLE = named(
  "LifecycleData",
  "The start or the end of a run.",
  object(
    { phase: oneOf("start", "end", "error"), chainId: text() },
    {
      flowStep: declared<FlowStep>("FlowStep"),
      startedAt: number(),
      endedAt: number(),
      state: declared<EndedRunState>("EndedRunState"),
      code: text(),
      error: text(),
    },
  ),
);
export type LifecycleData = Of<typeof LIFECYCLE>;

const TOOL = named(
  "ToolData",
  "A call of a tool, or its result.",
  object(
    { phase: oneOf("start", "result"), toolCallId: text(), name: text() },
    { args: anything, isError: flag(), result: text() },
  ),
);
export type ToolData = Of<typeof TOOL>;

const FLOW = named(
  "FlowData",
  "A step of a conversation between two sessions.",
  object(
    {
      flowId: text(),
      step: about(
        either(declared<FlowStep>("FlowStep"), oneOf("ended", "refused")),
        "`refused`: a send or spawn was refused. `flowId` is the id of the call, `reason` the error code.",
      ),
      from: text(),
      to: text(),
      turn: number(),
      turnsMax: number(),
      text: text(),
    },
    { reason: text() },
  ),
);
export type FlowData = Of<typeof FLOW>;

const streamed = <const S extends string, D>(stream: S, data: Schema<D>) =>
  object({ ...ofRun, ts: number(), stream: oneOf(stream), data });

const AGENT = named(
  "AgentEvent",
  "A step of a run.",
  either(
    streamed("lifecycle", LIFECYCLE),
    streamed("assistant", object({ text: text() })),
    streamed(
      "thinking",
      about(object({ text: text() }), "Thoughts of the model before a message, sent when they are stored."),
    ),
    streamed("thinking_delta", THINKING_DELTA),
    streamed("tool", TOOL),
    streamed("flow", FLOW),
    streamed(
      "retry",
      about(declared<ModelRetry>("ModelRetry"), "A call of the model failed and will be retried."),
    ),
  ),
);
export type AgentEvent = Of<typeof AGENT>;

/** An event: when it is sent and to whom, and its payload. */
export interface EventSpec {
  /** When it is sent, and to whom. */ readonly summary: string;
  readonly payload: Schema;
}

export const EVENTS = {
  chat: {
    summary: "The text of a run so far, and the end of the run. Sent to clients that may see the session.",
    payload: CHAT,
  },
  agent: {
    summary: "All steps of a run: start, text, thoughts, tools, conversation steps, end. Sent like `chat`.",
    payload: AGENT,
  },
  sessions: {
    summary: "A session was created, changed, reset or deleted, or the state of its runs changed.",
    payload: object({ key: text(), change: oneOf("created", "updated", "reset", "deleted", "state") }),
  },
  deliveries: {
    summary: "A row of the outbox has changed; `deliveries.list` returns it. Sent to operator.admin.",
    payload: object({ id: text(), sessionKey: text(), state: either(deliveryState, oneOf("dismissed")) }),
  },
  attention: {
    summary:
      "`attention.list` may have changed. Sent to clients that may read it, a few times a second at most.",
    payload: object({}),
  },
  "message.receipt": {
    summary:
      "A message between sessions changed its state. Sent to clients that may see one of the sessions.",
    payload: object(
      {
        messageId: text("Id of the message, as `sessions_send` returned it."),
        from: text("Session key of the sender."),
        to: text("Session key of the recipient."),
        state: declared<ReceiptState>("ReceiptState"),
        at: number("Time of the change, in ms since 1970."),
      },
      { code: text("Error code of the run, if the state is `declined`, `expired` or `failed`.") },
    ),
  },
  "session.message": {
    summary: "A message was added to a transcript. Sent to clients of version 4 that may see the session.",
    payload: object(
      {
        sessionKey: text(),
        sessionId: text("Id of the transcript."),
        messageId: text(),
        message: about(
          object(
            {
              role: oneOf("user", "assistant"),
              content: list(object({ type: oneOf("text"), text: text() })),
              timestamp: number(),
              __openclaw: about(object({ id: text() }, { runId: text() }), "Ids of the message and its run."),
            },
            {
              idempotencyKey: text("Of the message that started a run: the id of the run, and `:user`."),
              stopReason: text("Of an answer."),
            },
          ),
          "Its text, redacted, at most 16,000 characters.",
        ),
      },
      {
        lastChannel: text("Channel of the chat that the message came from, or that its run answers."),
        lastTo: text("That chat."),
        lastAccountId: text(),
        lastThreadId: text(),
      },
    ),
  },
  "exec.approval.requested": {
    summary: "An agent asks for permission. Sent to clients of version 4 that may answer.",
    payload: object({
      id: text("Id of the request, for `exec.approval.resolve`."),
      request: about(
        object({
          command: text(
            "The whole action, not redacted. Characters that cannot be seen are marked or escaped.",
          ),
          agentId: text(),
          sessionKey: text(),
        }),
        "The action, and the session that asks.",
      ),
      createdAtMs: number("ms since 1970."),
      expiresAtMs: number("Time at which the request counts as denied, in ms since 1970."),
    }),
  },
  "exec.approval.resolved": {
    summary: "A permission request has ended. Sent to clients of version 4 that may answer.",
    payload: object(
      { id: text() },
      {
        decision: about(
          oneOf("allow-once", "allow-always", "deny"),
          "Absent if the request ended without an answer, for example because its run was stopped.",
        ),
      },
    ),
  },
  presence: {
    summary: "A client connected or disconnected. Sent to tokens that cover every session.",
    payload: object({ presence: list(PRESENCE_ENTRY) }),
  },
  config: {
    summary: "The configuration file has changed. Sent to tokens that cover every session.",
    payload: object({
      ok: flag("False if the file has problems. The gateway keeps its settings; see `config.check`."),
      changed: list(text(), "Paths in the file that changed, without their values."),
      restart: list(text(), "Settings that apply after a restart."),
    }),
  },
  health: {
    summary: "Health of the gateway, sent every few ticks to tokens that cover every session.",
    payload: HEALTH,
  },
  tick: {
    summary: "Heartbeat, sent to every connection each `gateway.tickIntervalMs`.",
    payload: object({ ts: number() }),
  },
  shutdown: {
    summary: "The gateway is stopping. Sent to every connection.",
    payload: object({ reason: text() }, { restartExpectedMs: number() }),
  },
  ...added("events"),
} as const satisfies Record<string, EventSpec>;

export type EventName = keyof typeof EVENTS;

/** The payload of each event. */
export type EventPayloads = { readonly [E in EventName]: Of<(typeof EVENTS)[E]["payload"]> };

/** An event with its payload. */
export type EventOf<E extends EventName = EventName> = {
  [N in E]: { readonly event: N; readonly payload: EventPayloads[N] };
}[E];
