// Owns the answers about the gateway's operation: metrics over time, usage, its log, its configuration.

import type { UsageGroup, UsageLine } from "../../core/shapes/usage.ts";

/** A number, or null if it could not be measured or there was nothing to measure. */
type Point = number | null;

/** The metrics of this process's last hour, or the requested part. */
export interface MetricsHistory {
  /** Interval between two points. */
  readonly stepMs: number;
  /** Kept points of each series. */
  readonly pointsMax: number;
  /** Times of the points of every series (ms since 1970). */
  readonly times: readonly number[];
  readonly series: readonly {
    readonly name: string;
    readonly title: string;
    readonly unit: "count" | "per_minute" | "ms" | "bytes" | "usd_per_hour";
    readonly help: string;
    /** One value for each of the times. */
    readonly values: readonly Point[];
  }[];
}

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** A line of the log; its other fields are as they were written. */
export interface LogLine {
  readonly seq: number;
  /** ms since 1970; 0: unknown. */
  readonly time: number;
  readonly level: (typeof LOG_LEVELS)[number];
  readonly msg: string;
  /** The line was too long: `msg` has the rest of its text. */
  readonly cut?: true;
  readonly runId?: string;
  readonly sessionKey?: string;
  readonly chainId?: string;
  readonly err?: unknown;
  readonly [field: string]: unknown;
}

export interface LogPage {
  /** For the next request: it continues after this page. */
  readonly cursor: string;
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** Lines after the given cursor that were dropped before this request. */
  readonly dropped: number;
  /** More matching lines follow. */
  readonly more: boolean;
}

/** Usage since a time, one line for each agent, session, model or day. */
export interface UsageReport {
  readonly by: UsageGroup;
  /** ms since 1970: the beginning of a day of UTC. */
  readonly since: number;
  /** The most expensive first; of days the newest. */
  readonly lines: readonly UsageLine[];
  /** There are more lines than requested. */
  readonly truncated: boolean;
  /** The used part of each agent's daily budget. */
  readonly budgets: readonly {
    readonly agentId: string;
    readonly dailyTokens?: number;
    readonly dailyCost?: number;
    readonly tokensToday: number;
    readonly costToday: number;
  }[];
}

/** The current configuration file compared with the running settings. */
export interface ConfigCheck {
  readonly path: string;
  readonly exists: boolean;
  readonly ok: boolean;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** A restart would change something. False while the file is invalid. */
  readonly differs: boolean;
  /** The parts of the file that it would change, without their values. */
  readonly changed: readonly string[];
  /** All running settings; of secrets only whether they are set. */
  readonly settings: Readonly<Record<string, unknown>>;
}
