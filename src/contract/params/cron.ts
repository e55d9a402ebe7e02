// Owns the params of the methods about scheduled jobs.

import { MISSED_POLICIES, SCHEDULE_KINDS } from "../../core/shapes/schedule.ts";
import {
  ADMIN,
  ASKS_RUN,
  about,
  count,
  cursor,
  flag,
  idempotencyKey,
  type MethodSpec,
  name,
  nameOrNull,
  OF_RUNS,
  object,
  READ,
  threadId,
} from "./shapes.ts";

/** Characters of a job's message to its agent. */
const JOB_MESSAGE_MAX_CHARS = 16_000;
const EXPR_MAX_CHARS = 200;

const schedule = object(
  {
    kind: about({ enum: SCHEDULE_KINDS }, "The kind of the schedule."),
    expr: about({ type: "string", maxLength: EXPR_MAX_CHARS }, "cron: five fields."),
    tz: about(name, "cron: its time zone. Default: the gateway's."),
    everyMs: about(count(1), "every: the interval, at least 10000."),
    anchorMs: about(count(0), "every: when it begins (ms since 1970). Default: now."),
    atMs: about(count(0), "at: when (ms since 1970)."),
  },
  ["kind"],
);

const when = about(schedule, "When it is due.");
const message = about(
  { type: "string", minLength: 1, maxLength: JOB_MESSAGE_MAX_CHARS },
  "The message to the agent.",
);
const place = about(
  object(
    {
      channel: about(name, "webchat (the default), `last` or a channel that is set up."),
      to: about(name, "The chat; on webchat and with `last` a session."),
      accountId: about(name, "The account. Default: the first."),
      threadId: about(threadId, "The thread or topic."),
    },
    ["to"],
  ),
  "The destination of replies besides the job's own session.",
);
const title = "Its name.";
const model = "`<provider>/<model>`. Default: the session's.";
const thinking = "Its model's thinking level. Default: the session's.";
const shared = {
  missed: about(
    { enum: MISSED_POLICIES },
    "A date that was missed while the gateway was down: run once later, or skip.",
  ),
  enabled: about(flag, "false: paused. Default true."),
  timeoutSeconds: about(count(0), "Ends a run this long after its start; at most 7 days. Default 0: never."),
} as const;

// Typed as a choice but checked as one object, so that errors name the wrong field.
const placeOrNull = { ...place, type: ["object", "null"] } as unknown as {
  readonly anyOf: readonly [typeof place, { readonly type: "null" }];
};

const patch = object(
  {
    name: about(nameOrNull, title),
    schedule: when,
    message,
    deliver: placeOrNull,
    model: about(nameOrNull, model),
    thinking: about(nameOrNull, thinking),
    ...shared,
  },
  [],
);

const id = about(name, "Which job.");
const ONE_JOB = object({ id, idempotencyKey }, ["id"]);
const WRONG = ["agent_not_found", "invalid_model", "invalid_thinking", "channel_unknown"] as const;
const PLACE = ["not_visible", "session_not_found", "invalid_session_key", "stale_session_id"] as const;

export const CRON_METHODS = {
  "cron.list": {
    scope: READ,
    does: "Lists the jobs whose sessions the token covers, oldest first.",
    params: object(
      {
        limit: about(count(1), "Most jobs. Default 50, at most 100."),
        cursor,
        agentId: about(name, "Only jobs of this agent."),
      },
      [],
    ),
    ignored: ["includeDisabled"],
  },
  "cron.runs": {
    scope: READ,
    does: "Lists the turns of a job, newest first; the last 100 of each are kept.",
    params: object({ id, limit: about(count(1), "Most turns. Default 50, at most 100.") }, ["id"]),
    ignored: [],
    fails: ["cron_job_not_found"],
  },
  "cron.preview": {
    scope: READ,
    does: "Returns the next five dates of a schedule.",
    params: object({ schedule: when }, ["schedule"]),
    ignored: [],
  },
  "cron.add": {
    scope: ADMIN,
    does: "Creates a job: a message to an agent in the session `cron:<id>` when it is due.",
    params: object(
      {
        name: about(name, title),
        schedule: when,
        agentId: about(name, "The agent. Default: the default agent."),
        message,
        deliver: place,
        model: about(name, model),
        thinking: about(name, thinking),
        ...shared,
        idempotencyKey,
      },
      ["schedule", "message"],
    ),
    ignored: ["description", "wakeMode"],
    fails: [...WRONG, ...PLACE, "too_many_jobs"],
    causes: ["cron"],
  },
  "cron.update": {
    scope: ADMIN,
    does: "Changes a job. null clears a field; absent fields stay.",
    params: object({ id, patch: about(patch, "What changes."), idempotencyKey }, ["id", "patch"]),
    ignored: [],
    fails: [...WRONG, ...PLACE, "cron_job_not_found"],
    causes: ["cron"],
  },
  "cron.remove": {
    scope: ADMIN,
    does: "Removes a job; its session stays.",
    params: ONE_JOB,
    ignored: [],
    fails: ["cron_job_not_found", "not_visible"],
    causes: ["cron"],
  },
  "cron.run": {
    scope: ADMIN,
    does: "Runs a job now, in addition to its schedule.",
    params: ONE_JOB,
    ignored: ["mode"],
    fails: ["cron_job_not_found", "cron_job_busy", "not_visible", ...ASKS_RUN],
    causes: ["cron", ...OF_RUNS],
  },
} as const satisfies Record<string, MethodSpec>;
