// Owns the shape of a chain as it is shown to people: who took part, and what happened in it, along time.
// CS1: a session that the reader may not see is `NOT_VISIBLE`; what it takes part in has no text and no ids.

import { type Route, WEBCHAT } from "./route.ts";
import type { RunState } from "./run.ts";
import { NOT_VISIBLE } from "./visibility.ts";

/** Channels whose routes end at a session. */
const IN_HOUSE: readonly string[] = [WEBCHAT, "internal"];

/** A key in the words of a failure: one ends where the next one begins, and the id of a node is a hash. */
const KEY_IN_TEXT = /\b(?:(?:agent|cron|hook):(?:(?!\b(?:agent|cron|hook):)\S)+|node-[0-9a-f]{64})/g;

/** The route, without the session at its end if the reader may not see that one (I9). */
export function routeFor(route: Route, sees: (sessionKey: string) => boolean): Route {
  return IN_HOUSE.includes(route.channel) && !sees(route.to) ? { ...route, to: NOT_VISIBLE } : route;
}

/** The words of a failure, without the keys of sessions that the reader may not see (I9). */
export function wordsFor(text: string, sees: (sessionKey: string) => boolean): string {
  return text.replace(KEY_IN_TEXT, (key) => (sees(key) ? key : NOT_VISIBLE));
}

/**
 * `message`: from a person, a program or a schedule. `result`: what a job came to, or a notice, comes back.
 * `delivery`: an announcement leaves to people.
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

/** A run's state; of a wait: `waiting`, `answered`, `timeout` or `aborted`; an outbox row's; or `refused`. */
export type StepState = RunState | "answered" | "refused" | "pending" | "sent" | "failed" | "skipped";

export interface ChainStep {
  /** The same at every reading. */
  readonly id: string;
  readonly kind: StepKind;
  /** Key of the session that acts. Absent: nobody's session. */
  readonly from?: string;
  /** Key of the session that it reaches, or was meant to reach. */
  readonly to?: string;
  /** Of a refused step: what the call named, where that is no session's key; of a spawn, whose agent. */
  readonly toName?: string;
  /** Who wrote a message: `person`, `cron`, `hook` or `node`; who tells a result: `job` or `notice`. */
  readonly source?: "person" | "cron" | "hook" | "node" | "job" | "notice";
  /** ms since 1970: accepted, begun to wait, refused, or put into the outbox. */
  readonly at: number;
  /** When its run began to be executed. */
  readonly startedAt?: number;
  readonly endAt?: number;
  readonly state: StepState;
  readonly code?: string;
  readonly error?: string;
  /** Of a refused step: the tool that was called. */
  readonly tool?: string;
  /** Of a refused wait: the circle that it would have closed. */
  readonly cycle?: readonly string[];
  /** Its run, in the session `to` (an announcement's: `from`); of a wait or refusal: the run that calls. */
  readonly runId?: string;
  readonly flowId?: string;
  /** 1 for what was sent first; each reply turn adds one. */
  readonly turn?: number;
  /** Reply turns that may follow the first answer. */
  readonly turnsMax?: number;
  readonly hop?: number;
  /** What was said, cut. */
  readonly text: string;
  /** What its run answered, cut. */
  readonly answer?: string;
  /** Its run answered with silence. */
  readonly silent?: true;
  /** The input was written down without a model turn. */
  readonly appended?: true;
  /** The message that it opens, and the session whose transcript holds it. */
  readonly messageId?: string;
  readonly messageIn?: string;
  /** Of a delivery: where it goes. */
  readonly route?: { readonly channel: string; readonly to: string };
  readonly tokens?: number;
  /** USD. */
  readonly cost?: number;
}

/** A session of a chain. */
export interface ChainParty {
  readonly key: string;
  readonly label?: string;
  /** It does not exist any more. */
  readonly gone?: true;
}

/** How one session spoke, or was kept from speaking, to another. */
export interface ChainTalk {
  readonly kind: "send" | "spawn" | "refused";
  readonly from: string;
  readonly to: string;
  /** Messages of it, reply turns and results included. */
  readonly steps: number;
  /** Conversations or jobs that are under way. */
  readonly open: number;
}

/** A chain as a list shows it. */
export interface ChainRow {
  readonly chainId: string;
  /** Where it began. */
  readonly rootSessionKey?: string;
  /** What was said first, cut. */
  readonly opening?: string;
  readonly startedAt: number;
  readonly lastAt: number;
  /** A run of it is queued, running or waiting. */
  readonly active: boolean;
  readonly runs: number;
  readonly hopMax: number;
  readonly tokens: number;
  /** USD. */
  readonly cost: number;
  /** By the settings. */
  readonly limits: {
    readonly runsMax: number;
    readonly hopsMax: number;
    readonly tokensMax?: number;
    readonly costMax?: number;
  };
  /** Who took part, the first ones first; at most 24. */
  readonly sessions: readonly string[];
  readonly sessionCount: number;
  /** Conversations and jobs. */
  readonly flows: number;
  readonly refused: number;
  /** At most 40. */
  readonly talks: readonly ChainTalk[];
  /** Others took part whom the reader may not see: no figure counts what they did. */
  readonly partial?: true;
}
