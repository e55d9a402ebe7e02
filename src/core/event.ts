// Owns the live events that leave the engine and the flows. A hint only: the row is the truth.

import type { Message, Usage } from "./message.ts";
import type { ModelRetry } from "./model-retry.ts";
import type { EndedRunState, FlowStep } from "./run.ts";

export type CronChange = "added" | "updated" | "removed" | "fired" | "ended";

export type LiveEvent =
  | {
      readonly kind: "run_started";
      readonly runId: string;
      readonly sessionKey: string;
      readonly chainId: string;
      readonly startedAt: number;
      /** How long it had been in its lane before. Absent: it goes on after an earlier attempt. */
      readonly queuedMs?: number;
      readonly flowStep?: FlowStep;
    }
  | {
      /** New text of the assistant message being written. */
      readonly kind: "text";
      readonly runId: string;
      readonly sessionKey: string;
      /** The message of the run: another one begins a text of its own. */
      readonly part: string;
      readonly offset: number;
      readonly text: string;
    }
  | {
      /** A model's provider failed, and is asked again. */
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
      /** Its transcript holds what the run wrote. */
      readonly sessionId?: string;
      readonly chainId: string;
      readonly state: EndedRunState;
      /** What a person may see: skip tokens are already silence here. */
      readonly text: string;
      readonly code?: string;
      readonly error?: string;
      readonly usage: Usage;
      readonly startedAt?: number;
      readonly endedAt: number;
      readonly flowStep?: FlowStep;
      /** The run that read the message in its place. */
      readonly takenBy?: string;
    }
  | {
      /** A step of a conversation between two sessions. */
      readonly kind: "flow";
      readonly runId: string;
      readonly sessionKey: string;
      readonly flowId: string;
      /** `refused`: a send or spawn that was refused; `flowId` is the call's id, `reason` the code. */
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
      /** Text that reached a webchat route without a run of its own, or an announcement. */
      readonly kind: "delivered";
      readonly deliveryId: string;
      readonly runId?: string;
      readonly sessionKey: string;
      readonly text: string;
      readonly atMs: number;
    }
  | {
      /** What became of a text for people: its row is settled. Of news for programs there is none. */
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
      /** A row of the outbox has changed. Of news for programs only trouble is told. */
      readonly kind: "outbox";
      readonly deliveryId: string;
      readonly sessionKey: string;
      readonly state: "pending" | "sent" | "failed" | "skipped" | "dismissed";
    }
  | {
      /** Something became of a scheduled job: it was changed, its turn came, the run of a turn ended. */
      readonly kind: "cron";
      readonly jobId: string;
      readonly sessionKey: string;
      readonly change: CronChange;
    }
  | {
      /** A device asked to be paired, that was settled, or it is paired no more. */
      readonly kind: "node";
      readonly change: "requested" | "approved" | "rejected" | "removed";
      readonly nodeId: string;
      readonly sessionKey: string;
      readonly name: string;
      readonly platform: string;
      readonly requestId?: string;
      /** While it is open. */
      readonly code?: string;
      readonly atMs: number;
    }
  | {
      readonly kind: "session";
      readonly sessionKey: string;
      readonly change: "created" | "updated" | "reset" | "deleted" | "state";
      /** With `updated`: it was archived now. */
      readonly archived?: boolean;
    };
