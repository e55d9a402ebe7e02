// Owns the params of the methods about scheduled jobs.

import { MISSED_POLICIES, SCHEDULE_KINDS } from "../../core/schedule.ts";
import {
  ADMIN,
  count,
  flag,
  idempotencyKey,
  type MethodSpec,
  name,
  nameOrNull,
  object,
  READ,
  threadId,
} from "./shapes.ts";

/** Characters of what a job says to its agent. */
const JOB_MESSAGE_MAX_CHARS = 16_000;
const EXPR_MAX_CHARS = 200;

const schedule = object(
  {
    kind: { enum: SCHEDULE_KINDS },
    expr: { type: "string", maxLength: EXPR_MAX_CHARS },
    tz: name,
    everyMs: count(1),
    anchorMs: count(0),
    atMs: count(0),
  },
  ["kind"],
);

const message = { type: "string", minLength: 1, maxLength: JOB_MESSAGE_MAX_CHARS } as const;
const place = object({ channel: name, to: name, accountId: name, threadId }, ["to"]);
const shared = { missed: { enum: MISSED_POLICIES }, enabled: flag, timeoutSeconds: count(0) } as const;

// Typed as a choice and checked as one object: what is wrong in it is then told field by field.
const placeOrNull = { ...place, type: ["object", "null"] } as unknown as {
  readonly anyOf: readonly [typeof place, { readonly type: "null" }];
};

const patch = object(
  {
    name: nameOrNull,
    schedule,
    message,
    deliver: placeOrNull,
    model: nameOrNull,
    thinking: nameOrNull,
    ...shared,
  },
  [],
);

const ONE_JOB = object({ id: name, idempotencyKey }, ["id"]);

export const CRON_METHODS = {
  "cron.list": {
    scope: READ,
    params: object({ limit: count(1), cursor: name, agentId: name }, []),
    ignored: ["includeDisabled"],
  },
  "cron.runs": {
    scope: READ,
    params: object({ id: name, limit: count(1) }, ["id"]),
    ignored: [],
  },
  "cron.preview": {
    scope: READ,
    params: object({ schedule }, ["schedule"]),
    ignored: [],
  },
  "cron.add": {
    scope: ADMIN,
    params: object(
      {
        name,
        schedule,
        agentId: name,
        message,
        deliver: place,
        model: name,
        thinking: name,
        ...shared,
        idempotencyKey,
      },
      ["schedule", "message"],
    ),
    ignored: ["description", "wakeMode"],
  },
  "cron.update": {
    scope: ADMIN,
    params: object({ id: name, patch, idempotencyKey }, ["id", "patch"]),
    ignored: [],
  },
  "cron.remove": { scope: ADMIN, params: ONE_JOB, ignored: [] },
  "cron.run": { scope: ADMIN, params: ONE_JOB, ignored: ["mode"] },
} as const satisfies Record<string, MethodSpec>;
