// The shape of a chain for display: its sessions, and its steps in order of time. If the reader may not see a
// session, the session is `NOT_VISIBLE`, and its steps have no text and no ids.

import { optional } from "../optional.ts";
import { NOT_VISIBLE } from "../rules/visibility.ts";
import type { Labels } from "./labels.ts";
import { isInHouse, type Route } from "./route.ts";
import type { Receipt, RunState } from "./run.ts";

/**
 * Returns the destination and the error of a delivery. If the reader may not see the session that the text
 * was for, that session has no name, and the error, which is about it, is left out (I9).
 */
export function visibleOutcome(
  { route, error }: { readonly route: Route; readonly error?: string },
  sees: (sessionKey: string) => boolean,
): { readonly route: Route; readonly error?: string } {
  if (isInHouse(route) && !sees(route.to)) return { route: { ...route, to: NOT_VISIBLE } };
  return { route, ...optional({ error }) };
}

/**
 * `message`: from a person, a program or a schedule. `result`: the result of a job, or a notice.
 * `delivery`: an announcement that is sent to people.
 */
export type StepKind =
  | "message"
  | "send"
  | "reply"
  | "announce"
  | "spawn"
  | "result"
  | "wait"
  | "refused"
  | "delivery";

/**
 * State of a run, of a wait (`waiting`, `answered`, `timeout`, `aborted`) or of an outbox row; or `refused`.
 */
export type StepState = RunState | "answered" | "refused" | "pending" | "sent" | "failed" | "skipped";

export interface ChainStep {
  /** Id that stays the same each time the chain is read. */
  readonly id: string;
  readonly kind: StepKind;
  /** Key of the session that acts. Absent if no session does. */
  readonly from?: string;
  /** Key of the target session. */
  readonly to?: string;
  /**
   * For a refused step: the target's name in the call, if that is not a session key. For a spawn, the agent.
   */
  readonly toName?: string;
  /** Author of a message (`person`, `cron`, `hook`, `node`) or kind of a result (`job`, `notice`). */
  readonly source?: "person" | "cron" | "hook" | "node" | "job" | "notice";
  /**
   * Time when the step was accepted, refused or put into the outbox, or when the wait began; ms since 1970.
   */
  readonly at: number;
  /** Time when the step's run started to execute. */
  readonly startedAt?: number;
  readonly endAt?: number;
  readonly state: StepState;
  readonly code?: string;
  readonly error?: string;
  /** For a refused step: the tool that was called. */
  readonly tool?: string;
  /** For a refused wait: the sessions that would have waited for each other. */
  readonly cycle?: readonly string[];
  /**
   * Id of a run. For a message: the run in session `to`. For a delivery: the run in session `from`. For a
   * wait or a refusal: the run that made the call.
   */
  readonly runId?: string;
  readonly flowId?: string;
  /** 1 for the first message, and one more for each reply turn. */
  readonly turn?: number;
  /** Maximum reply turns after the first answer. */
  readonly turnsMax?: number;
  readonly hop?: number;
  /** The message, shortened. */
  readonly text: string;
  /** Answer of the step's run, shortened. */
  readonly answer?: string;
  /** True if the run chose not to reply. */
  readonly silent?: true;
  /** State of the receipt, for a message between sessions. */
  readonly receipt?: Receipt;
  /** True if the input was stored without a model turn. */
  readonly appended?: true;
  /** Id of the stored message, and key of the session whose transcript contains it. */
  readonly messageId?: string;
  readonly messageIn?: string;
  /** For a delivery: the destination. */
  readonly route?: { readonly channel: string; readonly to: string };
  readonly tokens?: number;
  /** USD. */
  readonly cost?: number;
  /** Labels that the step's run brought into its chain or its session. */
  readonly labels?: Labels;
}

/** A model call or a tool call of a run. Its times come from the stored messages. */
export interface ChainCall {
  readonly id: string;
  readonly runId: string;
  readonly kind: "model" | "tool";
  readonly name: string;
  /** Time when the call began. */
  readonly at: number;
  /** Absent while the call is in progress. */
  readonly endAt?: number;
  readonly failed?: true;
  readonly tokens?: number;
  /** USD. */
  readonly cost?: number;
}

export interface ChainParty {
  readonly key: string;
  readonly label?: string;
  /** True if the session was deleted. */
  readonly gone?: true;
}

/** Messages from one session to another, sent or refused. */
export interface ChainTalk {
  readonly kind: "send" | "spawn" | "refused";
  readonly from: string;
  readonly to: string;
  /** Number of messages, including reply turns and results. */
  readonly steps: number;
  /** Number of conversations or jobs that are in progress. */
  readonly open: number;
}

/** A chain as an entry of a list. */
export interface ChainRow {
  readonly chainId: string;
  /** Session in which the chain began. */
  readonly rootSessionKey?: string;
  /** The first message, shortened. */
  readonly opening?: string;
  readonly startedAt: number;
  readonly lastAt: number;
  /** True if one of its runs is queued, running or waiting. */
  readonly active: boolean;
  readonly runs: number;
  readonly failed: number;
  readonly hopMax: number;
  readonly tokens: number;
  /** USD. */
  readonly cost: number;
  /** Limits from the settings. */
  readonly limits: {
    readonly runsMax: number;
    readonly hopsMax: number;
    readonly tokensMax?: number;
    readonly costMax?: number;
  };
  /** Sessions in order of their first step; at most 24. */
  readonly sessions: readonly string[];
  readonly sessionCount: number;
  /** Number of conversations and jobs. */
  readonly flows: number;
  readonly refused: number;
  /** Messages by pair of sessions; at most 40 pairs. */
  readonly talks: readonly ChainTalk[];
  /** True if the chain has sessions that the reader may not see. The counts do not include those. */
  readonly partial?: true;
}
