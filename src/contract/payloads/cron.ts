// Owns the answers of the methods about scheduled jobs.

import type { EndedRunState, RunState } from "../../core/shapes/run.ts";
import type { CronJob, Schedule } from "../../core/shapes/schedule.ts";

/** The status of a turn: its run's state, or `skipped` without a run. */
export type CronTurnStatus = RunState | EndedRunState | "skipped";

/** A turn of a job, as `cron.runs` shows it. */
export interface CronTurnRow {
  /** Rises from turn to turn. */
  readonly seq: number;
  /** `late`: a missed date, fired later; `manual`: started by a person. */
  readonly cause: "schedule" | "late" | "manual";
  /** Absent: started by a person. */
  readonly dueAtMs?: number;
  readonly firedAtMs: number;
  readonly status: CronTurnStatus;
  /** Of a skipped turn `missed`, `still_running` or the reason of the refusal; else the run's code. */
  readonly code?: string;
  readonly error?: string;
  readonly runId?: string;
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  readonly durationMs?: number;
  readonly totalTokens?: number;
  /** Delivery of the reply, from the outbox; absent: it had no destination. */
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
  /** The schedule in words. */
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
    /** Absent: paused, or finished. */
    readonly nextRunAtMs?: number;
    /** Absent: no turn yet. */
    readonly last?: CronTurnRow;
  };
}

interface CronNote {
  /** Why no job is fired: `cron.enabled` is false. */
  readonly note?: string;
}

type OneJob = CronNote & { readonly ok: true; readonly job: CronJobRow };

export interface CronPayloads {
  "cron.list": CronNote & {
    /** The configured value. */
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
    /** The next dates, ms since 1970. */
    readonly dates: readonly number[];
  };
  "cron.add": OneJob;
  "cron.update": OneJob;
  "cron.remove": { readonly ok: true; readonly id: string; readonly removed: true };
  "cron.run": { readonly ok: true; readonly id: string; readonly runId: string; readonly sessionKey: string };
}
