// Owns what a session is: its row, its route, its states.

import type { Route } from "./route.ts";
import type { SpawnFacts } from "./spawn.ts";

/** What `sessions_list` calls `kind`. */
export const SESSION_KINDS = ["main", "group", "cron", "hook", "node", "other"] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

export type SessionState = "idle" | "queued" | "running" | "waiting";

export type { Route };

export type SendOverride = "allow" | "deny";

/** One row of the session table. Times are ms since 1970. */
export interface Session {
  /** Canonical key (SPEC 2). */
  readonly key: string;
  /** The current transcript's id; a reset makes a new one. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly kind: SessionKind;
  readonly label?: string;
  readonly displayName?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly archivedAt?: number;
  /** Requester of a sub-agent, as a canonical key. */
  readonly spawnedBy?: string;
  readonly spawnDepth: number;
  /** An external session has no model: messages wait in its inbox. */
  readonly external: boolean;
  /** `<provider>/<model>`; unset: the agent's. */
  readonly model?: string;
  readonly thinkingLevel?: string;
  readonly verboseLevel?: string;
  readonly sendPolicy?: SendOverride;
  readonly systemSent: boolean;
  readonly abortedLastRun: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Tokens in the model's context at the last call; 0 before the first. */
  readonly contextUsed: number;
  /** USD, since the last reset. */
  readonly cost: number;
  /** The last route a person used. Inter-session traffic never changes it (I10). */
  readonly lastRoute?: Route;
  /** The channel recorded on a group, room or thread. */
  readonly groupChannel?: string;
  /** What was agreed when this sub-agent was spawned. */
  readonly spawn?: SpawnFacts;
}

/** Of a session's label. */
export const LABEL_CHARS_MAX = 200;

/** What is so of every session in which no run has begun, since it was made or since its last reset. */
export const NOT_YET_USED = {
  systemSent: false,
  abortedLastRun: false,
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  contextUsed: 0,
  cost: 0,
} as const satisfies Partial<Session>;
