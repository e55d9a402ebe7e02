// Describes the tool `cron`, as models and the documentation see it.

import { about, either, list, number, object, openObject, text } from "../../contract/schema.ts";
import { choice, done, type ToolEntry } from "../../contract/tools/parts.ts";
import { AGENT_JOB_MESSAGE_MAX_CHARS } from "./job.ts";

const NOW = {
  now: text("The current time, like `Friday, 2026-11-27T18:00:00+01:00`."),
  timeZone: text("Time zone of the gateway, in which times are shown."),
};

const AGENT_JOB = object(
  {
    id: text(),
    message: text(),
    schedule: text("Description of the schedule."),
    createdAt: number("In ms since 1970."),
  },
  {
    name: text(),
    next: text("Time of the next run. Absent if it is off."),
    nextAt: number("The same in ms since 1970."),
    last: text("Outcome of the last run, if there was one."),
  },
);

export const CRON_TOOL = {
  description:
    "Make reminders and jobs: at the given time, this session gets the message, you do what it says, and " +
    "your answer goes to the person who asked. `add` needs message and one of at, every, cron; `list` " +
    "returns this session's jobs; `remove` removes one. Every result says the current time.",
  params: openObject(
    { action: choice(["add", "list", "remove"], "Action to take.") },
    {
      message: text(
        "With `add`: instruction to yourself for that time, complete, such as " +
          '"Remind Ann to call the dentist". ' +
          `At most ${AGENT_JOB_MESSAGE_MAX_CHARS} characters.`,
      ),
      at: text(
        'Once: "in 20 minutes", "18:00" (the next time it is), "tomorrow 09:30", or a date like ' +
          '"2027-03-01T09:30".',
      ),
      every: text('Again and again after this time, at least a minute: "30 minutes", "2 hours".'),
      cron: text(
        "At these times: minute, hour, day of month, month, day of week. " +
          '"30 7 * * 1-5" is 07:30 on weekdays.',
      ),
      timeZone: text("Time zone of `at` and `cron`, like Europe/Berlin. Default: the gateway's."),
      name: text("With `add`: a short name."),
      id: text("With `remove`: id of the job."),
    },
  ),
  result: either(
    object({ status: done, job: about(AGENT_JOB, "The job that was made."), ...NOW }),
    object({ count: number(), jobs: list(AGENT_JOB, "Oldest first."), ...NOW }),
    object({ status: done, removed: text("Id of the job."), ...NOW }),
  ),
  errors: ["cron_job_not_found", "too_many_jobs", "too_large", "run_aborted"],
  who: "As `memory`, but not the sessions of jobs, nor programs over MCP.",
  parallel: false,
  idempotent: true,
} as const satisfies ToolEntry;
