// Defines the methods that list what needs a person and what runs, and that retry or dismiss an ended run.

import { ATTENTION_GROUPS } from "../../core/rules/attention/groups.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { ActiveRunState } from "../../core/shapes/run.ts";
import { about, declared, flag, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { count, HOLD, idempotencyKey, type MethodSpec, name, OF_RUNS, READ, WRITE } from "./parts.ts";

const AWAITED = {
  waitingFor: list(text(), "Keys of the sessions that this session waits for, at most 5."),
  waitingForCount: number("Number of all sessions that this session waits for."),
};

const ITEM = named(
  "AttentionItem",
  "An item of the list: it needs a person, or reports the state of a session.",
  object(
    {
      id: text("Id of the item, which does not change while it is in the list."),
      kind: about(
        oneOf(
          ...(["store", "permission", "instructions", "pairing", "node"] as const),
          ...(["delivery", "run", "budget", "question", "unanswered"] as const),
        ),
        "`question`: the last reply ends with a question. `unanswered`: nobody answered a request in time. " +
          "`budget`: a budget stopped the run. `node`: a pairing request. `instructions`: a run with " +
          "outside content changed such a file. `store`: the store takes no writes.",
      ),
      ref: text(
        "Argument for the actions: the id of a permission request, a change, a delivery or a run, or a " +
          "pairing code.",
      ),
      since: number("Start of the state, in ms since 1970."),
      summary: text(
        "One line, redacted, at most 200 characters. Of a permission request: see `permissions.list`.",
      ),
      actions: about(
        list(oneOf("approve", "deny", "retry", "dismiss", "answer", "stop")),
        "Actions that the caller is allowed to take.",
      ),
    },
    {
      sessionKey: text(),
      agentId: text("Only for runs and permission requests: the agent."),
      label: text("Label or name of the session."),
      title: text("Requested action or changed file, or name of the person or device that asks."),
      diff: text("Only for instruction files: the whole change as lines of a unified diff."),
      attempt: number("Only for retried runs: 2 for the first retry of a message, 3 for the next one."),
      state: text("Only for runs: state of the run. `waiting` if only jobs of the session are unfinished."),
      hold: HOLD,
      code: text("Error code of a failure."),
      model: text("Only for failed runs: model of the last call."),
      labels: about(declared<Labels>("Labels"), "Only for requests about labels: the labels of the run."),
      expiresAt: number("Time at which the request expires and counts as denied, in ms since 1970."),
      ...AWAITED,
    },
  ),
);
export type AttentionItem = Of<typeof ITEM>;

const GROUP = named(
  "AttentionGroup",
  "One group of the list.",
  object({
    group: about(
      oneOf(...ATTENTION_GROUPS),
      "Name of the group. `failed` has failures that were dismissed or need no action. `waiting` has " +
        "waiting and queued runs, apart from those that wait for an answer in `needs_you`, and sessions " +
        "whose jobs are unfinished.",
    ),
    count: number("Number of items in the group, including those beyond the limit."),
    more: flag("True if `count` is a lower bound, because not all rows were read."),
    items: list(ITEM, "A problem of the store and permission requests first, then the newest item first."),
  }),
);
export type AttentionGroupRows = Of<typeof GROUP>;

const ACTIVE_RUN = named(
  "ActiveRun",
  "An unfinished run.",
  object(
    {
      runId: text(),
      sessionKey: text(),
      agentId: text(),
      chainId: text(),
      state: declared<ActiveRunState>("ActiveRunState"),
      acceptedAt: number(),
      since: number("Time at which it began to run, to wait or to queue, in ms since 1970."),
      model: text("Model of its last call, or else the model of its session."),
      summary: text("Beginning of the message, redacted, one line of at most 200 characters."),
      mayStop: flag("True if the caller may stop it with `chat.abort`."),
    },
    {
      label: text("Label or name of the session."),
      tokens: number("Tokens of its model calls so far. Absent if the runs have too many calls to add up."),
      cost: number("Cost of its model calls so far, in USD. Absent with `tokens`."),
      hold: HOLD,
      ...AWAITED,
    },
  ),
);
export type ActiveRun = Of<typeof ACTIVE_RUN>;

const UNFINISHED = about(name, "An unfinished run.");
const HELD_RUN = {
  scope: WRITE,
  result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
  errors: ["run_not_found"],
  events: ["sessions", "attention"],
} as const;

const ONE_RUN = object({ runId: about(name, "The last run of a session.") }, { idempotencyKey });

export const ATTENTION_METHODS = {
  "attention.list": {
    scope: READ,
    summary: "Lists what needs a person, and what is running, waiting, failed or done.",
    params: object(
      {},
      { limit: about(count(1), "Maximum number of items in each group. Default 50, at most 200.") },
    ),
    result: object({ ts: number(), groups: list(GROUP, "All five groups, in this order.") }),
  },
  "runs.list": {
    scope: READ,
    summary: "Lists unfinished runs: the running ones first, then waiting and queued ones, newest first.",
    params: object({}, { limit: about(count(1), "Maximum number of runs. Default 200, at most 1000.") }),
    result: object({
      ts: number(),
      runs: list(ACTIVE_RUN),
      truncated: flag("True if there are more runs than `limit`."),
    }),
  },
  "runs.retry": {
    scope: WRITE,
    summary: "Sends the message of a failed run again. The run must be the last one of its session.",
    params: ONE_RUN,
    result: object({ ok: oneOf(true), runId: text("Id of the new run."), sessionKey: text() }),
    errors: ["run_not_found", "session_archived", "queue_full", "send_denied"],
    events: [...OF_RUNS, "attention"],
  },
  "runs.dismiss": {
    scope: WRITE,
    summary: "Dismisses a failed run or an agent's question, so that it is no longer listed as open.",
    params: ONE_RUN,
    result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
    errors: ["run_not_found"],
    events: ["sessions", "attention"],
  },
  "runs.hold": {
    ...HELD_RUN,
    params: object({ runId: UNFINISHED }, { idempotencyKey }),
    summary:
      "Lets a run stop before its next tool call, until `runs.release`. It stays held after a restart. Not " +
      "for agents that run as programs or elsewhere.",
  },
  "runs.release": {
    ...HELD_RUN,
    summary: "Lets a held run continue.",
    params: object(
      { runId: UNFINISHED },
      {
        skip: flag(
          "Does not make the calls before which the run stops: the agent reads that a person decided " +
            "against them. Default false.",
        ),
        idempotencyKey,
      },
    ),
  },
} as const satisfies Record<string, MethodSpec>;
