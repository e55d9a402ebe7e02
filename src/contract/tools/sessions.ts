// Owns the tools about sessions: finding, reading, writing to and starting them.

import type { AnnouncedStatus } from "../../core/rules/announcement.ts";
import { resultDescription } from "../../core/rules/result-delivery.ts";
import type { Code } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Route } from "../../core/shapes/route.ts";
import type { Receipt, ReceiptState, RunState } from "../../core/shapes/run.ts";
import { SESSION_KINDS, type SessionState } from "../../core/shapes/session.ts";
import { THINKING_LEVELS, type VisibilityMode } from "../../core/shapes/settings/settings.ts";
import type { AttachmentReceipt } from "../../core/shapes/spawn.ts";
import type { UsageSum } from "../../core/shapes/usage.ts";
import { NAMES_SESSION as NAMED } from "../methods/parts.ts";
import { CONTEXT, ROW, ROW_OPTIONS, WORK } from "../methods/sessions.ts";
import {
  about,
  declared,
  either,
  flag,
  list,
  number,
  object,
  oneOf,
  openObject,
  type Schema,
  text,
} from "../schema.ts";
import { choice, done, OF_SESSIONS, REPEATABLE, type ToolEntry, word } from "./parts.ts";

/** Bounds of a number of rows: `fallback` if absent, `max` if more. */
export const LIST_LIMIT = { fallback: 50, min: 1, max: 200 };
export const LIST_MESSAGE_LIMIT = { fallback: 0, min: 0, max: 20 };
export const HISTORY_LIMIT = { fallback: 50, min: 1, max: 1_000 };
export const SEARCH_LIMIT = { fallback: 20, min: 1, max: 100 };
export const INBOX_LIMIT = { fallback: 20, min: 1, max: 200 };
/** Most seconds for which `sessions_inbox` waits. */
export const INBOX_WAIT_SECONDS = 300;
export const INBOX_ACK_MAX = 200;
export const WAIT_MAX_SECONDS = 3_600;
export const SEND_WAIT_SECONDS = 30;
export const CHILDREN_WAIT_SECONDS = 300;

/** Codes of tools that take a session. */
const NAMES_SESSION = [...NAMED, "agent_to_agent"] as const satisfies readonly Code[];
/** Codes of tools that start a run. */
const STARTS_RUN = ["chain_limit", "queue_full", "session_archived", "run_aborted"] as const;
const NESTED =
  "Every session; sub-agents that may spawn (`maxSpawnDepth`); others if `tools.subagents.tools.allow` " +
  "lists it.";

const route = declared<Route>("Route");
const tokens = {
  input: number(),
  output: number(),
  cacheRead: number(),
  cacheWrite: number(),
  totalTokens: number(),
} satisfies Record<keyof Omit<UsageSum, "cost">, Schema>;

const LISTED_SESSION = object(
  { ...ROW, kind: oneOf(...SESSION_KINDS), ...WORK },
  {
    ...ROW_OPTIONS,
    transcriptPath: text("The JSONL copy of the transcript."),
    messages: list(declared<Message>("Message"), "With `messageLimit`: the last messages."),
  },
);

const SEARCH_HIT = object(
  {
    sessionKey: text(),
    sessionId: text(),
    messageId: text(),
    role: text(),
    timestamp: number(),
    excerpt: text("The text around the words; credentials are redacted."),
  },
  { earlier: about(oneOf(true), "The message is from before a reset.") },
);

/** The later announcement or answer. */
const DELIVERY = about(
  object({ status: oneOf("pending", "skipped"), mode: oneOf("announce", "inbox") }),
  "The later announcement or answer.",
);

/** An accepted send. */
const SENT = {
  runId: text(),
  sessionKey: text(),
  messageId: text("For `session_status`; the same as `runId`."),
  receipt: about(declared<ReceiptState>("ReceiptState"), "The state that the message had reached."),
};

