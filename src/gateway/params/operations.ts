// Owns the params of the methods about the gateway's operation: health, lists, metrics over time, log,
// configuration.

import { USAGE_GROUPS } from "../../core/usage.ts";
import { LOG_LEVELS } from "../payloads/operations.ts";
import {
  ADMIN,
  about,
  count,
  type MethodSpec,
  NAME_MAX_CHARS,
  NOTHING,
  name,
  object,
  READ,
} from "./shapes.ts";

export const OVERVIEW_METHODS = {
  health: {
    scope: READ,
    does: "Says whether the store answers and work is accepted.",
    params: NOTHING,
    ignored: ["probe"],
  },
  status: {
    scope: READ,
    does: "Says the same, and what there is: versions, agents, models, connections, processes.",
    params: NOTHING,
    ignored: [],
  },
  "agents.list": { scope: READ, does: "Lists the configured agents.", params: NOTHING, ignored: [] },
  "models.list": {
    scope: READ,
    does: "Lists the models that may be named, as `<provider>/<id>`.",
    params: NOTHING,
    ignored: ["view"],
  },
} as const satisfies Record<string, MethodSpec>;

export const OPERATION_METHODS = {
  "metrics.history": {
    scope: READ,
    does: "Gives the last hour of this process's figures. For tokens that cover every session.",
    params: object({ since: about(count(0), "Only points after this time (ms since 1970).") }, []),
    ignored: [],
  },
  "logs.tail": {
    scope: ADMIN,
    does: "Gives the newest lines of this process's log, masked. For tokens that cover every session.",
    params: object(
      {
        cursor: about(name, "`cursor` of the last answer: what came after it. Default: the newest lines."),
        limit: about(count(1), "Most lines. Default 200, at most 500."),
        level: about({ enum: LOG_LEVELS }, "At least this one. Default debug."),
        search: about({ type: "string", maxLength: NAME_MAX_CHARS }, "Only lines with this in them."),
      },
      [],
    ),
    ignored: [],
  },
  usage: {
    scope: READ,
    does: "Adds up tokens and cost, from the ledger. For tokens that cover every session.",
    params: object(
      {
        by: about({ enum: USAGE_GROUPS }, "What a line is. Default agent."),
        days: about(count(1), "Days of UTC, today among them. Default 30, at most 3660."),
        agentId: about(name, "Only of this agent."),
        limit: about(count(1), "Most lines. Default 100, at most 1000."),
      },
      [],
    ),
    ignored: [],
  },
  "config.check": {
    scope: ADMIN,
    does: "Reads the configuration file as it is now: problems, and what a restart would change.",
    params: NOTHING,
    ignored: [],
    fails: ["invalid_config"],
  },
} as const satisfies Record<string, MethodSpec>;
