// Defines the methods for operating the gateway: health, lists, log.

import type { ProcessRow } from "../../core/shapes/process.ts";
import { AGENT_COLORS } from "../../core/shapes/settings/settings.ts";
import { USAGE_GROUPS, USAGE_ORDERS, type UsageLine } from "../../core/shapes/usage.ts";
import { PRESENCE_ENTRY } from "../frames.ts";
import {
  about,
  anything,
  declared,
  flag,
  integer,
  list,
  mapOf,
  named,
  number,
  type Of,
  object,
  oneOf,
  openObject,
  text,
} from "../schema.ts";
import { CONFIG_AGE } from "./configuration.ts";
import { count, type MethodSpec, NAME_MAX_CHARS, NOTHING, name, READ } from "./parts.ts";

const always = {
  ok: flag("True if the store answers and takes writes, and the gateway accepts work."),
  ts: number(),
  version: text(),
  uptimeMs: number(),
  store: object(
    { kind: text(), ok: flag("True if the store answers and takes writes.") },
    { reason: text("Problem of the store, for example a full disk.") },
  ),
  accepting: flag(),
  channels: about(
    mapOf(object({ ok: flag(), configured: flag() }, { linked: flag() })),
    "Status by channel. `linked`: this process receives its messages.",
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
    "Number of runs by state, and slots. Only for tokens that cover every session.",
  ),
  deliveries: about(
    object(
      { pending: number(), failed: number() },
      {
        dropped: number(
          "Number of dropped webhook events whose failed delivery was not yet retried or dismissed.",
        ),
      },
    ),
    "Number of deliveries by state. Only for tokens that cover every session.",
  ),
} as const;

export const HEALTH = named("Health", "The health and the load of the gateway.", object(always, ofWork));
export type Health = Of<typeof HEALTH>;

const IGNORED_PARAM = named(
  "IgnoredParam",
  "A param that clients of protocol version 4 send and that Parley does not know.",
  object({
    method: text("Name of the method."),
    param: text("Name of the param."),
    count: number("Number of requests with it."),
  }),
);
export type IgnoredParam = Of<typeof IGNORED_PARAM>;

const STATUS = named(
  "Status",
  "The health of the gateway, with more details.",
  object(
    { ...always, protocol: list(integer()), agents: number(), models: number() },
    {
      ...ofWork,
      connections: number("Number of connected clients. Only for tokens that cover every session."),
      processId: text(
        "Id of this process, if several share the store. Only for tokens that cover every session.",
      ),
      processes: list(
        declared<ProcessRow>("ProcessRow"),
        "All known processes, if several share the store. Only for tokens that cover every session.",
      ),
      ignoredParams: list(
        IGNORED_PARAM,
        "Since the start of this process, at most 100. Only for tokens that cover every session.",
      ),
      unused: flag("True if no session has a message yet. Only for tokens that cover every session."),
      config: about(
        object(CONFIG_AGE),
        "Differences between the configuration file and the running settings. " +
          "Only for tokens that cover every session.",
      ),
      demo: about(object({ running: flag() }), "State of the demo. Absent if demos are unavailable."),
    },
  ),
);

/** Settings of the mark beside the name of an agent. */
const AGENT_MARK = {
  color: about(oneOf(...AGENT_COLORS), "Colour of its mark, if set."),
  icon: text("Emoji or letters in its mark, if set."),
};

const AGENT = named(
  "AgentRow",
  "A configured agent.",
  object({ id: text(), default: flag(), model: text() }, { name: text(), ...AGENT_MARK }),
);

const MODEL = named(
  "ModelRow",
  "A model, as `models.list` returns it.",
  object(
    {
      id: text("Id of the model, without the provider."),
      name: text(),
      provider: text(),
      contextWindow: number(),
      maxOutputTokens: number("Maximum number of tokens of one answer."),
      reasoning: flag(),
      images: flag("Whether the model accepts images."),
      cost: about(
        object({ input: number(), output: number(), cacheRead: number(), cacheWrite: number() }),
        "Price in USD per million tokens.",
      ),
    },
    {
      corrections: list(
        text(),
        "Forms of the request that the model's server has asked for since the start of this process.",
      ),
    },
  ),
);
export type ModelRow = Of<typeof MODEL>;

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