const SEND_RESULT = either(
  object(
    { ...SENT, status: about(oneOf("accepted"), "The message is stored and will run."), delivery: DELIVERY },
    { note: text("The message was the answer that its sender waits for.") },
  ),
  object({ ...SENT, status: done, reply: text("The reply of the other session."), delivery: DELIVERY }),
  object({
    ...SENT,
    status: about(oneOf("timeout"), "The wait ended; the run continues."),
    error: text(),
    state: oneOf("queued", "running"),
    queuedBehind: number("The number of runs before it in the lane."),
    delivery: DELIVERY,
  }),
  object({
    ...SENT,
    status: about(oneOf("error"), "The other run failed."),
    code: declared<Code>("Code"),
    error: text(),
  }),
);

const RUN_STATUS = object(
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
    queuedBehind: number("The number of runs before it in the lane."),
    startedAt: number(),
    endedAt: number(),
    model: text(),
    reply: text("Its final text."),
    code: declared<Code>("Code"),
    error: text(),
    crashes: number("The number of crashes during the run."),
    takenBy: text("The run that took this one's message between two of its steps."),
  },
);

const SESSION_STATUS = object(
  {
    sessionKey: text(),
    sessionId: text(),
    agentId: text(),
    kind: oneOf(...SESSION_KINDS),
    ...WORK,
    runs: list(
      object({ runId: text(), state: declared<RunState>("RunState"), acceptedAt: number() }),
      "The first unfinished runs; `queuedRuns` counts all.",
    ),
    model: text(),
    thinkingLevel: text(),
    ...CONTEXT,
    usage: object(tokens),
    cost: number(),
    openFlows: list(
      object({ flowId: text(), from: text(), to: text(), turnsMax: number(), createdAt: number() }),
      "Open conversations; an invisible party is not named.",
    ),
    updatedAt: number(),
    abortedLastRun: flag(),
  },
  { boundTo: list(route, "Places on channels that are bound to the session.") },
);

const MESSAGE_STATUS = object(
  {
    messageId: text(),
    state: declared<ReceiptState>("ReceiptState"),
    times: about(declared<Receipt["times"]>('Receipt["times"]'), "ms since 1970, by reached state."),
    from: text(),
    to: text(),
  },
  { code: text("The code of the run's end, if `declined`, `expired` or `failed`.") },
);

const AWAITED = { sessionKey: text() };
const FINISHED_CHILD = object(
  { ...AWAITED, status: declared<AnnouncedStatus>("AnnouncedStatus"), result: text("The last reply.") },
  { label: text(), notes: text("Facts beside the result, like the error of a failed run.") },
);
const WAITED = {
  results: list(FINISHED_CHILD, "Finished jobs."),
  unfinished: list(object(AWAITED, { label: text() }), "Sub-agents that continue."),
};

const CHILDREN = object({
  count: number(),
  subagents: list(
    object(
      {
        sessionKey: text(),
        agentId: text(),
        state: declared<SessionState>("SessionState"),
        finished: flag("Its result was announced, or it was cancelled."),
        task: text("The beginning of its task."),
        totalTokens: number(),
      },
      {
        label: text(),
        ended: text("The reason for the end of its job: announced, silent, cancelled."),
        runId: text(),
        runState: about(declared<RunState>("RunState"), "The state of its first run."),
        acceptedAt: number(),
      },
    ),
    "Newest first.",
  ),
  more: flag("There are more sub-agents."),
});

/** Returns the description of `sessions_spawn`; `results` says who gets the result. */
export function spawnDescription(results: string): string {
  return (
    "Start a sub-agent on a separate task and continue at once. Start several in one message to run them " +
    `in parallel. ${results}`
  );
}

