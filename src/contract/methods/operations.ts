// Owns the methods about the gateway's operation: health, lists, metrics over time, log,
// configuration.

import type { ProcessRow } from "../../core/shapes/process.ts";
import { USAGE_GROUPS, type UsageLine } from "../../core/shapes/usage.ts";
import {
  about,
  anything,
  declared,
  flag,
  integer,
  list,
  mapOf,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  openObject,
  text,
} from "../schema.ts";
import { ADMIN, count, type MethodSpec, NAME_MAX_CHARS, NOTHING, name, READ } from "./parts.ts";

const always = {
  ok: flag("The store answers, and work is accepted."),
  ts: number(),
  version: text(),
  uptimeMs: number(),
  store: object({ kind: text(), ok: flag() }),
  accepting: flag(),
  channels: about(
    mapOf(object({ ok: flag(), configured: flag() }, { linked: flag() })),
    "`linked`: this process receives messages.",
  ),
  defaultAgentId: text(),
  durationMs: number(),
} as const;
const ofWork = {
  lanes: about(
    object({
      running: number(),
      waiting: number(),
      queued: number(),
      slots: object({ max: number(), taken: number() }),
    }),
    "Runs and slots. Only for tokens that cover every session.",
  ),
  deliveries: about(
    object(
      { pending: number(), failed: number() },
      {
        dropped: number("Dropped events of web hooks, until their failed delivery is retried or dismissed."),
      },
    ),
    "Only for tokens that cover every session.",
  ),
} as const;

export const HEALTH = named("Health", "Whether the gateway works, and its load.", object(always, ofWork));
export type Health = Of<typeof HEALTH>;

const configAge = {
  ok: flag(),
  differs: flag("A restart would change something. False while the file is invalid."),
  changed: list(text(), "The parts of the file that it would change, without their values."),
} as const;

const STATUS = named(
  "Status",
  "The health, with more figures of the gateway.",
  object(
    { ...always, protocol: list(integer()), agents: number(), models: number() },
    {
      ...ofWork,
      connections: number("Only for tokens that cover every session."),
      processId: text(
        "This process, if several gateways share the store. Only for tokens that cover every session.",
      ),
      processes: list(
        declared<ProcessRow>("ProcessRow"),
        "All known processes, if several share the store. Only for tokens that cover every session.",
      ),
      unused: flag("No session has any message yet. Only for tokens that cover every session."),
      config: about(
        object(configAge),
        "The current configuration file, compared with the running settings. " +
          "Only for tokens that cover every session.",
      ),
      demo: about(object({ running: flag() }), "Absent: demos are unavailable."),
    },
  ),
);

const AGENT = named(
  "AgentRow",
  "A configured agent.",
  object({ id: text(), default: flag(), model: text() }, { name: text() }),
);

const MODEL = named(
  "ModelRow",
  "A model as `models.list` shows it.",
  object({
    id: text("Without its provider."),
    name: text(),
    provider: text(),
    contextWindow: number(),
    reasoning: flag(),
  }),
);
export type ModelRow = Of<typeof MODEL>;

const METRICS_HISTORY = named(
  "MetricsHistory",
  "The metrics of this process's last hour, or the requested part.",
  object({
    stepMs: number("Interval between two points."),
    pointsMax: number("Kept points of each series."),
    times: list(number(), "Times of the points of every series (ms since 1970)."),
    series: list(
      object({
        name: text(),
        title: text(),
        unit: oneOf("count", "per_minute", "ms", "bytes", "usd_per_hour"),
        help: text(),
        values: list(
          nullable(number()),
          "One value for each of the times; null: not measured, or nothing to measure.",
        ),
      }),
    ),
  }),
);
export type MetricsHistory = Of<typeof METRICS_HISTORY>;

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

const LOG_LINE = named(
  "LogLine",
  "A line of the log; its other fields are as they were written.",
  openObject(
    { seq: number(), time: number("ms since 1970; 0: unknown."), level: oneOf(...LOG_LEVELS), msg: text() },
    {
      cut: about(oneOf(true), "The line was too long: `msg` has the rest of its text."),
      part: about(anything, "The part of the program that wrote it."),
      runId: text(),
      sessionKey: text(),
      chainId: text(),
      err: anything,
    },
  ),
);
export type LogLine = Of<typeof LOG_LINE>;

