// Defines the methods for chains.

import type { ChainCall, ChainParty, ChainRow, ChainStep } from "../../core/shapes/chain-step.ts";
import { about, declared, flag, list, mapOf, number, object, oneOf, text } from "../schema.ts";
import { ADMIN, count, cursor, type MethodSpec, name, READ } from "./parts.ts";

const chain = declared<ChainRow>("ChainRow");
const SEARCH_CHARS_MAX = 500;

export const CHAIN_METHODS = {
  "chains.list": {
    scope: READ,
    summary:
      "Lists recently active chains, then chains whose runs have worked for a long time without an event.",
    params: object(
      {},
      {
        activeMinutes: about(count(1), "Period that counts as recent, in minutes. Default 60."),
        from: about(count(0), "Start of the period, in ms since 1970, in place of `activeMinutes`."),
        to: about(count(0), "End of the period, in ms since 1970. Default: now."),
        search: text(
          "Words. Returns only chains with a message that contains all of them, or with a session whose " +
            "key or name contains this text. Considers the newest 5,000 matching messages.",
          { maxLength: SEARCH_CHARS_MAX },
        ),
        agentId: about(name, "Returns only chains in which this agent has run."),
        state: about(oneOf("running", "failed"), "Returns only chains with an unfinished or a failed run."),
        sessionKey: about(name, "Returns only chains in which this session takes part."),
        includeSingle: flag("Includes chains with only one session."),
        limit: about(count(1), "Maximum number of chains. Default 50, at most 200."),
        cursor,
      },
    ),
    result: object(
      {
        ts: number(),
        count: number(),
        chains: list(
          chain,
          "Newest activity first. Chains that have worked for a long time without an event are at the end.",
        ),
        names: about(
          mapOf(text()),
          "Names of the sessions in these chains, by key. Sessions without a name are absent.",
        ),
      },
      { nextCursor: text() },
    ),
    errors: ["invalid_session_key"],
  },
  "chains.get": {
    scope: READ,
    summary: "Returns the newest 5,000 steps of a chain, oldest first.",
    params: object(
      { chainId: about(name, "Id of the chain.") },
      { includeCalls: flag("Includes the model calls and tool calls of these steps' runs.") },
    ),
    result: object(
      {
        ts: number(),
        chain,
        parties: list(declared<ChainParty>("ChainParty")),
        steps: list(declared<ChainStep>("ChainStep"), "The newest 5,000 steps, oldest first."),
        truncated: flag("True if older steps or calls are missing."),
      },
      { calls: list(declared<ChainCall>("ChainCall"), "Calls, in the order of their runs.") },
    ),
    errors: ["chain_not_found"],
  },
  "chains.record": {
    scope: ADMIN,
    everySession: true,
    summary:
      "Returns the record of an ended chain, with which it can be run again: one JSON document with its " +
      "version and checksum, in pages. Credentials are redacted.",
    params: object(
      { chainId: about(name, "Id of the chain.") },
      { offset: about(count(0), "Position at which the page begins. Default 0.") },
    ),
    result: object(
      {
        chainId: text(),
        checksum: text("Checksum of the document, the same on every page."),
        text: text("Part of the document."),
      },
      { nextOffset: number("Offset of the next page. Absent on the last one.") },
    ),
    errors: ["chain_not_found", "session_busy", "missing_scope"],
  },
} as const satisfies Record<string, MethodSpec>;