export const SESSION_TOOLS = {
  sessions_list: {
    description:
      "List the sessions that you can see, newest first, with the state of each. " +
      "Use the `key` of a row as sessionKey in sessions_history and sessions_send.",
    params: openObject(
      {},
      {
        kinds: list(word(SESSION_KINDS), "Only these kinds. Default: all."),
        limit: number(`Maximum number of rows. Default ${LIST_LIMIT.fallback}, at most ${LIST_LIMIT.max}.`),
        activeMinutes: number("Only sessions updated in the last N minutes."),
        messageLimit: number(
          "Adds the last N messages of each session, without tool results. " +
            `Default ${LIST_MESSAGE_LIMIT.fallback}, at most ${LIST_MESSAGE_LIMIT.max}.`,
        ),
        search: text("Part of a label, a name or a key."),
        agentId: text("Only sessions of this agent."),
        cursor: text("`nextCursor` of the previous page."),
      },
    ),
    result: object(
      {
        count: number(),
        sessions: list(LISTED_SESSION),
        visibility: about(
          declared<VisibilityMode>("VisibilityMode"),
          "The effect of `tools.sessions.visibility` for this session.",
        ),
      },
      { nextCursor: text(), messagesTruncated: about(oneOf(true), "Some messages were cut or left out.") },
    ),
    errors: [],
    who: NESTED,
    ...REPEATABLE,
  },
  sessions_history: {
    description:
      "Read the transcript of a session that you can see, oldest message first. " +
      "For earlier messages, call again with `before` set to the `nextBefore` of the result.",
    params: openObject(
      { sessionKey: text("Key or session id, from sessions_list.") },
      {
        limit: number(
          `Maximum number of messages. Default ${HISTORY_LIMIT.fallback}, at most ${HISTORY_LIMIT.max}.`,
        ),
        includeTools: flag("Include tool results. Default false."),
        before: text("A message id: returns the page before it."),
      },
    ),
    result: object(
      {
        sessionKey: text(),
        sessionId: text(),
        messages: list(
          declared<Message>("Message"),
          "Oldest first; credentials are redacted, texts cut at `tools.history.maxTextChars`.",
        ),
        truncated: flag("A text was shortened or a message left out."),
        droppedMessages: number("The number of messages that did not fit."),
        bytes: number("The size of the messages as JSON."),
      },
      { nextBefore: text("For `before`: the previous page.") },
    ),
    errors: [...NAMES_SESSION, "message_not_found"],
    who: NESTED,
    ...REPEATABLE,
  },
  sessions_send: {
    description:
      "Send a message to another session and, unless timeoutSeconds is 0, wait for its reply. " +
      "`timeout` means only that waiting ended: the other session continues to work, so don't send again; " +
      "read sessions_history later. A message to an outside program (a key with `:mcp:`) goes to its " +
      "inbox. The reply is what that program sends back; after a `timeout` it reaches you as a new message.",
    params: openObject(
      { message: text("The message. At most 256 KB.") },
      {
        sessionKey: text("Key or session id, from sessions_list."),
        label: text("Instead of sessionKey: the session's label."),
        agentId: text("With label: the agent of the session. Default: your own agent, else any agent."),
        timeoutSeconds: number(
          `Seconds to wait for the reply. Default ${SEND_WAIT_SECONDS}, ` +
            `at most ${WAIT_MAX_SECONDS}; 0: don't wait.`,
        ),
      },
    ),
    result: SEND_RESULT,
    errors: [
      ...NAMES_SESSION,
      ...STARTS_RUN,
      "label_ambiguous",
      "too_large",
      "send_denied",
      "wait_cycle",
      "open_flow",
      "run_failed",
      "run_timeout",
      "session_reset",
      "session_deleted",
      "budget_used",
    ],
    who: OF_SESSIONS,
    ...REPEATABLE,
  },
  sessions_spawn: {
    description: spawnDescription(
      resultDescription({ external: false, isSubagent: false }, { announce: "post", mayWait: true }),
    ),
    params: openObject(
      { task: text("The complete task: the sub-agent knows nothing else of this conversation.") },
      {
        label: text("A short name for the sub-agent."),
        agentId: text("The agent to run as: see agents_list. Default: your own agent."),
        model: text("<provider>/<model>. Default: the configured model of sub-agents."),
        thinking: choice(THINKING_LEVELS, "Thinking level of its model. Default: its agent's level."),
        runTimeoutSeconds: number("Stops it this many seconds after its start. 0: never."),
        thread: flag("Gives it a thread of your channel, where people can continue with it."),
        mode: choice(["run", "session"], "One task with one result, or a session, which needs thread: true."),
        cleanup: choice(
          ["keep", "delete"],
          "Keeps or deletes its session after the announcement. Default: keep.",
        ),
        sandbox: choice(
          ["inherit", "require"],
          "require: the call is refused unless the sub-agent runs sandboxed. Default: inherit.",
        ),
        announce: choice(["post", "wake"], "Posts the result, or wakes you. Default: see the description."),
        attachments: list(
          openObject(
            { name: text("A plain file name."), content: text("The file, as text or base64.") },
            {
              encoding: choice(["utf8", "base64"], "Encoding of the content. Default: utf8."),
              mimeType: text("Stored with the file."),
            },
          ),
          "Files for its workspace.",
        ),
        attachAs: about(
          openObject({}, { mountPath: text("Preferred folder for the files; a hint.") }),
          "A hint, stored with the files.",
        ),
      },
    ),
    // An older name of runTimeoutSeconds, and the expected runtime.
    accepts: openObject({}, { timeoutSeconds: number(), runtime: word(["subagent", "acp"]) }),
    result: object(
      { status: oneOf("accepted"), runId: text(), childSessionKey: text("The session of the sub-agent.") },
      {
        model: text("The model that it starts with."),
        note: text("Session that gets the result. Absent: the child was deleted after its job."),
        withheldTools: list(text(), "Tools that its own rules allow, and yours do not."),
        thread: about(route, "With `thread: true`: its place."),
        attachments: about(declared<AttachmentReceipt>("AttachmentReceipt"), "The stored files."),
      },
    ),
    errors: [
      ...STARTS_RUN,
      "spawn_denied",
      "too_many_children",
      "agent_not_found",
      "invalid_model",
      "invalid_thinking",
      "too_large",
      "path_outside",
      "file_problem",
      "channel_failed",
      "session_not_found",
      "shutting_down",
    ],
    who: "Every session; sub-agents only as deep as `agents.defaults.subagents.maxSpawnDepth` lets them.",
    ...REPEATABLE,
  },
  agents_list: {
    description: "List the agents that you may name as agentId when you start a session of another agent.",
    params: openObject({}),
    result: object({
      requester: text("The agent of the calling session."),
      allowAny: flag("Any configured agent may be named."),
      agents: list(
        object(
          {
            id: text(),
            model: text(),
            runtime: text("`builtin` or `acp`."),
            sandboxed: flag("Its sub-agents run contained."),
            self: flag("True for the agent of the calling session."),
          },
          { name: text() },
        ),
      ),
    }),
    errors: [],
    who: NESTED,
    ...REPEATABLE,
  },
  session_status: {
    description:
      "Get the status of a session: state, model, usage and cost, waiting messages, open conversations. " +
      "Default: your own session. With runId: the state or outcome of one run. With messageId: how far a " +
      "message that you sent or got has come: queued, offered, in_turn (its reader has it in context), " +
      "answered, declined, expired, failed.",
    params: openObject(
      {},
      {
        sessionKey: text("Key or session id. Default: your own session."),
        runId: text("Instead of sessionKey: a run id, as returned by sessions_send."),
        messageId: text("Instead of sessionKey: a message id, as returned by sessions_send."),
      },
    ),
    result: either(SESSION_STATUS, RUN_STATUS, MESSAGE_STATUS),
    errors: [...NAMES_SESSION, "run_not_found", "message_not_found"],
    who: OF_SESSIONS,
    ...REPEATABLE,
  },
  sessions_search: {
    description:
      "Find messages by their words in the transcripts of the sessions that you can see. " +
      "Returns excerpts with message ids; use sessions_history to read the messages around one. " +
      "A hit with `earlier` is from before a reset: only its excerpt can be read.",
    params: openObject(
      { query: text("Words that the message contains.") },
      {
        sessionKey: text("Only this session."),
        agentId: text("Only sessions of this agent."),
        limit: number(
          `Maximum number of hits. Default ${SEARCH_LIMIT.fallback}, at most ${SEARCH_LIMIT.max}.`,
        ),
        cursor: text("`nextCursor` of the previous page."),
      },
    ),
    result: object({ count: number(), hits: list(SEARCH_HIT, "Newest first.") }, { nextCursor: text() }),
    errors: NAMES_SESSION,
    who: OF_SESSIONS,
    ...REPEATABLE,
  },
  subagents: {
    description:
      "Manage the sub-agents that you started. list: the state of each. wait: returns their results when " +
      "all (or with any: true the first) have finished; use it instead of polling. cancel: stops one of " +
      "them, or all. `timeout` means only that waiting ended: they continue.",
    params: openObject(
      {},
      {
        action: choice(["list", "wait", "cancel"], "Default: list."),
        sessionKey: text('With cancel: the childSessionKey, or "all" for every unfinished one.'),
        sessionKeys: list(text(), "With wait: the childSessionKeys. Default: all unfinished ones."),
        any: flag("With wait: return when the first one has finished."),
        timeoutSeconds: number(
          `With wait: maximum seconds. Default ${CHILDREN_WAIT_SECONDS}, at most ${WAIT_MAX_SECONDS}; ` +
            "0: don't wait.",
        ),
      },
    ),
    result: either(
      CHILDREN,
      object({ status: done, ...WAITED }, { note: text("There are no unfinished sub-agents.") }),
      object({ status: oneOf("timeout"), error: text(), ...WAITED }),
      object({
        status: done,
        cancelled: list(text(), "Keys of the sub-agents that were at work. Nothing is announced."),
        runIds: list(text()),
      }),
    ),
    errors: ["not_visible"],
    who: NESTED,
    ...REPEATABLE,
  },
  sessions_inbox: {
    description:
      "Read what other sessions wrote to you, oldest first: messages, results of your sub-agents, and how " +
      "a message of yours came out after you stopped waiting. " +
      "Without `after` and `before`: the newest ones. " +
      "To hear only what is new, give `after` the `nextAfter` of the answer before. " +
      "`more` says that something newer is left. With `waitSeconds` the call returns as soon as there is " +
      "something new: after `after`, else a message that you have not acknowledged. " +
      "Give `ack` the ids of the messages that you have read: their senders learn it. " +
      "For older messages, give `before` the `nextBefore` of an answer. " +
      "Answer with sessions_send to the `replyTo` of a message.",
    params: openObject(
      {},
      {
        limit: number(`Most messages. Default ${INBOX_LIMIT.fallback}, at most ${INBOX_LIMIT.max}.`),
        after: text("A message id: only what came after it."),
        before: text("A message id: only what came before it."),
        waitSeconds: number(`Seconds to wait for something new. Default 0, at most ${INBOX_WAIT_SECONDS}.`),
        ack: list(
          text(),
          `Ids of messages that you have read, at most ${INBOX_ACK_MAX}. Repeating one does no harm.`,
        ),
      },
    ),
    result: object(
      {
        sessionKey: text(),
        count: number(),
        messages: list(
          object(
            {
              id: text(),
              at: number("ms since 1970."),
              kind: text("`person`, or the kind of its provenance."),
              text: text(),
            },
            {
              from: text("Key of the session that wrote it."),
              replyTo: text("Where an answer goes. Absent: nobody expects one."),
              acknowledged: about(oneOf(true), "You have acknowledged it."),
              runId: text("The run of the client's own message that a notice is about."),
            },
          ),
          "Oldest first.",
        ),
        more: flag("There are newer messages."),
      },
      {
        nextAfter: text("For `after`: the next page."),
        nextBefore: text("For `before`: the previous page."),
      },
    ),
    errors: ["message_not_found"],
    who: "MCP clients only.",
    ...REPEATABLE,
  },
} as const satisfies Record<string, ToolEntry>;
