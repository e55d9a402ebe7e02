// The live events that the engine and the flows publish. Events are only hints: the stored rows are
// authoritative.

import type { Message, Usage } from "./message.ts";
import type { ModelRetry } from "./model-retry.ts";
import type { PermissionAnswered, PermissionQuestion } from "./permission.ts";
import type { Route } from "./route.ts";
import type { EndedRunState, FlowStep, ReceiptState } from "./run.ts";

/** New text, or new thinking, of the assistant message being written. */
export type LiveTextEvent = ({ readonly kind: "text" } | { readonly kind: "thinking" }) & {
  readonly runId: string;
  readonly sessionKey: string;
  /** Id of the message that the text belongs to. A new id starts a new text. */
  readonly part: string;
  readonly offset: number;
  readonly text: string;
};

export type LiveEvent =
  | {
      readonly kind: "run_started";
      readonly runId: string;
      readonly sessionKey: string;
      readonly chainId: string;
      readonly startedAt: number;
      /** Time that the run waited in its lane. Absent if the run continues an earlier attempt. */
      readonly queuedMs?: number;
      readonly flowStep?: FlowStep;
    }
  | LiveTextEvent
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
      /** The chat of the message, or of its answer. */
      readonly route?: Route;
      readonly message: Message;
    }
  | {
      readonly kind: "run_ended";
      readonly runId: string;
      readonly sessionKey: string;
      /** Id of the transcript that contains the messages of the run. */
      readonly sessionId?: string;
      readonly chainId: string;
      readonly state: EndedRunState;
      /** Text for people. Empty if the agent chose not to reply. */
      readonly text: string;
      readonly code?: string;
      readonly error?: string;
      readonly usage: Usage;
      readonly startedAt?: number;
      readonly endedAt: number;
      readonly flowStep?: FlowStep;
      /** Id of the run that read the message, if the message did not start its own run. */
      readonly takenBy?: string;
    }
  | {
      /** A step of a conversation between two sessions. */
      readonly kind: "flow";
      readonly runId: string;
      readonly sessionKey: string;
      readonly flowId: string;
      /**
       * `refused`: a send or spawn was refused. `flowId` is then the id of the call, and `reason` the code.
       */
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
      /** Ids of the message and its run. */
      readonly runId: string;
      readonly sessionKey: string;
      readonly from: string;
      readonly state: ReceiptState;
      readonly code?: string;
      readonly atMs: number;
    }
  | {
      /** Text for a webchat route: an announcement, or another text that is not the answer of a run. */
      readonly kind: "delivered";
      readonly deliveryId: string;
      readonly runId?: string;
      readonly sessionKey: string;
      readonly text: string;
      readonly atMs: number;
    }
  | {
      /** Final outcome of a text for people. Web hook deliveries publish no such event. */
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
      /** A row of the outbox changed. Web hook deliveries publish only their failures. */
      readonly kind: "outbox";
      readonly deliveryId: string;
      readonly sessionKey: string;
      readonly state: "pending" | "sent" | "failed" | "skipped" | "dismissed";
    }
  | {
      /** An agent asked for permission. */
      readonly kind: "permission";
      readonly id: string;
      readonly sessionKey: string;
      readonly change: "asked";
      readonly question: PermissionQuestion;
    }
  | {
      /** A permission request was answered, or ended without an answer. */
      readonly kind: "permission";
      readonly id: string;
      readonly sessionKey: string;
      readonly change: "settled";
      readonly answer?: Pick<PermissionAnswered, "decision" | "scope">;
    }
  | {
      /** A program's answer was not used, so the permission request is still open. */
      readonly kind: "permission";
      readonly id: string;
      readonly sessionKey: string;
      readonly change: "refused";
      readonly problem: string;
    }
  | {
      /** An event of a feature. Clients that may see the session get it as it is. */
      readonly kind: "feature";
      readonly event: string;
      readonly sessionKey: string;
      readonly payload: object;
      /** Only clients with operator.admin get it, because it changes what their attention list shows. */
      readonly isForAdmins?: true;
    }
  | {
      readonly kind: "session";
      readonly sessionKey: string;
      readonly change: "created" | "updated" | "reset" | "deleted" | "state";
      /** Set with `updated`, if this change archived or restored the session. */
      readonly archived?: boolean;
    };

export function isLiveText(event: LiveEvent): event is LiveTextEvent {
  return event.kind === "text" || event.kind === "thinking";
}
