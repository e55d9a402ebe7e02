// The shape of a chain as people see it: its sessions, and its steps in order of time.
// CS1: a session that the reader may not see is `NOT_VISIBLE`; its steps have no text and no ids.

import { NOT_VISIBLE } from "../rules/visibility.ts";
import { type Route, WEBCHAT } from "./route.ts";
import type { Receipt, RunState } from "./run.ts";

/** Channels that deliver to a session, not to a chat platform. */
const IN_HOUSE: readonly string[] = [WEBCHAT, "internal"];

/** A session key or node id in an error text. A key ends where the next one begins; a node id is a hash. */
const KEY_IN_TEXT = /\b(?:(?:agent|cron|hook):(?:(?!\b(?:agent|cron|hook):)\S)+|node-[0-9a-f]{64})/g;

/** Returns the route, without its session if the reader may not see it (I9). */
export function visibleRoute(route: Route, sees: (sessionKey: string) => boolean): Route {
  return IN_HOUSE.includes(route.channel) && !sees(route.to) ? { ...route, to: NOT_VISIBLE } : route;
}

/** Returns an error text without the keys of sessions that the reader may not see (I9). */
export function visibleErrorText(text: string, sees: (sessionKey: string) => boolean): string {
  return text.replace(KEY_IN_TEXT, (key) => (sees(key) ? key : NOT_VISIBLE));
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
 * The state of a run, of a wait (`waiting`, `answered`, `timeout`, `aborted`) or of an outbox row; or
 * `refused`.
 */
export type StepState = RunState | "answered" | "refused" | "pending" | "sent" | "failed" | "skipped";

export interface ChainStep {
  /** Stable between reads. */
  readonly id: string;
  readonly kind: StepKind;
  /** Key of the acting session. Absent: no session acts. */
  readonly from?: string;
  /** Key of the target session. */
  readonly to?: string;
  /** For a refused step: the target named by the call, if it is not a session key; for a spawn, the agent. */
  readonly toName?: string;
  /** Author of a message (`person`, `cron`, `hook`, `node`) or kind of a result (`job`, `notice`). */
  readonly source?: "person" | "cron" | "hook" | "node" | "job" | "notice";
  /** ms since 1970: when it was accepted, refused or put into the outbox, or when the wait began. */
  readonly at: number;
  /** When its run started to execute. */
  readonly startedAt?: number;
  readonly endAt?: number;
  readonly state: StepState;
  readonly code?: string;
  readonly error?: string;
  /** For a refused step: the called tool. */
  readonly tool?: string;
  /** For a refused wait: the sessions that would have waited in a cycle. */
  readonly cycle?: readonly string[];
  /** The run in session `to` (of a delivery: in `from`). Of a wait or refusal: the calling run. */
  readonly runId?: string;
  readonly flowId?: string;
  /** 1 for the first message; each reply turn adds one. */
  readonly turn?: number;
  /** Maximum reply turns after the first answer. */
  readonly turnsMax?: number;
  readonly hop?: number;
  /** The message, shortened. */
  readonly text: string;
  /** The answer of its run, shortened. */
  readonly answer?: string;
  /** Its run chose not to reply. */
  readonly silent?: true;
  /** Of a message between sessions: how far it has come. */
  readonly receipt?: Receipt;
  /** The input was stored without a model turn. */
  readonly appended?: true;
  /** The stored message, and the session whose transcript holds it. */
  readonly messageId?: string;
  readonly messageIn?: string;
  /** For a delivery: the destination. */
  readonly route?: { readonly channel: string; readonly to: string };
  readonly tokens?: number;
  /** USD. */
  readonly cost?: number;
}

/** A session of a chain. */
export interface ChainParty {
  readonly key: string;
  readonly label?: string;
  /** The session was deleted. */
  readonly gone?: true;
}

/** The messages from one session to another, sent or refused. */
export interface ChainTalk {
  readonly kind: "send" | "spawn" | "refused";
  readonly from: string;
  readonly to: string;
  /** Number of messages, including reply turns and results. */
  readonly steps: number;
  /** Conversations or jobs in progress. */
  readonly open: number;
}

/** A chain as an entry of a list. */
export interface ChainRow {
  readonly chainId: string;
  /** The session in which it began. */
  readonly rootSessionKey?: string;
  /** The first message, shortened. */
  readonly opening?: string;
  readonly startedAt: number;
  readonly lastAt: number;
  /** One of its runs is queued, running or waiting. */
  readonly active: boolean;
  readonly runs: number;
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
  /** Talks; at most 40. */
  readonly talks: readonly ChainTalk[];
  /** The chain has sessions that the reader may not see; no count includes them. */
  readonly partial?: true;
}
