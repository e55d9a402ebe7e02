// Owns the params of what is asked about the gateway's own work: figures over time, log, configuration.

import { USAGE_GROUPS } from "../../core/usage.ts";
import { LOG_LEVELS } from "../payloads/operations.ts";
import { ADMIN, count, type MethodSpec, NAME_MAX_CHARS, NOTHING, name, object, READ } from "./shapes.ts";

export const OPERATIONS = {
  "metrics.history": {
    scope: READ,
    params: object({ since: count(0) }, []),
    ignored: [],
  },
  "logs.tail": {
    scope: ADMIN,
    params: object(
      {
        cursor: name,
        limit: count(1),
        level: { enum: LOG_LEVELS },
        search: { type: "string", maxLength: NAME_MAX_CHARS },
      },
      [],
    ),
    ignored: [],
  },
  usage: {
    scope: READ,
    params: object({ by: { enum: USAGE_GROUPS }, days: count(1), agentId: name, limit: count(1) }, []),
    ignored: [],
  },
  "config.check": { scope: ADMIN, params: NOTHING, ignored: [] },
} as const satisfies Record<string, MethodSpec>;
