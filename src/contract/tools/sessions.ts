// Defines the tools for sessions: finding, reading, writing to and starting them.

import type { AnnouncedStatus } from "../../core/rules/announcement.ts";
import { resultDescription } from "../../core/rules/result-delivery.ts";
import type { Code } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Route } from "../../core/shapes/route.ts";
import { type ReceiptState, type RunState, SEND_ANNOUNCE } from "../../core/shapes/run.ts";
import { SESSION_KINDS, type SessionState } from "../../core/shapes/session.ts";
import { THINKING_LEVELS, type VisibilityMode } from "../../core/shapes/settings/settings.ts";
import { ANNOUNCE_WAYS, type AttachmentReceipt } from "../../core/shapes/spawn.ts";
import { NAMES_SESSION as NAMED } from "../methods/parts.ts";
import { LEFT_BEHIND, ROW, ROW_OPTIONS, SEARCH_HIT, SEARCH_LIMIT, WORK } from "../methods/sessions.ts";
import {
  about,
  anyObject,
  declared,
  either,
  flag,
  list,
  number,
  object,
  oneOf,
  openObject,
  text,
} from "../schema.ts";
import { choice, done, OF_SESSIONS, REPEATABLE, type ToolEntry, word } from "./parts.ts";
import { MESSAGE_STATUS, RUN_STATUS, SESSION_STATUS } from "./session-status.ts";

/**
 * Limits of an argument that is a number of rows. An absent one becomes `fallback`, a larger one becomes
 * `max`.
 */
export const LIST_LIMIT = { fallback: 50, min: 1, max: 200 };
export const LIST_MESSAGE_LIMIT = { fallback: 0, min: 0, max: 20 };
export const HISTORY_LIMIT = { fallback: 50, min: 1, max: 1_000 };
export const INBOX_LIMIT = { fallback: 20, min: 0, max: 200 };
/** Maximum wait of `sessions_inbox`, in seconds. */
export const INBOX_WAIT_SECONDS = 300;
export const INBOX_ACK_MAX = 200;
export const WAIT_MAX_SECONDS = 3_600;
export const SEND_WAIT_SECONDS = 30;
export const CHILDREN_WAIT_SECONDS = 300;

/** Error codes of tools that take a session. */
const NAMES_SESSION = [...NAMED, "agent_to_agent"] as const satisfies readonly Code[];
/** Error codes of tools that start a run. */
const STARTS_RUN = ["chain_limit", "queue_full", "session_archived", "run_aborted"] as const;
const NESTED =
  "Every session. Sub-agents need a depth at which they may spawn (`maxSpawnDepth`), or an entry in " +
  "`tools.subagents.tools.allow`.";

const route = declared<Route>("Route");
const LISTED_SESSION = object(
  { ...ROW, kind: oneOf(...SESSION_KINDS), ...WORK },
  {
    ...ROW_OPTIONS,
    transcriptPath: text("Path of the JSONL copy of the transcript."),
    messages: list(declared<Message>("Message"), "With `messageLimit`: the last messages."),
  },
);

/** The announcement or answer that follows later. */
const DELIVERY = about(
  object({ status: oneOf("pending", "skipped"), mode: oneOf("announce", "inbox") }),
  "The announcement or answer that follows later.",
);

/** Fields of an accepted send. */
const SENT = {
  runId: text(),
  sessionKey: text(),
  messageId: text("Argument for `session_status`. Same as `runId`."),
  receipt: about(declared<ReceiptState>("ReceiptState"), "State of the message."),
};
const NOTED = { note: text("Explains the result. For example, the reply was cut at the output limit.") };

const SEND_RESULT = either(
  object(
    { ...SENT, status: about(oneOf("accepted"), "The message is stored and will run."), delivery: DELIVERY },
    NOTED,
  ),
  object({ ...SENT, status: done, reply: text("Reply of the other session."), delivery: DELIVERY }, NOTED),
  object(
    {
      ...SENT,
      status: about(oneOf("timeout"), "The wait ended, but the run continues."),
      error: text(),
      state: oneOf("queued", "running"),
      queuedBehind: number("Number of runs that the session executes before this one."),
      delivery: DELIVERY,
    },
    NOTED,
  ),
  object(
    {
      ...SENT,
      status: about(oneOf("error"), "The other run failed."),
      code: declared<Code>("Code"),
      error: text(),
    },
    { reply: text("Text that the other session had written until then.") },
  ),
);

