// Defines the methods for chains.

import type { ChainCall, ChainParty, ChainRow, ChainStep } from "../../core/shapes/chain-step.ts";
import {
  about,
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
  text,
} from "../schema.ts";
import { ADMIN, count, cursor, type MethodSpec, message, NOTHING, name, READ } from "./parts.ts";

const chain = declared<ChainRow>("ChainRow");

const amounts = { tokens: number(), cost: number("USD"), ms: number("Duration.") };
const side = object({
  runId: text("Run of the step."),
  text: text("A long one begins shortly before the difference."),
  ...amounts,
});
const totals = object({ chainId: text(), runs: number(), steps: number("Number of steps."), ...amounts });

const CHAIN_DIFF = named(
  "ChainDiff",
  "Two chains, side by side.",
  object({
    a: about(totals, "The record, or the first chain."),
    b: about(totals, "The replay, or the second chain."),
    differences: number("Number of steps that differ."),
    steps: list(
      object(
        {
          session: text("Session, without the ids of sub-agents."),
          step: text("`message`, `answer`, `call <tool>`, `summary` or `end`."),
          same: flag("Whether both sides have the same text, apart from ids."),
        },
        { a: about(side, "Absent if only b has the step."), b: about(side, "Absent if only a has it.") },
      ),
      "The first 2,000 steps.",
    ),
  }),
);

const REPLAY_OUTCOME = named(
  "ReplayOutcome",
  "The end of a replay.",
  object(
    { runs: number(), entries: number("Number of recorded entries.") },
    {
      difference: about(
        object({
          ...{ runId: text(), sessionKey: text(), step: text() },
          ...{ expected: text("The record's side."), got: text("The replay's side.") },
        }),
        "The first difference. Absent if there is none.",
      ),
      varied: about(
        object({
          answers: number("Number of answers that models gave."),
          cost: number("Cost of these answers in USD."),
          missing: about(
            mapOf(number()),
            "Number of calls that were not run because the record has none like them, by tool.",
          ),
          diff: CHAIN_DIFF,
        }),
        "Of a replay with changes.",
      ),
    },
  ),
);
export type ChainComparison = Of<typeof CHAIN_DIFF>;
export type ReplayOutcome = Of<typeof REPLAY_OUTCOME>;

export const CHAIN_METHODS = {
  "chains.list": {
    scope: READ,
    summary:
      "Lists recently active chains, then chains whose runs have worked for a long time without an event.",
    params: object(
      {},
      {
        activeMinutes: about(count(1), "Period that counts as recent, in minutes. Default 60."),
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
  "chains.replay": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary:
      "Runs an ended chain again, and compares each step. With changes, models are called, and no budget " +
      "applies. One at a time, for at most 10 minutes, while the client is connected.",
    params: object(
      { chainId: about(name, "Id of the chain.") },
      {
        models: about(mapOf(name), "Other models of agents, by agent. `*`: the model of every other agent."),
        instructions: about(mapOf(text()), "Other instructions of agents, by agent."),
        message: about(message, "Another first message."),
        from: about(name, "First step that models answer: a message id, or its number in the record."),
        repeat: integer("Number of replays. Default 1.", { minimum: 1, maximum: 10 }),
      },
    ),
    result: object({ chainId: text(), replays: list(REPLAY_OUTCOME, "In their order.") }),
    errors: [
      ...(["chain_not_found", "session_busy", "missing_scope", "rate_limited", "run_timeout"] as const),
      ...(["run_failed", "run_aborted", "invalid_model", "unknown_method"] as const),
    ],
    events: ["replay"],
  },
  "chains.replay.stop": {
    scope: ADMIN,
    summary: "Stops the replay that this connection has asked for.",
    params: NOTHING,
    result: object({ ok: oneOf(true), stopped: flag("False if there was none.") }),
  },
  "chains.diff": {
    scope: ADMIN,
    everySession: true,
    takesLong: true,
    summary: "Compares the records of two ended chains step by step, one pair at a time.",
    params: object({ a: about(name, "Id of a chain."), b: about(name, "Id of the other chain.") }),
    result: CHAIN_DIFF,
    errors: [
      ...(["chain_not_found", "session_busy", "missing_scope", "rate_limited", "run_timeout"] as const),
      ...(["run_failed", "run_aborted", "unknown_method"] as const),
    ],
  },
} as const satisfies Record<string, MethodSpec>;
