// The live events that the engine and the flows publish. They are hints only: the stored row is
// authoritative.

import type { Message, Usage } from "./message.ts";
import type { ModelRetry } from "./model-retry.ts";
import type { EndedRunState, FlowStep, ReceiptState } from "./run.ts";

export type CronChange = "added" | "updated" | "removed" | "fired" | "ended";

export type LiveEvent =
  | {
      readonly kind: "run_started";
      readonly runId: string;
      readonly sessionKey: string;
      readonly chainId: string;
      readonly startedAt: number;
      /** Time that it waited in its lane. Absent: it continues an earlier attempt. */
      readonly queuedMs?: number;
      readonly flowStep?: FlowStep;
    }
  | {
      /** New text of the assistant message being written. */
      readonly kind: "text";
      readonly runId: string;
      readonly sessionKey: string;
      /** The message of the run. A different one starts a new text. */
      readonly part: string;
      readonly offset: number;
      readonly text: string;
    }
  | {
      /** A model request failed and is retried. */
      readonly kind: "retry";
      readonly runId: string;
      readonly sessionKey: string;
      readonly retry: ModelRetry;
      readonly atMs: number;
    }
  | {
      readonly kind: "tool";
      readonly runId: string;
      readonly sessionKey: string;
      readonly phase: "start" | "end";
      readonly callId: string;
      readonly name: string;
      readonly arguments?: unknown;
      readonly isError?: boolean;
      readonly result?: string;
      readonly atMs: number;
    }
  | {
      /** A transcript entry was committed. */
      readonly kind: "message";
      readonly runId?: string;
      readonly sessionKey: string;
      readonly sessionId: string;
      readonly message: Message;
    }
  | {
      readonly kind: "run_ended";
      readonly runId: string;
      readonly sessionKey: string;
      /** The transcript that holds the messages of the run. */
      readonly sessionId?: string;
      readonly chainId: string;
      readonly state: EndedRunState;
      /** The text for people. Empty if the agent chose not to reply. */
      readonly text: string;
      readonly code?: string;
      readonly error?: string;
      readonly usage: Usage;
      readonly startedAt?: number;
      readonly endedAt: number;
      readonly flowStep?: FlowStep;
      /** The run that read the message instead. */
      readonly takenBy?: string;
    }
  | {
      /** A step of a conversation between two sessions. */
      readonly kind: "flow";
      readonly runId: string;
      readonly sessionKey: string;
      readonly flowId: string;
      /** `refused`: a send or spawn was refused; `flowId` is the id of the call, `reason` the code. */
      readonly step: FlowStep | "ended" | "refused";
      readonly from: string;
      readonly to: string;
      readonly turn: number;
      readonly turnsMax: number;
      readonly text: string;
      readonly reason?: string;
      readonly atMs: number;
    }
  | {
      /** A message between sessions has reached a state. `sessionKey` is the recipient. */
      readonly kind: "receipt";
      /** The message and its run. */
      readonly runId: string;
      readonly sessionKey: string;
      readonly from: string;
      readonly state: ReceiptState;
      readonly code?: string;
      readonly atMs: number;
    }
  | {
      /** Text that reached a webchat route without its own run, or an announcement. */
      readonly kind: "delivered";
      readonly deliveryId: string;
      readonly runId?: string;
      readonly sessionKey: string;
      readonly text: string;
      readonly atMs: number;
    }
  | {
      /** The outcome of a text for people: its outbox row is final. Web hook deliveries publish none. */
      readonly kind: "delivery";
      readonly deliveryId: string;
      readonly sessionKey: string;
      readonly runId?: string;
      readonly what: "announce" | "send";
      readonly state: "sent" | "failed";
      readonly code?: string;
      readonly error?: string;
      readonly channel: string;
      readonly to: string;
      readonly atMs: number;
    }
  | {
      /** A row of the outbox changed. Web hook deliveries publish only failures. */
      readonly kind: "outbox";
      readonly deliveryId: string;
      readonly sessionKey: string;
      readonly state: "pending" | "sent" | "failed" | "skipped" | "dismissed";
    }
  | {
      /** A scheduled job was changed or became due, or its run finished. */
      readonly kind: "cron";
      readonly jobId: string;
      readonly sessionKey: string;
      readonly change: CronChange;
    }
  | {
      /** A device requested pairing, a request was decided, or a device was unpaired. */
      readonly kind: "node";
      readonly change: "requested" | "approved" | "rejected" | "removed";
      readonly nodeId: string;
      readonly sessionKey: string;
      readonly name: string;
      readonly platform: string;
      readonly requestId?: string;
      /** Present while the request is open. */
      readonly code?: string;
      readonly atMs: number;
    }
  | {
      readonly kind: "session";
      readonly sessionKey: string;
      readonly change: "created" | "updated" | "reset" | "deleted" | "state";
      /** With `updated`: the session was archived by this change. */
      readonly archived?: boolean;
    };