const AWAITED = { sessionKey: text() };
const FINISHED_CHILD = object(
  { ...AWAITED, status: declared<AnnouncedStatus>("AnnouncedStatus"), result: text("The last reply.") },
  { label: text(), notes: text("Facts in addition to the result, like the error of a failed run.") },
);
const WAITED = {
  results: list(FINISHED_CHILD, "Results of the finished sub-agents."),
  unfinished: list(object(AWAITED, { label: text() }), "Sub-agents that have not finished."),
};

const CHILDREN = object({
  count: number(),
  subagents: list(
    object(
      {
        sessionKey: text(),
        agentId: text(),
        state: declared<SessionState>("SessionState"),
        finished: flag("True if the result was announced or the sub-agent was cancelled."),
        task: text("Beginning of the task."),
        totalTokens: number(),
      },
      {
        label: text(),
        ended: text("How the job ended: announced, silent, cancelled."),
        runId: text(),
        runState: about(declared<RunState>("RunState"), "State of the sub-agent's first run."),
        acceptedAt: number(),
      },
    ),
    "Newest first.",
  ),
  more: flag("True if there are more sub-agents."),
});

/** Returns the description of `sessions_spawn`. `results` describes how the result arrives. */
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
        kinds: list(word(SESSION_KINDS), "Return only these kinds of sessions. Default: all kinds."),
        limit: number(`Maximum number of rows. Default ${LIST_LIMIT.fallback}, at most ${LIST_LIMIT.max}.`),
        activeMinutes: number("Return only sessions updated in the last N minutes."),
        messageLimit: number(
          "Add the last N messages of each session, without tool results. " +
            `Default ${LIST_MESSAGE_LIMIT.fallback}, at most ${LIST_MESSAGE_LIMIT.max}.`,
        ),
        search: text("Return only sessions with this text in the label, name, key or first words."),
        agentId: text("Return only sessions of this agent."),
        cursor: text("`nextCursor` of the previous page."),
      },
    ),
    result: object(
      {
        count: number(),
        sessions: list(LISTED_SESSION),
        visibility: about(
          declared<VisibilityMode>("VisibilityMode"),
          "Effective value of `tools.sessions.visibility` for this session.",
        ),
      },
      {
        nextCursor: text(),
        filtered: about(
          object({
            reasons: list(
              oneOf("visibility", "arguments", "limit"),
              "`visibility`: settings, whether or not they hide one. `limit`: there is a next page.",
            ),
            hint: text("Names the settings and arguments."),
          }),
          "Present if settings, arguments or the page size may keep sessions out of the list.",
        ),
        messagesTruncated: about(oneOf(true), "Present if messages were cut or left out."),
      },
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
        before: text("Id of a message: return the page before it."),
      },
    ),
    result: object(
      {
        sessionKey: text(),
        sessionId: text(),
        messages: list(
          declared<Message>("Message"),
          "Oldest first. Credentials are redacted, and texts are cut at `tools.history.maxTextChars`.",
        ),
        truncated: flag("True if a text was cut or a message left out."),
        droppedMessages: number("Number of messages that did not fit."),
        bytes: number("Size of the messages as JSON."),
      },
      { nextBefore: text("Argument `before` for the previous page.") },
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
        label: text("Instead of sessionKey: label of the session."),
        agentId: text("With label: agent of the session. Default: your own agent, then any other."),
        timeoutSeconds: number(
          `Seconds to wait for the reply. Default ${SEND_WAIT_SECONDS}, ` +
            `at most ${WAIT_MAX_SECONDS}; 0: don't wait.`,
        ),
        runTimeoutSeconds: number(
          "Stop the other session's run on this message these seconds after its start. 0: never.",
        ),
        announce: choice(
          SEND_ANNOUNCE,
          "End of the conversation. `none`: the other session does not inform its people. `parent`: " +
            "likewise, and its last reply comes to you. `channel`: its reply goes only to its people, " +
            "unless you wait.",
        ),
        notify: choice(
          ["idle"],
          "Don't wait: get one message when the other session has finished all its work, " +
            "however long it takes.",
        ),
        inReplyTo: text("MCP clients only: id of the inbox message that you answer. Set it in each answer."),
      },
    ),
    result: SEND_RESULT,
    errors: [
      ...NAMES_SESSION,
      ...STARTS_RUN,
      "label_ambiguous",
      "message_not_found",
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
      { task: text("The complete task. The sub-agent knows nothing else about this conversation.") },
      {
        label: text("A short name for the sub-agent."),
        agentId: text("Agent of the sub-agent, from agents_list. Default: your own agent."),
        model: text("<provider>/<model>. Default: the configured model of sub-agents."),
        thinking: choice(THINKING_LEVELS, "Thinking level of the model. Default: the agent's level."),
        runTimeoutSeconds: number("Stop the sub-agent this many seconds after its start. 0: never."),
        thread: flag("Create a thread on your channel, where people can talk to the sub-agent."),
        mode: choice(
          ["run", "session"],
          "`run`: one task with one result. `session`: stays open, and needs `thread: true`.",
        ),
        cleanup: choice(
          ["keep", "delete"],
          "Keep or delete the sub-agent's session after the announcement. Default: keep.",
        ),
        sandbox: choice(
          ["inherit", "require"],
          "`require`: refuse the call unless the sub-agent runs in a sandbox. Default: inherit.",
        ),
        announce: choice(
          ANNOUNCE_WAYS,
          "`post` the result to people and append it to your transcript, or `wake` you with it. " +
            "`parent`: only append it. `channel`: only post it. `none`: neither. Default: see the tool.",
        ),
        attachments: list(
          openObject(
            {
              name: text("File name, without a folder."),
              content: text("Content of the file, as text or base64."),
            },
            {
              encoding: choice(["utf8", "base64"], "Encoding of the content. Default: utf8."),
              mimeType: text("MIME type, stored with the file."),
            },
          ),
          "Files for the workspace of the sub-agent.",
        ),
      },
    ),
    // An older name of runTimeoutSeconds, and fields that other programs send.
    accepts: openObject(
      {},
      { timeoutSeconds: number(), runtime: word(["subagent", "acp"]), attachAs: anyObject },
    ),
    result: object(
      { status: oneOf("accepted"), runId: text(), childSessionKey: text("The session of the sub-agent.") },
      {
        model: text("Model of the sub-agent at its start."),
        note: text("Explains how the result arrives."),
        withheldTools: list(text(), "Tools that are withheld because you do not have them."),
        thread: about(route, "With `thread: true`: route of the thread."),
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
    who: "Every session. Sub-agents only up to the depth in `agents.defaults.subagents.maxSpawnDepth`.",
    ...REPEATABLE,
  },
  agents_list: {
    description: "List the agents that you may name as agentId when you start a session of another agent.",
    params: openObject({}),
    result: object({
      requester: text("The agent of the calling session."),
      allowAny: flag("True if you may name any configured agent."),
      agents: list(
        object(
          {
            id: text(),
            model: text(),
            runtime: text("`builtin` or `acp`."),
            sandboxed: flag("True if sub-agents of this agent run in a sandbox."),
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
      "Default: your own session. With `runId`: the state or outcome of one run. With `messageId`: the " +
      "state of a message that you sent or got: queued, offered, in_turn (its reader has it in context), " +
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
        sessionKey: text("Search only this session."),
        agentId: text("Search only sessions of this agent."),
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
      "Manage the sub-agents that you started. `list`: the state of each. `wait`: returns their results " +
      "when all (or, with `any: true`, the first) have finished; use it instead of polling. `cancel`: " +
      "stops one of them, or all. `timeout` means only that waiting ended: they continue.",
    params: openObject(
      {},
      {
        action: choice(["list", "wait", "cancel"], "Default: list."),
        sessionKey: text('With `cancel`: the childSessionKey, or "all" for every unfinished one.'),
        sessionKeys: list(text(), "With `wait`: the childSessionKeys. Default: all unfinished ones."),
        any: flag("With `wait`: return when the first one has finished."),
        timeoutSeconds: number(
          `With \`wait\`: maximum seconds. Default ${CHILDREN_WAIT_SECONDS}, at most ${WAIT_MAX_SECONDS}; ` +
            "0: don't wait.",
        ),
      },
    ),
    result: either(
      CHILDREN,
      object({ status: done, ...WAITED }, { note: text("Says that no sub-agent is still working.") }),
      object({ status: oneOf("timeout"), error: text(), ...WAITED }),
      object({
        status: done,
        cancelled: list(text(), "Keys of the cancelled sub-agents. Their results are not announced."),
        runIds: list(text()),
      }),
    ),
    errors: ["not_visible", "run_aborted"],
    who: NESTED,
    ...REPEATABLE,
  },
  sessions_inbox: {
    description:
      "Read what other sessions wrote to you, oldest first: messages, results of your sub-agents, and the " +
      "outcome of your messages whose answer you stopped waiting for. " +
      "Without `after` and `before`: the newest ones. " +
      "For only the new ones, set `after` to the `nextAfter` of the previous answer. " +
      "`more` is true if there are newer ones. With `waitSeconds` the call returns as soon as there is " +
      "something new: anything later than `after` or, without `after`, a message that you have not " +
      "acknowledged. Set `ack` to the ids of the messages that you have read; their senders are told. " +
      "For older messages, set `before` to the `nextBefore` of an answer. " +
      "Answer with sessions_send to the `replyTo` of a message, with its `id` as inReplyTo.",
    params: openObject(
      {},
      {
        limit: number(
          `Maximum number of messages. Default ${INBOX_LIMIT.fallback}, at most ${INBOX_LIMIT.max}. ` +
            "0: only count the messages that nobody has received yet.",
        ),
        after: text("Id of a message: return only later ones."),
        before: text("Id of a message: return only earlier ones."),
        waitSeconds: number(`Seconds to wait for something new. Default 0, at most ${INBOX_WAIT_SECONDS}.`),
        ack: list(
          text(),
          `Ids of messages that you have read, at most ${INBOX_ACK_MAX}. An id may be repeated.`,
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
              at: number("Time of the message, in ms since 1970."),
              kind: text("`person`, or the kind of the message's provenance."),
              text: text(),
            },
            {
              from: text("Key of the session that wrote the message."),
              replyTo: text(
                "Session key for an answer. Absent if none is expected, or if you may not send there.",
              ),
              acknowledged: about(oneOf(true), "Present if you have acknowledged the message."),
              awaitsAnswer: about(oneOf(true), "Present until the message is answered or expires."),
              runId: text("In a notice about one of your own messages: the run of that message."),
            },
          ),
          "Oldest first.",
        ),
        more: flag("True if there are newer messages."),
      },
      {
        nextAfter: text(
          "Argument `after` for the next page. With `limit: 0`: the newest message, if no new message waits.",
        ),
        nextBefore: text("Argument `before` for the previous page."),
      },
    ),
    errors: ["message_not_found"],
    who: "MCP clients only.",
    ...REPEATABLE,
  },
  sessions_fork: {
    description:
      "Make a session of its own that continues a conversation after one of its messages. It shares the " +
      "messages up to there, and has the rights of its origin, which stays as it is. " +
      "sessions_history shows the ids of messages. Write to the fork with sessions_send.",
    params: openObject(
      {
        sessionKey: text("Session to fork."),
        at: text("Id of the last message to share. A message with tool calls is shared with their results."),
      },
      { label: text("Label of the fork: one line, at most 200 characters.") },
    ),
    result: object({
      status: done,
      sessionKey: text("Key of the fork."),
      sessionId: text(),
      at: text("Id of the last shared message."),
      leftBehind: LEFT_BEHIND,
    }),
    errors: [...NAMED, "message_not_found", "session_archived"],
    who: "MCP clients of an operator only.",
    parallel: true,
    idempotent: false,
  },
} as const satisfies Record<string, ToolEntry>;
