// Defines the methods and the event of scheduled jobs.

import type { EventSpec } from "../../contract/events.ts";
import {
  ADMIN,
  ASKS_RUN,
  count,
  cursor,
  deliveryState,
  idempotencyKey,
  type MethodSpec,
  NAMES_SESSION,
  name,
  nameOrNull,
  OF_RUNS,
  READ,
  threadId,
} from "../../contract/methods/parts.ts";
import {
  about,
  declared,
  either,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  text,
} from "../../contract/schema.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { RunState } from "../../core/shapes/run.ts";
import { JOB_CONVERSATIONS, MISSED_POLICIES, SCHEDULE_KINDS, type Schedule } from "./job.ts";

/** Maximum number of characters in a job's message to its agent. */
const JOB_MESSAGE_MAX_CHARS = 16_000;
const EXPR_MAX_CHARS = 200;

const schedule = object(
  { kind: about(oneOf(...SCHEDULE_KINDS), "Kind of schedule.") },
  {
    expr: text("For `cron`: an expression with five fields.", { maxLength: EXPR_MAX_CHARS }),
    tz: about(name, "For `cron`: the time zone. Default: the gateway's."),
    everyMs: about(count(1), "For `every`: the interval in ms, at least 10000."),
    anchorMs: about(count(0), "For `every`: the start, in ms since 1970. Default: now."),
    atMs: about(count(0), "For `at`: the time, in ms since 1970."),
  },
);

const when = about(schedule, "Schedule of the job.");
const message = text("Message to the agent.", { minLength: 1, maxLength: JOB_MESSAGE_MAX_CHARS });
const place = about(
  object(
    { to: about(name, "The chat. For webchat and `last`: a session.") },
    {
      channel: about(name, "`webchat` (the default), `last` or a configured channel."),
      accountId: about(name, "Account of the channel. Default: the first one."),
      threadId: about(threadId, "Thread or topic of the chat."),
    },
  ),
  "Destination for replies, in addition to the job's own session.",
);
const session = about(
  oneOf(...JOB_CONVERSATIONS),
  "`fresh`: each run begins a new conversation in the job's session. `keep`: it continues the last one. " +
    "Default: `fresh` for a job with `deliver` and a session of its own.",
);
const title = "Name of the job.";
const model = "Model as `<provider>/<model>`. Default: the session's model.";
const thinking = "Thinking level of the model. Default: the session's level.";
const shared = {
  missed: about(
    oneOf(...MISSED_POLICIES),
    "Policy for dates that passed while the gateway was down: run the job once later, or skip it.",
  ),
  session,
  enabled: flag("`false` pauses the job. Default true."),
  timeoutSeconds: about(
    count(0),
    "Stops a run this many seconds after its start, at most 7 days. Default 0: never.",
  ),
} as const;

const placeOrNull = nullable(place);

const patch = object(
  {},
  {
    name: about(nameOrNull, title),
    schedule: when,
    message,
    deliver: placeOrNull,
    model: about(nameOrNull, model),
    thinking: about(nameOrNull, thinking),
    ...shared,
  },
);

const id = about(name, "Id of the job.");
const ONE_JOB = object({ id }, { idempotencyKey });
const WRONG = ["agent_not_found", "invalid_model", "invalid_thinking", "channel_unknown"] as const;

const TURN = named(
  "CronTurnRow",
  "One start of a job, as `cron.runs` returns it.",
  object(
    {
      seq: integer("Number of the start. Later starts have higher numbers."),
      cause: about(
        oneOf("schedule", "late", "manual"),
        "`late`: started after a missed date. `manual`: started by a person.",
      ),
      firedAtMs: number(),
      status: about(
        either(declared<RunState>("RunState"), oneOf("skipped")),
        "State of the run, or `skipped` if none was started.",
      ),
    },
    {
      dueAtMs: number("Scheduled time. Absent if a person started the job."),
      code: text(
        "If skipped: `missed`, `still_running` or the code of the refusal. Otherwise the run's error code.",
      ),
      error: text(),
      runId: text(),
      startedAtMs: number(),
      endedAtMs: number(),
      durationMs: number(),
      totalTokens: number(),
      delivery: about(deliveryState, "State of the reply's delivery. Absent if the job delivers no replies."),
    },
  ),
);
export type CronTurnRow = Of<typeof TURN>;

const JOB = named(
  "CronJobRow",
  "A job, as `cron.list` returns it.",
  object(
    {
      id: text(),
      key: text("Key of the session in which the job runs."),
      enabled: flag(),
      schedule: declared<Schedule>("Schedule"),
      words: text("Description of the schedule for people."),
      agentId: text(),
      message: text(),
      missed: oneOf(...MISSED_POLICIES),
      session: about(oneOf(...JOB_CONVERSATIONS), "`fresh`: each run begins a new conversation."),
      createdAtMs: number(),
      updatedAtMs: number(),
      state: about(
        object(
          {},
          {
            nextRunAtMs: number("Time of the next start. Absent if the job is paused or finished."),
            last: TURN,
          },
        ),
        "State of the job. `last` is absent before the first start.",
      ),
    },
    {
      name: text(),
      problem: text("Present if the job's agent was removed from the configuration. Every start then fails."),
      deliver: about(
        declared<Route>("Route"),
        'Destination for replies. `to` is "(not visible)" if the token does not cover that session.',
      ),
      model: text(),
      thinking: text(),
      timeoutSeconds: number(),
      madeBy: text("Session whose agent made the job, and in which it runs. Absent: a person made it."),
    },
  ),
);
export type CronJobRow = Of<typeof JOB>;

