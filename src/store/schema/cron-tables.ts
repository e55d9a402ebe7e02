// Declares the types of the tables of scheduled jobs for the query builder, as tables.ts does for the others.

import type { Generated } from "kysely";

/**
 * Scheduled jobs. The time of the next turn is also stored as a deadline, and that deadline starts the turn.
 */
export interface CronJobTable {
  id: string;
  name: string | null;
  agent_id: string;
  enabled: number;
  schedule_json: string;
  message: string;
  /** Destination of the replies, as `Route`. */
  deliver_json: string | null;
  model: string | null;
  thinking: string | null;
  timeout_ms: number;
  /** `once | skip`. */
  missed: string;
  next_at: number | null;
  created_at: number;
  updated_at: number;
  /** Id of the token that created the job. Null: the gateway's own token. */
  created_by: string | null;
  /** Session whose agent made the job, and in which it runs. Null: a person made it. */
  session_key: string | null;
  /** Id of the tool call that made the job. */
  call_id: string | null;
  /** Source of content from outside that the agent had read. */
  outside: string | null;
  /** `keep | fresh`. */
  conversation: Generated<string>;
}

/** Turns of a job, started by its schedule or by hand. The outcome of a turn is in the table `runs`. */
export interface CronRunTable {
  seq: Generated<number>;
  job_id: string;
  /** `schedule | late | manual`. */
  cause: string;
  /** Time at which the turn was due. Null if it was started by hand. */
  due_at: number | null;
  fired_at: number;
  /** Null if the turn was skipped; `code` then says why. */
  run_id: string | null;
  code: string | null;
  error: string | null;
}
