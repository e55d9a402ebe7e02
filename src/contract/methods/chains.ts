// Owns the methods about chains.

import { about, flag, object } from "../schema.ts";
import { count, cursor, type MethodSpec, name, READ } from "./parts.ts";

export const CHAIN_METHODS = {
  "chains.list": {
    scope: READ,
    summary: "Lists recently active chains, and after them those with long, silent work.",
    params: object(
      {},
      {
        activeMinutes: about(count(1), "The period of recent activity. Default 60."),
        sessionKey: about(name, "Only chains that this session takes part in."),
        includeSingle: about(flag, "Also chains with only one session."),
        limit: about(count(1), "Most chains. Default 50, at most 200."),
        cursor,
      },
    ),
    errors: ["invalid_session_key"],
  },
  "chains.get": {
    scope: READ,
    summary: "Returns the steps of a chain, oldest first, the newest 1000.",
    params: object({ chainId: about(name, "Which chain.") }),
    errors: ["chain_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
