// Owns what the methods about scheduled jobs answer.

import type { EndedRunState, RunState } from "../../core/run.ts";
import type { CronJob, Schedule } from "../../core/schedule.ts";

/** How a turn stands: its run's state, or that there was none. */
export type CronTurnStatus = RunState | EndedRunState | "skipped";

/** A turn of a job, as `cron.runs` shows it. */
export interface CronTurnRow {
  /** Rises from turn to turn. */
  readonly seq: number;
  /** `late`: a date that was missed and made up for; `manual`: by hand. */
  readonly cause: "schedule" | "late" | "manual";
  /** Absent: by hand. */
  readonly dueAtMs?: number;
  readonly firedAtMs: number;
  readonly status: CronTurnStatus;
  /** Of a turn that was left out `missed`, `still_running` or why it was refused; else the run's. */
  readonly code?: string;
  readonly error?: string;
  readonly runId?: string;
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  readonly durationMs?: number;
  readonly totalTokens?: number;
  /** Of the reply: what the outbox says; absent: it was to go nowhere. */
  readonly delivery?: "pending" | "sent" | "failed" | "skipped";
}

/** A job as `cron.list` shows it. */
export interface CronJobRow {
  readonly id: string;
  /** Of its session. */
  readonly key: string;
  readonly name?: string;
  readonly enabled: boolean;
  readonly schedule: Schedule;
  /** The schedule for people. */
  readonly words: string;
  readonly agentId: string;
  /** Why each of its turns fails: its agent was removed from the configuration. */
  readonly problem?: string;
  readonly message: string;
  readonly missed: CronJob["missed"];
  /** `to` is "(not visible)" to a reader whose token does not cover that session. */
  readonly deliver?: {
    readonly channel: string;
    readonly to: string;
    readonly accountId?: string;
    readonly threadId?: string;
  };
  readonly model?: string;
  readonly thinking?: string;
  readonly timeoutSeconds?: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly state: {
    /** Absent: paused, or over. */
    readonly nextRunAtMs?: number;
    /** Absent: it had no turn yet. */
    readonly last?: CronTurnRow;
  };
}

interface CronNote {
  /** Something that keeps jobs from being fired: `cron.enabled` is false. */
  readonly note?: string;
}

type OneJob = CronNote & { readonly ok: true; readonly job: CronJobRow };

export interface CronPayloads {
  "cron.list": CronNote & {
    /** What the configuration says. */
    readonly enabled: boolean;
    readonly count: number;
    /** Oldest first. */
    readonly jobs: readonly CronJobRow[];
    readonly nextCursor?: string;
    /** Zone of an expression that names none. */
    readonly timeZone: string;
  };
  "cron.runs": {
    readonly id: string;
    /** Newest first. */
    readonly entries: readonly CronTurnRow[];
  };
  "cron.preview": {
    readonly schedule: Schedule;
    readonly words: string;
    /** The first dates to come, ms since 1970. */
    readonly dates: readonly number[];
  };
  "cron.add": OneJob;
  "cron.update": OneJob;
  "cron.remove": { readonly ok: true; readonly id: string; readonly removed: true };
  "cron.run": { readonly ok: true; readonly id: string; readonly runId: string; readonly sessionKey: string };
}
