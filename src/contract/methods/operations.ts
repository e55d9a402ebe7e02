// Owns the methods about the gateway's operation: health, lists, metrics over time, log,
// configuration.

import { USAGE_GROUPS } from "../../core/shapes/usage.ts";
import { LOG_LEVELS } from "../payloads/operations.ts";
import { about, object, oneOf, text } from "../schema.ts";
import { ADMIN, count, type MethodSpec, NAME_MAX_CHARS, NOTHING, name, READ } from "./parts.ts";

export const OVERVIEW_METHODS = {
  health: {
    scope: READ,
    summary: "Returns whether the store answers and work is accepted.",
    params: NOTHING,
    ignored: ["probe"],
  },
  status: {
    scope: READ,
    summary: "Returns the health, and versions, agents, models, connections and processes.",
    params: NOTHING,
  },
  "agents.list": { scope: READ, summary: "Lists the configured agents.", params: NOTHING },
  "models.list": {
    scope: READ,
    summary: "Lists the available models, as `<provider>/<id>`.",
    params: NOTHING,
    ignored: ["view"],
  },
} as const satisfies Record<string, MethodSpec>;

export const OPERATION_METHODS = {
  "metrics.history": {
    scope: READ,
    summary: "Returns the metrics of this process's last hour. For tokens that cover every session.",
    params: object({}, { since: about(count(0), "Only points after this time (ms since 1970).") }),
  },
  "logs.tail": {
    scope: ADMIN,
    summary: "Returns the newest lines of this process's log, redacted. For tokens that cover every session.",
    params: object(
      {},
      {
        cursor: about(
          name,
          "`cursor` of the last answer: returns the lines after it. Default: the newest lines.",
        ),
        limit: about(count(1), "Most lines. Default 200, at most 500."),
        level: about(oneOf(...LOG_LEVELS), "The lowest level. Default debug."),
        search: about(text({ maxLength: NAME_MAX_CHARS }), "Only lines that contain this text."),
      },
    ),
  },
  usage: {
    scope: READ,
    summary: "Sums up tokens and cost, from the ledger. For tokens that cover every session.",
    params: object(
      {},
      {
        by: about(oneOf(...USAGE_GROUPS), "The grouping of the lines. Default agent."),
        days: about(count(1), "Days of UTC, today among them. Default 30, at most 3660."),
        agentId: about(name, "Only usage of this agent."),
        limit: about(count(1), "Most lines. Default 100, at most 1000."),
      },
    ),
  },
  "config.check": {
    scope: ADMIN,
    summary: "Checks the current configuration file: its problems, and the effects of a restart.",
    params: NOTHING,
    errors: ["invalid_config"],
  },
} as const satisfies Record<string, MethodSpec>;
