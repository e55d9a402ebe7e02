// Defines the methods that replay and compare chains, and the event about the progress.

import type { EventSpec } from "../../contract/events.ts";
import { ADMIN, type MethodSpec, message, NOTHING, name } from "../../contract/methods/parts.ts";
import {
  about,
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
} from "../../contract/schema.ts";
import { LABELS } from "../../core/shapes/labels.ts";

const amounts = { tokens: number(), cost: number("USD"), ms: number("Duration.") };
const side = object({
  runId: text("Run of the step."),
  text: text("A long one begins shortly before the difference."),
  ...amounts,
});
const totals = object({ chainId: text(), runs: number(), steps: number("Number of steps."), ...amounts });

const labels = list(
  object({
    side: about(oneOf("a", "b"), "The side that has the label."),
    label: oneOf(...LABELS),
    source: text(),
    sessions: list(text(), "Sessions of these runs, without the ids of sub-agents."),
    runId: text("First run that has it, and that lacks it on the other side."),
  }),
  "Labels that runs have on one side only.",
);

const CHAIN_DIFF = named(
  "ChainDiff",
  "Two chains, side by side.",
  object({
    a: about(totals, "The record, or the first chain."),
    b: about(totals, "The replay, or the second chain."),
    differences: number("Number of steps that differ."),
    labels,
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
    { runs: number(), entries: number("Number of recorded entries."), labels },
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
/** A label that runs of one chain have, and the same runs of the other one have not. */
export type LabelDifference = ChainComparison["labels"][number];
export type ReplayOutcome = Of<typeof REPLAY_OUTCOME>;

export const REPLAY_EVENT = {
  summary: "Progress of `chains.replay`. Sent to the connection that asked for it.",
  payload: object({
    chainId: text(),
    replay: number("Number of this replay, from 1."),
    of: number("Number of replays."),
    done: number("Events of the record that were replayed."),
    total: number("Events of the record."),
  }),
} as const satisfies EventSpec;

export const REPLAY_METHODS = {
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
      ...(["run_failed", "run_aborted", "invalid_model"] as const),
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
      ...(["run_failed", "run_aborted"] as const),
    ],
  },
} as const satisfies Record<string, MethodSpec>;
