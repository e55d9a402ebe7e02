// The shape of a run: its states, its input, its end, its step in a flow, and the receipt of its message. The
// states change as follows: queued -> running -> (waiting <-> running) -> ok | error | timeout | aborted. An
// ended run never changes its state.

import type { Code } from "./errors.ts";
import type { Labels } from "./labels.ts";
import type { ImageBlock, Provenance, ToolResultMessage, Usage } from "./message.ts";
import type { Route } from "./session.ts";

export type ActiveRunState = "queued" | "running" | "waiting";
export type EndedRunState = "ok" | "error" | "timeout" | "aborted";
export type RunState = ActiveRunState | EndedRunState;

/** `turn`: a model turn. `append`: the input is stored between runs, without a model call. */
export type RunKind = "turn" | "append";

/** Step of a flow that a run executes. `task` is the work of a sub-agent. */
export type FlowStep = "round1" | "reply" | "task" | "announce";

export interface FlowRef {
  readonly flowId: string;
  readonly step: FlowStep;
  /** 1 for round 1, increased by each reply turn. The announce step has the number of the last turn. */
  readonly turn: number;
}

/** A format that the model's provider guarantees for the final answer. */
export type AnswerFormat =
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly name: string;
      readonly description?: string;
      readonly schema: Readonly<Record<string, unknown>>;
      /** Whether the provider must follow the schema exactly. Default: the provider's. */
      readonly strict?: boolean;
    };

