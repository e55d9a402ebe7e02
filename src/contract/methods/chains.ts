// Owns the methods about chains.

import type { ChainParty, ChainRow, ChainStep } from "../../core/shapes/chain-step.ts";
import { about, declared, flag, list, mapOf, number, object, text } from "../schema.ts";
import { count, cursor, type MethodSpec, name, READ } from "./parts.ts";

const chain = declared<ChainRow>("ChainRow");

export const CHAIN_METHODS = {
  "chains.list": {
    scope: READ,
    summary: "Lists recently active chains, and after them those with long, silent work.",
    params: object(
      {},
      {
        activeMinutes: about(count(1), "The period of recent activity. Default 60."),
        sessionKey: about(name, "Only chains that this session takes part in."),
        includeSingle: flag("Also chains with only one session."),
        limit: about(count(1), "Most chains. Default 50, at most 200."),
        cursor,
      },
    ),
    result: object(
      {
        ts: number(),
        count: number(),
        chains: list(chain, "Newest activity first; after the last page come chains with long, silent work."),
        names: about(mapOf(text()), "Names of their sessions, by key, if they have one."),
      },
      { nextCursor: text() },
    ),
    errors: ["invalid_session_key"],
  },
  "chains.get": {
    scope: READ,
    summary: "Returns the steps of a chain, oldest first, the newest 1000.",
    params: object({ chainId: about(name, "Id of the chain.") }),
    result: object({
      ts: number(),
      chain,
      parties: list(declared<ChainParty>("ChainParty")),
      steps: list(declared<ChainStep>("ChainStep"), "Oldest first; the newest 1,000."),
      truncated: flag(),
    }),
    errors: ["chain_not_found"],
  },
} as const satisfies Record<string, MethodSpec>;
