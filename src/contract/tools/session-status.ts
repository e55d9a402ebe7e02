// Defines the answers of the tool `session_status`: about a session, a run or a message.

import type { Code } from "../../core/shapes/errors.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Receipt, ReceiptState, RunState } from "../../core/shapes/run.ts";
import { SESSION_KINDS } from "../../core/shapes/session.ts";
import type { UsageSum } from "../../core/shapes/usage.ts";
import { CONTEXT, WORK } from "../methods/sessions.ts";
import { about, declared, flag, list, number, object, oneOf, type Schema, text } from "../schema.ts";

const tokens = {
  input: number(),
  output: number(),
  cacheRead: number(),
  cacheWrite: number(),
  totalTokens: number(),
} satisfies Record<keyof Omit<UsageSum, "cost">, Schema>;

export const RUN_STATUS = object(
  {
    runId: text(),
    sessionKey: text(),
    agentId: text(),
    state: declared<RunState>("RunState"),
    acceptedAt: number(),
    usage: object(tokens),
    cost: number(),
    chainId: text(),
    hop: number(),
  },
  {
    queuedBehind: number("Number of runs that the session executes before this one."),
    startedAt: number(),
    endedAt: number(),
    model: text(),
    reply: text("Final text of the run."),
    code: declared<Code>("Code"),
    error: text(),
    crashes: number("Number of crashes during the run."),
    takenBy: text("Id of the run that was already active and read this run's message."),
  },
);

export const SESSION_STATUS = object(
  {
    sessionKey: text(),
    sessionId: text(),
    agentId: text(),
    kind: oneOf(...SESSION_KINDS),
    ...WORK,
    runs: list(
      object({ runId: text(), state: declared<RunState>("RunState"), acceptedAt: number() }),
      "The first unfinished runs. `queuedRuns` counts all of them.",
    ),
    model: text(),
    thinkingLevel: text(),
    ...CONTEXT,
    usage: object(tokens),
    cost: number(),
    openFlows: list(
      object({ flowId: text(), from: text(), to: text(), turnsMax: number(), createdAt: number() }),
      "Open conversations. Sessions that you cannot see are not named.",
    ),
    updatedAt: number(),
    abortedLastRun: flag(),
  },
  { boundTo: list(declared<Route>("Route"), "Chats that are bound to the session.") },
);

export const MESSAGE_STATUS = object(
  {
    messageId: text(),
    state: declared<ReceiptState>("ReceiptState"),
    times: about(
      declared<Receipt["times"]>('Receipt["times"]'),
      "Time of each state that was reached, in ms since 1970.",
    ),
    from: text(),
    to: text(),
  },
  { code: text("Error code of the run, if the state is `declined`, `expired` or `failed`.") },
);