/** A tool of the program that started a run. The program runs it, the gateway never does. */
interface ClientTool {
  readonly name: string;
  readonly description?: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Tools of the program that started a run. They are text of that program, and give no rights. */
export interface ClientTools {
  readonly list: readonly ClientTool[];
  /** True if the program takes one call at a time. */
  readonly oneByOne?: true;
  /** True if the model gets none of them. */
  readonly none?: true;
  /** Name of the tool that the model must call, or true for any. Default: none. */
  readonly must?: string | true;
}

/** Result of a call that an earlier run left to its client, with the id that it gets in the transcript. */
export type ClientResult = Omit<ToolResultMessage, "timestamp">;

/**
 * `none`: no announce step. `parent`: the last reply goes to the sender's session instead. `channel`: the
 * first reply is announced to the target's people, and the sender gets no turn and no notice of it.
 */
export const SEND_ANNOUNCE = ["none", "parent", "channel"] as const;
export type SendAnnounce = (typeof SEND_ANNOUNCE)[number];

/**
 * The end of a conversation that its sender chose. `idle`: the sender gets one notice when the target has
 * finished all its work, not the outcome.
 */
export type ChosenEnd = SendAnnounce | "idle";

/** The run's input message, and the context that the runtime adds for the model. */
export interface RunInput {
  readonly text: string;
  readonly images?: readonly ImageBlock[];
  readonly provenance?: Provenance;
  readonly senderName?: string;
  /** Author of a channel message, written as in the settings: `<channel>:<id>`. */
  readonly sender?: string;
  /**
   * True if the author may not read the memory of the agents: somebody who is not an owner, in a session
   * other than the main session, or a token for some sessions. All later runs of the chain inherit it.
   */
  readonly guest?: boolean;
  /**
   * Source of outside content in the text, if `guest` does not say so: a stranger who writes in the main
   * session. The session and the chain are marked with it.
   */
  readonly outside?: string;
  /** Labels of the text, if no session wrote it: of a job, or of texts that a person quotes or forwards. */
  readonly labels?: Labels;
  /**
   * Tokens that the chain may use, because the gateway or program that asked for it allows no more. All later
   * runs of the chain inherit it.
   */
  readonly tokenLimit?: number;
  /** Context that the runtime adds after the system prompt. It starts with a fixed heading. */
  readonly context?: string;
  /** Destination of the last text, in addition to the transcript: of a job, a web hook or a node. */
  readonly replyTo?: Route;
  /** Thinking level for this run only. */
  readonly thinking?: string;
  /** Format of the final answer, for this run only. */
  readonly format?: AnswerFormat;
  /** Tools of the client. A run whose model calls one ends, and the next run begins with the results. */
  readonly clientTools?: ClientTools;
  /** Results with which the run begins, before `text`. With them, an empty text is no message. */
  readonly results?: readonly ClientResult[];
  /** True if the client does not wait for the end of the run. */
  readonly background?: boolean;
  /** True if the run calls the model only for a summary of the older messages, which replaces them for it. */
  readonly compact?: boolean;
  /** Only with kind `append`: the text is stored as an assistant message (`stopReason: "injected"`). */
  readonly injected?: boolean;
  /** The preceding run of the lane may read this input between two steps, and then takes it over. */
  readonly steer?: boolean;
  /** Number of failed runs of the same message that a person retried before this one. */
  readonly retries?: number;
  /** True if the stored row is damaged and does not contain the input. The run then ends as failed. */
  readonly unreadable?: true;
  /** Run that took this input over. The message is in that run's part of the transcript. */
  readonly takenBy?: string;
}

/** Returns whether no person and no session wrote the message, but a job, a web hook or a node. */
export function isAutomatic({ provenance }: Pick<RunInput, "provenance">): boolean {
  return provenance?.kind === "cron" || provenance?.kind === "hook" || provenance?.kind === "node";
}

/** Text of a run that continues after the results of a failed run. */
export const PLEASE_CONTINUE = "(Please continue.)";

/** Returns whether the input has results of calls only, and no message after them. */
export function endsWithResult({ text, images = [], results = [] }: RunInput): boolean {
  return results.length > 0 && text === "" && images.length === 0;
}

/** Returns where the answer of a run goes, in addition to the transcript. */
export const answerRoute = ({ input, route }: Pick<Run, "input" | "route">): Route | undefined =>
  input.replyTo ?? route;

/** Error of a run that succeeded, but whose answer is not complete. */
export const CUT_SHORT = "the answer was cut at the output limit";

/** Reason and time of a run's end. */
export interface RunEnd {
  readonly state: EndedRunState;
  readonly endedAt: number;
  /**
   * Last text of the run: its answer, also a skip token alone, or what a failed run had written. Absent if
   * the model wrote none.
   */
  readonly reply?: string;
  readonly code?: Code;
  /** Why the run failed. With state `ok`: why its answer is not complete (`CUT_SHORT`). */
  readonly error?: string;
}

/** One row of the run table. */
export interface Run {
  readonly runId: string;
  readonly sessionKey: string;
  /** Id of the transcript at the time when the run was accepted. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly laneSeq: number;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly input: RunInput;
  readonly chainId: string;
  readonly hop: number;
  /**
   * Number of times that the run was claimed. A write for the run fails if `owner` or this number is out of
   * date.
   */
  readonly attempt: number;
  /** Number of attempts that were lost because their process died, with no other run (`crash-policy.ts`). */
  readonly crashes: number;
  readonly owner?: string;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  readonly heardAt?: number;
  readonly endedAt?: number;
  /** Maximum duration of the run from its start; 0: no limit. */
  readonly timeoutMs: number;
  /** Destination of the reply. Absent if the reply only goes to the transcript. */
  readonly route?: Route;
  readonly flow?: FlowRef;
  readonly parentRunId?: string;
  /** Owner of the idempotency key. Absent if the run has no key, or if an older version accepted it. */
  readonly askedBy?: string;
  /** Stable id of the tool call that created this run, so that a repeated call creates no second run. */
  readonly callId?: string;
  readonly reply?: string;
  readonly code?: Code;
  readonly error?: string;
  readonly usage: Usage;
  readonly model?: string;
  /** Time since which the client that asked for the run can't fetch its response. */
  readonly forgottenAt?: number;
  /** Hash of the revision with the run's inputs. Absent before its end, and if they are not kept. */
  readonly revision?: string;
}

/** `pending`: a held run still stops before its next tool call. `held`: it has stopped there. */
export type RunHold = "pending" | "held";

/** How a run continues before tool calls. `skipped`: it was released without making these calls. */
export type Passage = "free" | "released" | "skipped";

/** Facts about a run for readers of its session's transcript. */
export interface RunFacts {
  readonly runId: string;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly acceptedAt: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly model?: string;
  /** Present after the end of the run. */
  readonly usage?: Usage;
  readonly code?: string;
  readonly error?: string;
  /** Number of attempts that were lost because their process died. Absent if there were none. */
  readonly crashes?: number;
  readonly chainId: string;
  /** `turnsMax`: maximum number of reply turns after round 1. */
  readonly flow?: FlowRef & { readonly turnsMax?: number };
  /** Present while a person holds the run. */
  readonly hold?: RunHold;
  /** State of the receipt, for a message between sessions. */
  readonly receipt?: ReceiptState;
}

/** Facts about a run for a reader of its session's transcript, without the id of the run. */
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

/** Returns the code of a run that ended badly, otherwise undefined. */
export function endCodeOf({ state, code }: Pick<Run, "state" | "code">): Code | undefined {
  if (!isEnded(state)) return undefined;
  return state === "error" ? (code ?? END_CODES.error) : END_CODES[state];
}

/** States of a message from one session to another, in this order. The last four are final. */
export type ReceiptState = "queued" | "offered" | "in_turn" | "answered" | "declined" | "expired" | "failed";

export type Receipt = {
  /** Id of the message in the recipient's transcript or inbox, and of the run that delivered it. */
  readonly messageId: string;
  readonly state: ReceiptState;
  /** Time of each state that the message has reached, in ms since 1970. */
  readonly times: { readonly [K in ReceiptState]?: number };
  /** Code of the run's end, for `declined`, `expired` and `failed`. */
  readonly code?: string;
};

/**
 * Times (ms since 1970) at which a message for an outside program changed its state. No run records these
 * times, because the program works outside the gateway.
 */
export interface InboxMark {
  /** Time when an answer that contains the message was written to the client's connection. */
  readonly offeredAt?: number;
  /** Time when the client acknowledged the message. */
  readonly inTurnAt?: number;
  readonly endedAt?: number;
  readonly outcome?: InboxOutcome;
}

export type InboxOutcome = "answered" | "declined" | "expired";
