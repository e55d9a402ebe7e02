// Owns the types of method answers and event payloads, shared by the gateway and its clients.
// `Method` requires these types, so every method has exactly one kind of answer.

import type { Health } from "./methods/operations.ts";
import type { METHODS, MethodName } from "./methods.ts";
import type {
  AgentEvent,
  ChatEvent,
  CronEvent,
  DeliveriesEvent,
  NodeInvokeCancel,
  NodeInvokeRequest,
  NodePairRequested,
  NodePairResolved,
  PresenceEntry,
  ReceiptEvent,
  SessionsEvent,
  ShutdownEvent,
} from "./protocol.ts";
import type { Of } from "./schema.ts";

/** The payload of each event, when it is sent, and to whom. */
export interface EventPayloads {
  /** The text of a run so far, and its end, for a chat window: to those who may see the session. */
  readonly chat: ChatEvent;
  /** Everything in a run: start, text, thoughts, tools, steps of a conversation, end. To the same. */
  readonly agent: AgentEvent;
  /**
   * A session was created, changed, reset or deleted, or a run of it was accepted, started, waits or ended.
   */
  readonly sessions: SessionsEvent;
  /** A row of the outbox has changed: to operator.admin. */
  readonly deliveries: DeliveriesEvent;
  /** A message between sessions has reached a state: to those who may see its sender or its recipient. */
  readonly "message.receipt": ReceiptEvent;
  /** A scheduled job has changed or run: to those who may see its session. */
  readonly cron: CronEvent;
  /** A device requests pairing: to operator.admin. */
  readonly "node.pair.requested": NodePairRequested;
  /** The request was decided, or a device was unpaired: to operator.admin. */
  readonly "node.pair.resolved": NodePairResolved;
  /** A command: to its node. */
  readonly "node.invoke.request": NodeInvokeRequest;
  /** The command is no longer needed: to its node. */
  readonly "node.invoke.cancel": NodeInvokeCancel;
  /** A client connected or disconnected: to tokens that cover every session. */
  readonly presence: { readonly presence: readonly PresenceEntry[] };
  /** The gateway's health, every few ticks: to tokens that cover every session. */
  readonly health: Health;
  /** A heartbeat, every `gateway.tickIntervalMs`: to every connection. */
  readonly tick: { readonly ts: number };
  /** The gateway stops: to every connection. */
  readonly shutdown: ShutdownEvent;
}

/** The payload of a method's answer. */
export type PayloadOf<M extends MethodName> = Of<(typeof METHODS)[M]["result"]>;
