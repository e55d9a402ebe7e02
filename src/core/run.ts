// Owns what a run is: its states, its input, its end, and what a flow step carries.
// R1: queued -> running -> (waiting <-> running) -> ok | error | timeout | aborted; an end is final.

import type { Code } from "./errors.ts";
import type { ImageBlock, Provenance, Usage } from "./message.ts";
import type { Route } from "./session.ts";

export type ActiveRunState = "queued" | "running" | "waiting";
export type EndedRunState = "ok" | "error" | "timeout" | "aborted";
export type RunState = ActiveRunState | EndedRunState;

/** `turn`: a model turn. `append`: the input is written down between runs, without a model call. */
export type RunKind = "turn" | "append";

/** Which part of a flow a run is. `task`: the work of a sub-agent. */
export type FlowStep = "round1" | "reply" | "task" | "announce";

export interface FlowRef {
  readonly flowId: string;
  readonly step: FlowStep;
  /** 1 for round 1; each reply turn adds one. The announce step carries the last turn's number. */
  readonly turn: number;
}

/** What the run's input message will be, and what the runtime tells the model about it. */
export interface RunInput {
  readonly text: string;
  readonly images?: readonly ImageBlock[];
  readonly provenance?: Provenance;
  readonly senderName?: string;
  /** Who wrote it at a channel, as settings name them: `<channel>:<id>`. */
  readonly sender?: string;
  /** Runtime context, put behind the system prompt; starts with a fixed heading line (SPEC 4). */
  readonly context?: string;
  /** For this run only. */
  readonly thinking?: string;
  /** With kind `append`: written as an assistant message (`stopReason: "injected"`). */
  readonly injected?: boolean;
  /** The run before it in its lane may read it between two of its steps, and then takes it over. */
  readonly steer?: boolean;
  /** The run that took it over: the message stands in the transcript as part of that one. */
  readonly takenBy?: string;
}

/** Why and when a run ended. */
export interface RunEnd {
  readonly state: EndedRunState;
  readonly endedAt: number;
  /** The final text as the model wrote it, skip tokens included; absent when none was written. */
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
}

/** One row of the run table. */
export interface Run {
  readonly runId: string;
  readonly sessionKey: string;
  /** The transcript in force when the run was accepted. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly laneSeq: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly input: RunInput;
  readonly chainId: string;
  readonly hop: number;
  /** Counts claims; with `owner` it fences commits. */
  readonly attempt: number;
  /** Attempts that ended with their process while the run was executing (`crash-policy.ts`). */
  readonly crashes: number;
  /** The latest of them, since a tool call of the run was last answered. */
  readonly crashesInRow: number;
  readonly owner?: string;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** Aborts the run this long after it started; 0 = never. */
  readonly timeoutMs: number;
  /** Where its reply goes; absent: nowhere but the transcript. */
  readonly route?: Route;
  readonly flow?: FlowRef;
  /** The run whose tool call made this one. */
  readonly parentRunId?: string;
  /** The owner of its idempotency key; absent: it has none, or an older version accepted it. */
  readonly askedBy?: string;
  /** The stable id of that tool call: the same call never makes a second run. */
  readonly callId?: string;
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
  readonly usage: Usage;
  readonly model?: string;
}

/** What is told of a run to whoever reads its session's transcript. */
export interface RunFacts {
  readonly runId: string;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly model?: string;
  /** Once it has ended. */
  readonly usage?: Usage;
  readonly code?: string;
  readonly error?: string;
  /** Attempts that ended with their process. Absent: none. */
  readonly crashes?: number;
  readonly chainId: string;
  /** `turnsMax`: the reply turns that may follow round 1. */
  readonly flow?: FlowRef & { readonly turnsMax?: number };
}

export function isEnded(state: RunState): state is EndedRunState {
  return state === "ok" || state === "error" || state === "timeout" || state === "aborted";
}