const LOG_LINE = named(
  "LogLine",
  "A line of the log. Other fields are returned as they were written.",
  openObject(
    {
      seq: number(),
      time: number("In ms since 1970. 0: unknown."),
      level: oneOf(...LOG_LEVELS),
      msg: text(),
    },
    {
      cut: about(oneOf(true), "Present if the line was too long and was cut to `msg`."),
      part: about(anything, "Part of the program that wrote the line."),
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
  "A page of log lines.",
  object({
    cursor: text("Argument of the next request, to continue after this page."),
    lines: list(LOG_LINE, "Oldest first."),
    dropped: number("Number of lines after the cursor that were dropped from memory before this request."),
    more: flag("True if more lines match."),
  }),
);
export type LogPage = Of<typeof LOG_PAGE>;

const USAGE_REPORT = named(
  "UsageReport",
  "Usage since a time, with one line for each agent, session, chain, model or day.",
  object(
    {
      by: oneOf(...USAGE_GROUPS),
      since: number("Start of the period: the beginning of a day in UTC, in ms since 1970."),
      lines: list(
        declared<UsageLine>("UsageLine"),
        "In the requested order. With `by: day`: the newest day first.",
      ),
      truncated: flag("True if there are more lines than `limit`."),
      budgets: list(
        object(
          {
            agentId: text(),
            tokensToday: number(),
            costToday: number(),
            stoppedToday: number("Number of runs that this budget has ended today."),
          },
          { dailyTokens: number(), dailyCost: number() },
        ),
        "Usage today and daily budget of each agent. Only for tokens that cover every session.",
      ),
    },
    {
      chainBudget: about(
        object(
          { stoppedToday: number("Number of runs that this budget has ended today.") },
          { tokensMax: number(), costMax: number() },
        ),
        "Budget of each chain. Only for tokens that cover every session.",
      ),
      partial: about(oneOf(true), "Present if the token covers only some sessions: others are not counted."),
    },
  ),
);
export type UsageReport = Of<typeof USAGE_REPORT>;

export const OVERVIEW_METHODS = {
  health: {
    scope: READ,
    summary: "Returns whether the store answers and the gateway accepts work.",
    params: NOTHING,
    result: HEALTH,
    ignored: ["probe"],
  },
  status: {
    scope: READ,
    summary: "Returns the health, with versions, agents, models, connections and processes.",
    params: NOTHING,
    result: STATUS,
  },
  "system-presence": {
    scope: READ,
    summary: "Lists the connected clients, newest first. A token for some sessions sees its own connection.",
    params: NOTHING,
    result: list(PRESENCE_ENTRY),
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
    ignored: ["view", "includeDetails", "preparedOnly", "refresh"],
  },
} as const satisfies Record<string, MethodSpec>;

export const OPERATION_METHODS = {
  "logs.tail": {
    scope: READ,
    everySession: true,
    summary: "Returns the newest lines of this process's log, redacted.",
    params: object(
      {},
      {
        cursor: about(
          name,
          "`cursor` of the last answer, to get the lines after it. Default: the newest lines.",
        ),
        limit: about(count(1), "Maximum number of lines. Default 200, at most 500."),
        level: about(oneOf(...LOG_LEVELS), "Lowest level of the lines. Default debug."),
        search: text("Returns only lines that contain this text.", { maxLength: NAME_MAX_CHARS }),
      },
    ),
    result: LOG_PAGE,
  },
  usage: {
    scope: READ,
    summary: "Returns the sums of tokens and cost, of the sessions that the token covers.",
    params: object(
      {},
      {
        by: about(oneOf(...USAGE_GROUPS), "Groups the usage into lines. Default agent."),
        days: about(count(1), "Number of days in UTC, including today. Default 30, at most 3660."),
        agentId: about(name, "Returns only usage of this agent."),
        order: about(oneOf(...USAGE_ORDERS), "Highest cost or most tokens first. Default cost."),
        limit: about(count(1), "Maximum number of lines. Default 100, at most 5000."),
      },
    ),
    result: USAGE_REPORT,
  },
} as const satisfies Record<string, MethodSpec>;
