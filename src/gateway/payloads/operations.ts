// Owns what is answered about the gateway's own work: its figures over time, what was consumed, its log, its
// configuration.

import type { UsageGroup, UsageLine } from "../../core/usage.ts";

/** A number, or null where it could not be measured or there was nothing to measure. */
type Point = number | null;

/** The last hour of this process's figures, or what was asked for of it. */
export interface MetricsHistory {
  /** From one point to the next. */
  readonly stepMs: number;
  /** So many points of each are kept. */
  readonly pointsMax: number;
  /** When the points of every series were taken (ms since 1970). */
  readonly times: readonly number[];
  readonly series: readonly {
    readonly name: string;
    readonly title: string;
    readonly unit: "count" | "per_minute" | "ms" | "bytes" | "usd_per_hour";
    readonly help: string;
    /** As many as there are times. */
    readonly values: readonly Point[];
  }[];
}

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** A line of the log; what it says beside these stands as it was written. */
export interface LogLine {
  readonly seq: number;
  /** ms since 1970; 0: unknown. */
  readonly time: number;
  readonly level: (typeof LOG_LEVELS)[number];
  readonly msg: string;
  /** The line was too long: what is left of it is the text of `msg`. */
  readonly cut?: true;
  readonly runId?: string;
  readonly sessionKey?: string;
  readonly chainId?: string;
  readonly err?: unknown;
  readonly [field: string]: unknown;
}

export interface LogPage {
  /** For the next question: what comes after this page. */
  readonly cursor: string;
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** Lines after the given cursor that were gone before they were asked for. */
  readonly dropped: number;
  /** There are more lines that fit after these. */
  readonly more: boolean;
}

/** What was consumed since then, a line for each agent, session, model or day. */
export interface UsageReport {
  readonly by: UsageGroup;
  /** ms since 1970: the beginning of a day of UTC. */
  readonly since: number;
  /** The costliest first; of days the newest. */
  readonly lines: readonly UsageLine[];
  /** There are more lines than were asked for. */
  readonly truncated: boolean;
  /** Of the agents that have a daily budget: what of it is used. */
  readonly budgets: readonly {
    readonly agentId: string;
    readonly dailyTokens?: number;
    readonly dailyCost?: number;
    readonly tokensToday: number;
    readonly costToday: number;
  }[];
}

/** The configuration file as it is now, beside what runs. */
export interface ConfigCheck {
  readonly path: string;
  readonly exists: boolean;
  readonly ok: boolean;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** A restart would change something. False as long as the file is wrong. */
  readonly differs: boolean;
  /** Which parts of the file it would change, without their values. */
  readonly changed: readonly string[];
  /** What runs, whole; of secrets only whether they are set. */
  readonly settings: Readonly<Record<string, unknown>>;
}
