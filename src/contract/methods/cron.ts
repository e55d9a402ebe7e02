// Owns the methods about scheduled jobs.

import { MISSED_POLICIES, SCHEDULE_KINDS } from "../../core/shapes/schedule.ts";
import { about, flag, nullable, object, oneOf, text } from "../schema.ts";
import {
  ADMIN,
  ASKS_RUN,
  count,
  cursor,
  idempotencyKey,
  type MethodSpec,
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
    expr: about(text({ maxLength: EXPR_MAX_CHARS }), "cron: five fields."),
    tz: about(name, "cron: its time zone. Default: the gateway's."),
    everyMs: about(count(1), "every: the interval, at least 10000."),
    anchorMs: about(count(0), "every: when it begins (ms since 1970). Default: now."),
    atMs: about(count(0), "at: when (ms since 1970)."),
  },
);

const when = about(schedule, "When it is due.");
const message = about(text({ minLength: 1, maxLength: JOB_MESSAGE_MAX_CHARS }), "The message to the agent.");
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
  enabled: about(flag, "false: paused. Default true."),
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

const id = about(name, "Which job.");
const ONE_JOB = object({ id }, { idempotencyKey });
const WRONG = ["agent_not_found", "invalid_model", "invalid_thinking", "channel_unknown"] as const;
const PLACE = ["not_visible", "session_not_found", "invalid_session_key", "stale_session_id"] as const;

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
    ignored: ["includeDisabled"],
  },
  "cron.runs": {
    scope: READ,
    summary: "Lists the turns of a job, newest first; the last 100 of each are kept.",
    params: object({ id }, { limit: about(count(1), "Most turns. Default 50, at most 100.") }),
    errors: ["cron_job_not_found"],
  },
  "cron.preview": {
    scope: READ,
    summary: "Returns the next five dates of a schedule.",
    params: object({ schedule: when }),
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
    ignored: ["description", "wakeMode"],
    errors: [...WRONG, ...PLACE, "too_many_jobs"],
    events: ["cron"],
  },
  "cron.update": {
    scope: ADMIN,
    summary: "Changes a job. null clears a field; absent fields stay.",
    params: object({ id, patch: about(patch, "What changes.") }, { idempotencyKey }),
    errors: [...WRONG, ...PLACE, "cron_job_not_found"],
    events: ["cron"],
  },
  "cron.remove": {
    scope: ADMIN,
    summary: "Removes a job; its session stays.",
    params: ONE_JOB,
    errors: ["cron_job_not_found", "not_visible"],
    events: ["cron"],
  },
  "cron.run": {
    scope: ADMIN,
    summary: "Runs a job now, in addition to its schedule.",
    params: ONE_JOB,
    ignored: ["mode"],
    errors: ["cron_job_not_found", "cron_job_busy", "not_visible", ...ASKS_RUN],
    events: ["cron", ...OF_RUNS],
  },
} as const satisfies Record<string, MethodSpec>;
