// The shape of a session: its row, its route, its states.

import type { Labels } from "./labels.ts";
import type { Route } from "./route.ts";
import type { SpawnFacts } from "./spawn.ts";

/** Values of `kind` in `sessions_list`. */
export const SESSION_KINDS = ["main", "group", "cron", "hook", "node", "other"] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

export type SessionState = "idle" | "queued" | "running" | "waiting";

export type { Route };

export type SendOverride = "allow" | "deny";

/** Longer instructions of a session are refused: its row is read and written in every run. */
export const INSTRUCTIONS_CHARS_MAX = 4_000;

/** One row of the session table. Times are ms since 1970. */
export interface Session {
  /** Canonical session key. */
  readonly key: string;
  /** Id of the current transcript. A reset creates a new one. */
  readonly sessionId: string;
  readonly agentId: string;
  readonly kind: SessionKind;
  readonly label?: string;
  readonly displayName?: string;
  /** Beginning of the first text that somebody wrote, on one line and redacted. */
  readonly firstWords?: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly archivedAt?: number;
  /** Canonical key of the session that spawned this sub-agent. */
  readonly spawnedBy?: string;
  readonly spawnDepth: number;
  /** True if an outside program serves the session. It has no model here, and messages wait in its inbox. */
  readonly external: boolean;
  /** `<provider>/<model>`. Absent: the model of the agent. */
  readonly model?: string;
  readonly thinkingLevel?: string;
  readonly verboseLevel?: string;
  readonly sendPolicy?: SendOverride;
  /** An operator's instructions for the model, for this session only. */
  readonly instructions?: string;
  readonly systemSent: boolean;
  readonly abortedLastRun: boolean;
  /** Id of the run of the last turn, if that turn failed. */
  readonly failedRun?: string;
  /** Labels of the texts since the last reset. */
  readonly labels?: Labels;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Number of tokens in the model's context at its last call; 0 before the first call. */
  readonly contextUsed: number;
  /** Cost in USD since the last reset. */
  readonly cost: number;
  /** Route that a person used last. Messages between sessions never change it (I10). */
  readonly lastRoute?: Route;
  /** Channel of a group, room or thread. */
  readonly groupChannel?: string;
  readonly spawn?: SpawnFacts;
}

/** State of a session after its creation or a reset. */
export const NOT_YET_USED = {
  systemSent: false,
  abortedLastRun: false,
  inputTokens: 0,
  outputTokens: 0,
  totalTokens: 0,
  contextUsed: 0,
  cost: 0,
} as const satisfies Partial<Session>;
