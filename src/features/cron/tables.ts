// Defines the tables of scheduled jobs and their turns.

import { id, integer, nullable, orElse, rowNumber, table, text } from "../../store/schema/definition.ts";

/** The jobs that the agent of a session made. They end with the session. */
const OF_SESSION = "session_key = ? and call_id is not null";

export const CRON_TABLES = {
  /** Turns of a job, started by its schedule or by hand. The outcome of a turn is in the table `runs`. */
  cron_runs: table(
    {
      seq: rowNumber,
      job_id: id,
      /** `schedule | late | manual`. */
      cause: id,
      /** Time at which the turn was due. Null if it was started by hand. */
      due_at: nullable(integer),
      fired_at: integer,
      /** Null if the turn was skipped; `code` then says why. */
      run_id: nullable(id),
      code: nullable(id),
      error: nullable(id),
    },
    {
      indexes: ["cron_runs_of_job (job_id, seq)"],
      endsWith: `job_id in (select id from cron_jobs where ${OF_SESSION})`,
    },
  ),

  /**
   * Scheduled jobs. The time of the next turn is also stored as a deadline, and that deadline starts the
   * turn.
   */
  cron_jobs: table(
    {
      id,
      name: nullable(id),
      agent_id: id,
      enabled: integer,
      schedule_json: id,
      message: text,
      /** Destination of the replies, as `Route`. */
      deliver_json: nullable(id),
      model: nullable(id),
      thinking: nullable(id),
      timeout_ms: integer,
      /** `once | skip`. */
      missed: id,
      next_at: nullable(integer),
      created_at: integer,
      updated_at: integer,
      /** Id of the token whose rights the job has. Null: the gateway's own token (triggers/creator.ts). */
      created_by: nullable(id),
      /** Session whose agent made the job, and in which it runs. Null: a person made it. */
      session_key: nullable(id),
      /** Id of the tool call that made the job. */
      call_id: nullable(id),
      /** Labels of the texts that the agent had read, as `Labels`. */
      labels_json: nullable(id),
      /** Whether each run begins a new conversation: `keep | fresh`. */
      conversation: orElse(id, "keep"),
    },
    {
      key: ["id"],
      indexes: [
        "cron_jobs_by_age (created_at, id)",
        "cron_jobs_of_session (session_key) where session_key is not null",
      ],
      endsWith: OF_SESSION,
      kept: ["message"],
    },
  ),
};