const LOG_PAGE = named(
  "LogPage",
  "Lines of the log.",
  object({
    cursor: text("For the next request: it continues after this page."),
    lines: list(LOG_LINE, "Oldest first."),
    dropped: number("Lines after the given cursor that were dropped before this request."),
    more: flag("More matching lines follow."),
  }),
);
export type LogPage = Of<typeof LOG_PAGE>;

const USAGE_REPORT = named(
  "UsageReport",
  "Usage since a time, one line for each agent, session, model or day.",
  object({
    by: oneOf(...USAGE_GROUPS),
    since: number("ms since 1970: the beginning of a day of UTC."),
    lines: list(declared<UsageLine>("UsageLine"), "The most expensive first; of days the newest."),
    truncated: flag("There are more lines than requested."),
    budgets: list(
      object(
        { agentId: text(), tokensToday: number(), costToday: number() },
        { dailyTokens: number(), dailyCost: number() },
      ),
      "The used part of each agent's daily budget.",
    ),
  }),
);
export type UsageReport = Of<typeof USAGE_REPORT>;

const CONFIG_CHECK = named(
  "ConfigCheck",
  "The current configuration file compared with the running settings.",
  object({
    path: text(),
    exists: flag(),
    ...configAge,
    errors: list(text()),
    warnings: list(text()),
    settings: about(mapOf(anything), "All running settings; of secrets only whether they are set."),
  }),
);
export type ConfigCheck = Of<typeof CONFIG_CHECK>;

export const OVERVIEW_METHODS = {
  health: {
    scope: READ,
    summary: "Returns whether the store answers and work is accepted.",
    params: NOTHING,
    result: HEALTH,
    ignored: ["probe"],
  },
  status: {
    scope: READ,
    summary: "Returns the health, and versions, agents, models, connections and processes.",
    params: NOTHING,
    result: STATUS,
  },
  "agents.list": {
    scope: READ,
    summary: "Lists the configured agents.",
    params: NOTHING,
    result: object({ defaultId: text(), mainKey: text(), scope: text(), agents: list(AGENT) }),
  },
  "models.list": {
    scope: READ,
    summary: "Lists the available models, as `<provider>/<id>`.",
    params: NOTHING,
    result: object({ models: list(MODEL) }),
    ignored: ["view"],
  },
} as const satisfies Record<string, MethodSpec>;

export const OPERATION_METHODS = {
  "metrics.history": {
    scope: READ,
    summary: "Returns the metrics of this process's last hour. Requires a token that covers every session.",
    params: object({}, { since: about(count(0), "Only points after this time (ms since 1970).") }),
    result: METRICS_HISTORY,
  },
  "logs.tail": {
    scope: ADMIN,
    summary:
      "Returns the newest lines of this process's log, redacted. Requires a token that covers every session.",
    params: object(
      {},
      {
        cursor: about(
          name,
          "`cursor` of the last answer: returns the lines after it. Default: the newest lines.",
        ),
        limit: about(count(1), "Most lines. Default 200, at most 500."),
        level: about(oneOf(...LOG_LEVELS), "The lowest level. Default debug."),
        search: text("Only lines that contain this text.", { maxLength: NAME_MAX_CHARS }),
      },
    ),
    result: LOG_PAGE,
  },
  usage: {
    scope: READ,
    summary: "Sums up tokens and cost, from the ledger. Requires a token that covers every session.",
    params: object(
      {},
      {
        by: about(oneOf(...USAGE_GROUPS), "The grouping of the lines. Default agent."),
        days: about(count(1), "Days of UTC, today among them. Default 30, at most 3660."),
        agentId: about(name, "Only usage of this agent."),
        limit: about(count(1), "Most lines. Default 100, at most 1000."),
      },
    ),
    result: USAGE_REPORT,
  },
  "config.check": {
    scope: ADMIN,
    summary: "Checks the current configuration file: its problems, and the effects of a restart.",
    params: NOTHING,
    result: CONFIG_CHECK,
    errors: ["invalid_config"],
  },
} as const satisfies Record<string, MethodSpec>;
