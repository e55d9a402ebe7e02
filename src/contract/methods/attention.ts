// Owns the methods about what needs a person, and the two decisions about an ended run.

import { ATTENTION_GROUPS } from "../../core/rules/attention/groups.ts";
import { about, flag, list, named, number, type Of, object, oneOf, text } from "../schema.ts";
import { count, idempotencyKey, type MethodSpec, name, OF_RUNS, READ, WRITE } from "./parts.ts";

const ITEM = named(
  "AttentionItem",
  "An item that needs a person, or reports the state of a session.",
  object(
    {
      id: text("Stays the same while the item is in the list."),
      kind: about(
        oneOf("permission", "pairing", "node", "delivery", "run", "budget", "question"),
        "`question`: the last turn asks its person. `budget`: a budget stopped it. `node`: a device.",
      ),
      ref: text(
        "The argument of its methods: the id of a permission request, delivery or run, or a pairing code.",
      ),
      since: number("ms since 1970."),
      summary: text("One line, redacted, at most 200 characters."),
      actions: about(
        list(oneOf("approve", "deny", "retry", "dismiss", "answer", "stop")),
        "Actions that the caller may take.",
      ),
    },
    {
      sessionKey: text(),
      label: text("The label or name of its session."),
      title: text("The action, person or device that asks."),
      state: text("Of a run: its state."),
      code: text("Of a failure."),
      expiresAt: number("Counts as denied from then on; ms since 1970."),
      waitingFor: list(text(), "Keys of the sessions for which it waits, at most 5."),
      waitingForCount: number("The number of all of them."),
    },
  ),
);
export type AttentionItem = Of<typeof ITEM>;

const GROUP = named(
  "AttentionGroup",
  "One group of the list.",
  object({
    group: about(oneOf(...ATTENTION_GROUPS), "`failed`: failures that need nobody any more."),
    count: number("Items of the group, also those beyond the limit."),
    more: flag("`count` is a lower bound: not all rows were read."),
    items: list(ITEM, "Newest first; permission requests precede all others."),
  }),
);
export type AttentionGroupRows = Of<typeof GROUP>;

const ONE_RUN = object({ runId: about(name, "The last turn of a session.") }, { idempotencyKey });

export const ATTENTION_METHODS = {
  "attention.list": {
    scope: READ,
    summary: "Lists what needs a person, and what runs, waits, has failed and is done.",
    params: object({}, { limit: about(count(1), "Most items of each group. Default 50, at most 200.") }),
    result: object({ ts: number(), groups: list(GROUP, "All five, in this order.") }),
  },
  "runs.retry": {
    scope: WRITE,
    summary: "Sends the message of a failed run again, if it is the last of its session and began there.",
    params: ONE_RUN,
    result: object({ ok: oneOf(true), runId: text("The new run."), sessionKey: text() }),
    errors: ["run_not_found", "session_archived", "queue_full", "send_denied"],
    events: [...OF_RUNS, "attention"],
  },
  "runs.dismiss": {
    scope: WRITE,
    summary: "Dismisses a failed run or an agent's question: it needs nobody any more.",
    params: ONE_RUN,
    result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
    errors: ["run_not_found"],
    events: ["sessions", "attention"],
  },
} as const satisfies Record<string, MethodSpec>;
