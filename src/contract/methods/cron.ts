// Owns the methods about scheduled jobs.

import type { Route } from "../../core/shapes/route.ts";
import type { RunState } from "../../core/shapes/run.ts";
import { MISSED_POLICIES, SCHEDULE_KINDS, type Schedule } from "../../core/shapes/schedule.ts";
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
} from "../schema.ts";
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
} from "./parts.ts";

/** Characters of a job's message to its agent. */
const JOB_MESSAGE_MAX_CHARS = 16_000;
const EXPR_MAX_CHARS = 200;

const schedule = object(
  { kind: about(oneOf(...SCHEDULE_KINDS), "The kind of the schedule.") },
  {
    expr: text("cron: five fields.", { maxLength: EXPR_MAX_CHARS }),
    tz: about(name, "cron: its time zone. Default: the gateway's."),
    everyMs: about(count(1), "every: the interval, at least 10000."),
    anchorMs: about(count(0), "every: when it begins (ms since 1970). Default: now."),
    atMs: about(count(0), "at: when (ms since 1970)."),
  },
);

const when = about(schedule, "When it is due.");
const message = text("The message to the agent.", { minLength: 1, maxLength: JOB_MESSAGE_MAX_CHARS });
const place = about(
  object(
    { to: about(name, "The chat; on webchat and with `last` a session.") },
    {
      channel: about(name, "webchat (the default), `last` or a channel that is set up."),
      accountId: about(name, "The account. Default: the first."),
      threadId: about(threadId, "The thread or topic."),
    },
  ),
  "The destination of replies besides the job's own session.",
);
const title = "Its name.";
const model = "`<provider>/<model>`. Default: the session's.";
const thinking = "Its model's thinking level. Default: the session's.";
const shared = {
  missed: about(
    oneOf(...MISSED_POLICIES),
    "A date that was missed while the gateway was down: run once later, or skip.",
  ),
  enabled: flag("false: paused. Default true."),
  timeoutSeconds: about(count(0), "Ends a run this long after its start; at most 7 days. Default 0: never."),
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
  "A turn of a job, as `cron.runs` shows it.",
  object(
    {
      seq: integer("Rises from turn to turn."),
      cause: about(
        oneOf("schedule", "late", "manual"),
        "`late`: a missed date, fired later; `manual`: started by a person.",
      ),
      firedAtMs: number(),
      status: about(
        either(declared<RunState>("RunState"), oneOf("skipped")),
        "Its run's state, or `skipped` without a run.",
      ),
    },
    {
      dueAtMs: number("Absent: started by a person."),
      code: text(
        "Of a skipped turn `missed`, `still_running` or the reason of the refusal; else the run's code.",
      ),
      error: text(),
      runId: text(),
      startedAtMs: number(),
      endedAtMs: number(),
      durationMs: number(),
      totalTokens: number(),
      delivery: about(
        deliveryState,
        "Delivery of the reply, from the outbox; absent: it had no destination.",
      ),
    },
  ),
);
export type CronTurnRow = Of<typeof TURN>;

const JOB = named(
  "CronJobRow",
  "A job as `cron.list` shows it.",
  object(
    {
      id: text(),
      key: text("Key of the job's session."),
      enabled: flag(),
      schedule: declared<Schedule>("Schedule"),
      words: text("The schedule in words."),
      agentId: text(),
      message: text(),
      missed: oneOf(...MISSED_POLICIES),
      createdAtMs: number(),
      updatedAtMs: number(),
      state: about(
        object({}, { nextRunAtMs: number("Absent: paused, or finished."), last: TURN }),
        "`last` is absent before the first turn.",
      ),
    },
    {
      name: text(),
      problem: text("Present if the job's agent was removed from the configuration: every turn fails."),
      deliver: about(
        declared<Route>("Route"),
        '`to` is "(not visible)" to a reader whose token does not cover that session.',
      ),
      model: text(),
      thinking: text(),
      timeoutSeconds: number(),
    },
  ),
);
export type CronJobRow = Of<typeof JOB>;

const note = text("Present if `cron.enabled` is false: no job is fired.");
const CHANGED_JOB = object({ ok: oneOf(true), job: JOB }, { note });

export const CRON_METHODS = {
  "cron.list": {
    scope: READ,
    summary: "Lists the jobs whose sessions the token covers, oldest first.",
    params: object(
      {},
      {
        limit: about(count(1), "Most jobs. Default 50, at most 100."),
        cursor,
        agentId: about(name, "Only jobs of this agent."),
      },
    ),
    result: object(
      {
        enabled: flag("The configured value."),
        count: number(),
        jobs: list(JOB, "Oldest first."),
        timeZone: text("Zone of an expression that names none."),
      },
      { note, nextCursor: text() },
    ),
    ignored: ["includeDisabled"],
  },
  "cron.runs": {
    scope: READ,
    summary: "Lists the turns of a job, newest first; the last 100 of each are kept.",
    params: object({ id }, { limit: about(count(1), "Most turns. Default 50, at most 100.") }),
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
      dates: list(number(), "The next dates, ms since 1970."),
    }),
  },
  "cron.add": {
    scope: ADMIN,
    summary: "Creates a job: a message to an agent in the session `cron:<id>` when it is due.",
    params: object(
      { schedule: when, message },
      {
        name: about(name, title),
        agentId: about(name, "The agent. Default: the default agent."),
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
    summary: "Changes a job. null clears a field; absent fields stay.",
    params: object({ id, patch: about(patch, "The changed fields.") }, { idempotencyKey }),
    result: CHANGED_JOB,
    errors: [...WRONG, ...NAMES_SESSION, "cron_job_not_found"],
    events: ["cron"],
  },
  "cron.remove": {
    scope: ADMIN,
    summary: "Removes a job; its session stays.",
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
