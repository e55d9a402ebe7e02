// Owns the params of the methods about chains.

import { about, count, cursor, flag, type MethodSpec, name, object, READ } from "./shapes.ts";

export const CHAIN_METHODS = {
  "chains.list": {
    scope: READ,
    does: "Lists the chains that moved lately, and behind them those at long, silent work.",
    params: object(
      {
        activeMinutes: about(count(1), "What is lately. Default 60."),
        sessionKey: about(name, "Only chains that this session takes part in."),
        includeSingle: about(flag, "Also those of one session alone."),
        limit: about(count(1), "Most chains. Default 50, at most 200."),
        cursor,
      },
      [],
    ),
    ignored: [],
    fails: ["invalid_session_key"],
  },
  "chains.get": {
    scope: READ,
    does: "Tells what happened in a chain, oldest first, the newest 1000 steps.",
    params: object({ chainId: about(name, "Which chain.") }, ["chainId"]),
    ignored: [],
    fails: ["chain_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
