// The shape of a run: its states, its input, its end, its step in a flow, and the receipt of its message.
// R1: queued -> running -> (waiting <-> running) -> ok | error | timeout | aborted; an end is final.

import type { Code } from "./errors.ts";
import type { ImageBlock, Provenance, Usage } from "./message.ts";
import type { Route } from "./session.ts";

export type ActiveRunState = "queued" | "running" | "waiting";
export type EndedRunState = "ok" | "error" | "timeout" | "aborted";
export type RunState = ActiveRunState | EndedRunState;

/** `turn`: a model turn. `append`: the input is stored between runs, without a model call. */
export type RunKind = "turn" | "append";

/** The step of a flow that a run executes. `task`: the work of a sub-agent. */
export type FlowStep = "round1" | "reply" | "task" | "announce";

export interface FlowRef {
  readonly flowId: string;
  readonly step: FlowStep;
  /** 1 for round 1; each reply turn adds one. The announce step carries the last turn's number. */
  readonly turn: number;
}

/** The run's input message, and the context that the runtime adds for the model. */
export interface RunInput {
  readonly text: string;
  readonly images?: readonly ImageBlock[];
  readonly provenance?: Provenance;
  readonly senderName?: string;
  /** Author at a channel, as in the settings: `<channel>:<id>`. */
  readonly sender?: string;
  /** Context from the runtime, added after the system prompt; starts with a fixed heading line. */
  readonly context?: string;
  /** Thinking level for this run only. */
  readonly thinking?: string;
  /** With kind `append`: stored as an assistant message (`stopReason: "injected"`). */
  readonly injected?: boolean;
  /** The preceding run of the lane may read it between two steps, and then takes it over. */
  readonly steer?: boolean;
  /** The run that took it over: its transcript part contains the message. */
  readonly takenBy?: string;
}

/** Reason and time of a run's end. */
export interface RunEnd {
  readonly state: EndedRunState;
  readonly endedAt: number;
  /** The final text as the model wrote it, including skip tokens. Absent: none was written. */
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
}

/** One row of the run table. */
export interface Run {
  readonly runId: string;
  readonly sessionKey: string;
  /** The current transcript when the run was accepted. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly laneSeq: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly input: RunInput;
  readonly chainId: string;
  readonly hop: number;
  /** Counts claims. Together with `owner` it is the fence token of commits. */
  readonly attempt: number;
  /** Attempts that ended because their process died while executing the run (`crash-policy.ts`). */
  readonly crashes: number;
  /** Of these, the attempts since a tool call of the run was last answered. */
  readonly crashesInRow: number;
  readonly owner?: string;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  /** When the model first answered a message between sessions. */
  readonly heardAt?: number;
  readonly endedAt?: number;
  /** Aborts the run this long after its start; 0: never. */
  readonly timeoutMs: number;
  /** Destination of its reply. Absent: only the transcript. */
  readonly route?: Route;
  readonly flow?: FlowRef;
  /** The run whose tool call created this one. */
  readonly parentRunId?: string;
  /** Owner of its idempotency key. Absent: it has no key, or an older version accepted it. */
  readonly askedBy?: string;
  /** Stable id of that tool call: the same call never creates a second run. */
  readonly callId?: string;
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
  readonly usage: Usage;
  readonly model?: string;
}

/** The facts about a run that readers of its session's transcript may see. */
export interface RunFacts {
  readonly runId: string;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly model?: string;
  /** Present after its end. */
  readonly usage?: Usage;
  readonly code?: string;
  readonly error?: string;
  /** Attempts that ended because their process died. Absent: none. */
  readonly crashes?: number;
  readonly chainId: string;
  /** `turnsMax`: most reply turns that may follow round 1. */
  readonly flow?: FlowRef & { readonly turnsMax?: number };
  /** Of a message between sessions: the state of its receipt. */
  readonly receipt?: ReceiptState;
}

/** A run as a reader of its session's transcript sees it; `usage` once it has ended. */
export type RunRow = Omit<RunFacts, "runId">;

export function isEnded(state: RunState): state is EndedRunState {
  return state === "ok" || state === "error" || state === "timeout" || state === "aborted";
}

const END_CODES = {
  ok: undefined,
  error: "run_failed",
  timeout: "run_timeout",
  aborted: "run_aborted",
} as const;

/** Returns why a run ended badly; undefined: it did not. */
export function endCodeOf({ state, code }: Pick<Run, "state" | "code">): Code | undefined {
  if (!isEnded(state)) return undefined;
  return state === "error" ? (code ?? END_CODES.error) : END_CODES[state];
}

/** How far a message from one session to another has come, in this order. The last four are final. */
export type ReceiptState = "queued" | "offered" | "in_turn" | "answered" | "declined" | "expired" | "failed";

export type Receipt = {
  /** The id of the message in the recipient's transcript or inbox, and of the run that brought it there. */
  readonly messageId: string;
  readonly state: ReceiptState;
  /** ms since 1970, by state: the states that the message has reached. */
  readonly times: { readonly [K in ReceiptState]?: number };
  /** Of `declined`, `expired` and `failed`: the code of the run's end. */
  readonly code?: string;
};

/** Facts about a message for a program without a model of ours, which no run tells. ms since 1970. */
export interface InboxMark {
  /** An answer with the message was written to the client's connection. */
  readonly offeredAt?: number;
  /** The client acknowledged the message. */
  readonly inTurnAt?: number;
  readonly endedAt?: number;
  readonly outcome?: InboxOutcome;
}

export type InboxOutcome = "answered" | "declined" | "expired";