const note = text("Present if `cron.enabled` is false, so no job starts.");
const CHANGED_JOB = object({ ok: oneOf(true), job: JOB }, { note });

export const CRON_METHODS = {
  "cron.list": {
    scope: READ,
    summary: "Lists the jobs whose sessions the token covers, oldest first.",
    params: object(
      {},
      {
        limit: about(count(1), "Maximum number of jobs. Default 50, at most 100."),
        cursor,
        offset: about(count(0), "Number of jobs to skip. Not together with `cursor`."),
        agentId: about(name, "Returns only jobs of this agent."),
      },
    ),
    result: object(
      {
        enabled: flag("Value of `cron.enabled`."),
        count: number("Number of jobs on this page."),
        total: number("Number of jobs on all pages."),
        jobs: list(JOB, "Oldest first."),
        timeZone: text("Time zone of cron expressions without `tz`."),
      },
      {
        note,
        nextCursor: text(),
        nextRunAtMs: number("The next start of any of these jobs, on all pages."),
        changedAtMs: number("The newest change of any of these jobs, on all pages."),
      },
    ),
    ignored: ["includeDisabled"],
  },
  "cron.get": {
    scope: READ,
    summary: "Returns one job.",
    params: object({ id }),
    result: JOB,
    errors: ["cron_job_not_found"],
  },
  "cron.runs": {
    scope: READ,
    summary: "Lists the starts of a job, newest first. The last 100 of each job are kept.",
    params: object({ id }, { limit: about(count(1), "Maximum number of starts. Default 50, at most 100.") }),
    result: object({ id: text(), entries: list(TURN, "Newest first.") }),
    errors: ["cron_job_not_found"],
  },
  "cron.preview": {
    scope: READ,
    summary: "Returns the next five dates of a schedule.",
    params: object({ schedule: when }),
    result: object({
      schedule: declared<Schedule>("Schedule"),
      words: text(),
      dates: list(number(), "The next dates, in ms since 1970."),
    }),
  },
  "cron.add": {
    scope: ADMIN,
    outlivesToken: true,
    summary:
      "Creates a job, which sends a message to an agent in the session `cron:<id>`, or in another one, at " +
      "scheduled times.",
    params: object(
      { schedule: when, message },
      {
        name: about(name, title),
        agentId: about(name, "Agent of the job. Default: the agent of `sessionKey`, else the default agent."),
        sessionKey: about(
          name,
          "Session in which the job runs, for example `main`. There the message `/reset` starts a new " +
            "conversation. Default: a session of the job's own.",
        ),
        deliver: place,
        model: about(name, model),
        thinking: about(name, thinking),
        ...shared,
        idempotencyKey,
      },
    ),
    result: CHANGED_JOB,
    ignored: ["description", "wakeMode"],
    errors: [...WRONG, ...NAMES_SESSION, "too_many_jobs"],
    events: ["cron"],
  },
  "cron.update": {
    scope: ADMIN,
    outlivesToken: true,
    summary: "Changes a job. null clears a field. Absent fields keep their values.",
    params: object({ id, patch: about(patch, "Fields to change.") }, { idempotencyKey }),
    result: CHANGED_JOB,
    errors: [...WRONG, ...NAMES_SESSION, "cron_job_not_found"],
    events: ["cron"],
  },
  "cron.remove": {
    scope: ADMIN,
    summary: "Removes a job and keeps its session.",
    params: ONE_JOB,
    result: object({ ok: oneOf(true), id: text(), removed: oneOf(true) }),
    errors: ["cron_job_not_found", "not_visible"],
    events: ["cron"],
  },
  "cron.run": {
    scope: ADMIN,
    summary: "Runs a job now, in addition to its schedule.",
    params: ONE_JOB,
    result: object({ ok: oneOf(true), id: text(), runId: text(), sessionKey: text() }),
    ignored: ["mode"],
    errors: ["cron_job_not_found", "cron_job_busy", "not_visible", ...ASKS_RUN],
    events: ["cron", ...OF_RUNS],
  },
} as const satisfies Record<string, MethodSpec>;

/** A change of a job: of its row, or of its runs. */
export type CronChange = "added" | "updated" | "removed" | "fired" | "ended";

export const CRON_EVENT = {
  summary: "A job was changed, started or ended; see `cron.list`. Sent to clients that may see its session.",
  payload: object({ id: text(), key: text(), change: declared<CronChange>("CronChange") }),
} as const satisfies EventSpec;
