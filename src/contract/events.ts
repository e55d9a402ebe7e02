// Lists the events: when each is sent, to whom, and its payload. Clients get no others.

import type { CronChange } from "../core/shapes/event.ts";
import type { Usage } from "../core/shapes/message.ts";
import type { ModelRetry } from "../core/shapes/model-retry.ts";
import type { EndedRunState, FlowStep, ReceiptState } from "../core/shapes/run.ts";
import { PRESENCE_ENTRY } from "./frames.ts";
import { HEALTH } from "./methods/operations.ts";
import { deliveryState } from "./methods/parts.ts";
import type { EventName } from "./protocol.ts";
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
  seq: number("Rises within a run, also when a resumed run starts its text again."),
};

const CHAT_MESSAGE = named(
  "ChatMessage",
  "A message as a chat event has it.",
  object({
    role: oneOf("assistant"),
    content: list(object({ type: oneOf("text"), text: text() })),
    timestamp: number(),
  }),
);
export type ChatMessage = Of<typeof CHAT_MESSAGE>;

const CHAT = named(
  "ChatEvent",
  "The text of a run so far, or its end.",
  object(
    { ...ofRun, state: oneOf("delta", "final", "aborted", "error") },
    {
      message: about(
        CHAT_MESSAGE,
        "The whole text so far, which replaces the client's. Absent in the final event of a silent run.",
      ),
      delta: text(
        "For clients with `text-deltas`, replaces `message` in a delta: the text from `offset` on.",
      ),
      offset: number("The start of `delta`, in UTF-16 units."),
      errorMessage: text(),
      code: text(),
      usage: declared<Usage>("Usage"),
      stopReason: text(),
    },
  ),
);
export type ChatEvent = Of<typeof CHAT>;

const LIFECYCLE = named(
  "LifecycleData",
  "The start or the end of the run.",
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
        "`refused`: a send or spawn that was refused; `flowId` is the call's id, `reason` the code.",
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
      about(object({ text: text() }), "The model's thoughts before a message, once they are stored."),
    ),
    streamed("tool", TOOL),
    streamed("flow", FLOW),
    streamed(
      "retry",
      about(
        declared<ModelRetry>("ModelRetry"),
        "The model's provider failed; the call is retried after a while.",
      ),
    ),
  ),
);
export type AgentEvent = Of<typeof AGENT>;

/** An event of the protocol. */
interface EventSpec {
  /** When it is sent, and to whom. */ readonly summary: string;
  readonly payload: Schema;
}

export const EVENTS = {
  chat: {
    summary:
      "The text of a run so far, and its end, for a chat window. Sent to clients that may see the session.",
    payload: CHAT,
  },
  agent: {
    summary:
      "Everything in a run: start, text, thoughts, tools, steps of a conversation, end. Sent like `chat`.",
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
      "`attention.list` may have changed. Sent to clients that may read it, at most a few times a second.",
    payload: object({}),
  },
  "message.receipt": {
    summary:
      "A message between sessions has reached a state. Sent to clients that may see one of the two sessions.",
    payload: object(
      {
        messageId: text("As `sessions_send` returned it."),
        from: text("The sender."),
        to: text("The recipient."),
        state: declared<ReceiptState>("ReceiptState"),
        at: number("ms since 1970."),
      },
      { code: text("The code of the run's end, if `declined`, `expired` or `failed`.") },
    ),
  },
  cron: {
    summary:
      "A job has changed or run; `cron.list` returns its state. Sent to clients that may see its session.",
    payload: object({ id: text(), key: text(), change: declared<CronChange>("CronChange") }),
  },
  "node.pair.requested": {
    summary: "A device requests pairing. Sent to operator.admin.",
    payload: object(
      { nodeId: text(), displayName: text(), platform: text(), ts: number() },
      { requestId: text(), code: text() },
    ),
  },
  "node.pair.resolved": {
    summary: "The request was decided, or a device was unpaired. Sent to operator.admin.",
    payload: object(
      {
        nodeId: text(),
        displayName: text(),
        decision: oneOf("approved", "rejected", "removed"),
        ts: number(),
      },
      { requestId: text() },
    ),
  },
  "node.invoke.request": {
    summary: "A command for a node. Sent to that node.",
    payload: object(
      { id: text(), nodeId: text(), command: text(), timeoutMs: number(), idempotencyKey: text() },
      { paramsJSON: text() },
    ),
  },
  "node.invoke.cancel": {
    summary: "The command is no longer needed. Sent to its node.",
    payload: object({ id: text(), nodeId: text() }),
  },
  presence: {
    summary: "A client connected or disconnected. Sent to tokens that cover every session.",
    payload: object({ presence: list(PRESENCE_ENTRY) }),
  },
  health: {
    summary: "The gateway's health, every few ticks. Sent to tokens that cover every session.",
    payload: HEALTH,
  },
  tick: {
    summary: "A heartbeat, every `gateway.tickIntervalMs`. Sent to every connection.",
    payload: object({ ts: number() }),
  },
  shutdown: {
    summary: "The gateway stops. Sent to every connection.",
    payload: object({ reason: text() }, { restartExpectedMs: number() }),
  },
} as const satisfies Record<EventName, EventSpec>;

/** The payload of each event. */
export type EventPayloads = { readonly [E in EventName]: Of<(typeof EVENTS)[E]["payload"]> };

/** An event with its payload. */
export type EventOf<E extends EventName = EventName> = {
  [N in E]: { readonly event: N; readonly payload: EventPayloads[N] };
}[E];
