// Defines the methods for talking to an agent: chat, agent runs, and texts to people.

import type { Labels } from "../../core/shapes/labels.ts";
import type { Message, Provenance } from "../../core/shapes/message.ts";
import type { RunRow, RunState } from "../../core/shapes/run.ts";
import {
  about,
  anyObject,
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
import {
  ASKS_RUN,
  count,
  idempotencyKey,
  MESSAGE_MAX_CHARS,
  type MethodSpec,
  message,
  NAMES_SESSION,
  name,
  OF_RUNS,
  READ,
  sessionKey,
  threadId,
  WRITE,
} from "./parts.ts";
import { LISTED_ROW } from "./sessions.ts";

const ATTACHMENTS_MAX = 16;
const HISTORY_LIMIT_MAX = 1000;

const attachments = list(
  anyObject,
  "Pictures as `{mimeType, content}`, with the content in base64, at most 10 MiB each.",
  { maxItems: ATTACHMENTS_MAX },
);
const thinking = about(
  name,
  "Thinking level: off, minimal, low, medium, high, xhigh or max. Default: the session's level.",
);
const runId = about(
  { ...idempotencyKey },
  "Id of the run, chosen by the caller. Repeating the request with the same id returns the same run.",
);
const words = text(undefined, { maxLength: MESSAGE_MAX_CHARS });

const CHAT_SEND = object(
  {
    sessionKey,
    message: about(
      words,
      "The message. A command such as `/status` is executed. May be empty if there are pictures.",
    ),
    idempotencyKey: runId,
  },
  {
    thinking,
    attachments,
    timeoutMs: about(count(0), "Stops the run this many ms after its start. 0: never. At most 7 days."),
    steer: flag(
      "Whether the current run reads the message between two steps, if it answers this client. Otherwise, " +
        "and by default, it is the next run.",
    ),
  },
);

const AGENT = object(
  { message: about(message, "The message to the agent."), idempotencyKey: runId },
  {
    sessionKey: about(name, "The session. Default: the main session of `agentId`, or of the default agent."),
    agentId: about(name, "Agent of the session. If `sessionKey` is given, it must belong to this agent."),
    sessionId: about(name, "Instead of `sessionKey`: id of the session's transcript."),
    to: about(name, "With `deliver`: the chat. Default: the chat of the session's last route."),
    channel: about(
      name,
      "With `deliver`: the channel. `last` (the default): the channel of the session's last route.",
    ),
    accountId: about(name, "With `deliver`: account of the channel. Default: the first one."),
    threadId: about(threadId, "With `deliver`: thread or topic of the chat."),
    deliver: flag("Whether to deliver the answer to people, in addition to the transcript. Default false."),
    thinking,
    timeout: about(count(0), "Stops the run this many seconds after its start. 0: never. At most 7 days."),
    extraSystemPrompt: about(words, "Text to add to the model's system prompt, in this run only."),
    label: about(name, "Instead of `sessionKey`: label of the session."),
    attachments,
  },
);

const SEND = object(
  {
    to: about(name, "The platform's id of the chat. For webchat and `last`: a session."),
    message: about(message, "The text, in Markdown."),
    idempotencyKey,
  },
  {
    channel: about(name, "`webchat` (the default), `last` or a configured channel."),
    accountId: about(name, "Account of the channel. Default: the first one."),
    threadId: about(threadId, "Thread or topic of the chat."),
    sessionKey: about(name, "The session that records the text. Default: the session of that chat."),
  },
);

const HISTORY = object(
  { sessionKey },
  {
    limit: integer("Maximum number of messages. Default 200.", { minimum: 1, maximum: HISTORY_LIMIT_MAX }),
    before: about(
      name,
      "Id of a message: returns the page before it. Give at most one of `before`, `after` and `around`.",
    ),
    after: about(name, "Id of a message: returns the page after it."),
    around: about(name, "Id of a message: returns the page with the message near the middle."),
    sessionId: about(
      name,
      "Id of an earlier conversation, from `sessions.earlier`. Default: the current conversation.",
    ),
    includeRuns: flag(
      "Adds the runs of the messages. On the newest page, also adds the current state of the session.",
    ),
  },
);

const QUEUED_RUN = named(
  "QueuedRun",
  "A message that waits for its run.",
  object(
    { runId: text() },
    {
      text: text("Text of the message, or the beginning of a long text."),
      provenance: declared<Provenance>("Provenance"),
      senderName: text(),
      steer: flag("Whether the current run reads it before its next step."),
    },
  ),
);
export type QueuedRun = Of<typeof QUEUED_RUN>;

const HISTORY_NOW = named(
  "HistoryNow",
  "The current state of the session, added to the newest page of its transcript.",
  object({
    session: LISTED_ROW,
    queue: list(QUEUED_RUN, "The first pending runs, in order; `session.queuedRuns` is their total."),
  }),
);
export type HistoryNow = Of<typeof HISTORY_NOW>;

const HISTORY_PAGE = named(
  "HistoryPage",
  "A page of a transcript.",
  object(
    {
      sessionKey: text(),
      messages: list(
        declared<Message & { readonly runId?: string }>("Message & { runId?: string }"),
        "Messages, oldest first. With `includeRuns`, each has the id of its run, if it has one.",
      ),
      thinkingLevel: text(),
    },
    {
      sessionId: text("Id of the conversation. Absent if the session has no messages yet."),
      instructions: text("Instructions for the model in this session. Absent if it has none."),
      nextBefore: text(
        "Argument `before` for the previous page. Absent on the first page of the transcript.",
      ),
      nextAfter: text("Argument `after` for the next page. Absent on the newest page."),
      runs: about(
        mapOf(declared<RunRow>("RunRow")),
        "With `includeRuns`: runs of these messages. The newest page also has the unfinished runs.",
      ),
      compactions: about(
        mapOf(number()),
        "With `includeRuns`: times of summaries of older messages, by the id of the first kept message.",
      ),
      labels: about(
        mapOf(declared<Labels>("Labels")),
        "With `includeRuns`: labels that messages and results of tools brought into the session, by message.",
      ),
      now: about(
        HISTORY_NOW,
        "The current state of the session. Present on the newest page, with `includeRuns`.",
      ),
    },
  ),
);
export type HistoryPage = Of<typeof HISTORY_PAGE>;

const WAIT_ANSWER = named(
  "WaitAnswer",
  "The state of a run, and its failure if it failed.",
  object(
    {
      runId: text(),
      status: about(oneOf("ok", "error", "timeout"), "`timeout`: the wait ended, but the run continues."),
      runStatus: declared<RunState>("RunState"),
    },
    { startedAt: number(), endedAt: number(), error: text(), code: text() },
  ),
);
export type WaitAnswer = Of<typeof WAIT_ANSWER>;

const IMAGE = object(
  {
    sessionKey,
    messageId: about(name, "Id of the message."),
    index: integer("Position of the picture in the message's content, from 0.", { minimum: 0 }),
  },
  {
    sessionId: HISTORY.properties.sessionId,
    offset: integer("Where to continue: `nextOffset` of the previous part.", { minimum: 0 }),
  },
);

const FILE = object(
  { sessionKey, fileId: about(name, "Id of the file, from the result of `send_file`.") },
  { sessionId: IMAGE.properties.sessionId, offset: IMAGE.properties.offset },
);

export const TALK_METHODS = {
  "chat.history": {
    scope: READ,
    summary: "Returns a page of a transcript, at most 4 MiB. Credentials are redacted.",
    params: HISTORY,
    result: HISTORY_PAGE,
    ignored: ["maxChars"],
    errors: [...NAMES_SESSION, "message_not_found"],
  },
  "chat.startup": {
    scope: READ,
    summary: "Returns the same as `chat.history`, for clients of version 4.",
    params: HISTORY,
    result: HISTORY_PAGE,
    errors: [...NAMES_SESSION, "message_not_found"],
  },
  "chat.image": {
    scope: READ,
    summary:
      "Reads a picture of a message, at most 2 MiB per call. `chat.history` has only its type and size.",
    params: IMAGE,
    result: object(
      { mimeType: text(), content: text("Base64.") },
      { nextOffset: number("Set if the picture is longer. All parts joined are the picture in Base64.") },
    ),
    errors: [...NAMES_SESSION, "message_not_found"],
  },
  "chat.file": {
    scope: READ,
    summary: "Reads a file that an agent sent to the people of a session, at most 2 MiB per call.",
    params: FILE,
    result: object(
      {
        name: text(),
        mimeType: text(),
        bytes: number("Size of the whole file."),
        content: text("Base64."),
      },
      { nextOffset: number("Set if the file is longer. All parts joined are the file in Base64.") },
    ),
    errors: [...NAMES_SESSION, "file_not_found"],
  },
  "chat.send": {
    scope: WRITE,
    summary:
      "Sends a message to a session's agent. Returns after the message is stored. Events report the run.",
    params: CHAT_SEND,
    result: object(
      { runId: text(), status: oneOf("started") },
      {
        reply: text(
          "Answer to a command such as `/status`. In the transcript it comes after the current run.",
        ),
      },
    ),
    ignored: [
      "deliver",
      "sessionId",
      "fastMode",
      "originatingChannel",
      "originatingTo",
      "originatingAccountId",
      "originatingThreadId",
      "systemInputProvenance",
      "systemProvenanceReceipt",
    ],
    errors: [...NAMES_SESSION, ...ASKS_RUN, "invalid_thinking", "too_large"],
    events: OF_RUNS,
  },
  "chat.abort": {
    scope: WRITE,
    summary: "Cancels all work of a session and its unfinished sub-agents, or only one run.",
    params: object({ sessionKey }, { runId: about(name, "Cancels only this run."), idempotencyKey }),
    result: object({ ok: oneOf(true), aborted: flag(), runIds: list(text()) }),
    errors: NAMES_SESSION,
    events: OF_RUNS,
  },
  "chat.inject": {
    scope: WRITE,
    summary: "Writes a note into a transcript as a message of the agent. Calls no model.",
    params: object(
      { sessionKey, message: about(message, "Text of the note. At most 256 KiB.") },
      { label: about(name, "Label in brackets before the note."), idempotencyKey },
    ),
    result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
    ignored: ["command", "interactive", "channelData"],
    errors: [...NAMES_SESSION, "session_archived", "too_large"],
    events: ["chat", "sessions"],
  },
  wake: {
    scope: WRITE,
    summary: "Adds a note to a session, with the provenance of a hook.",
    params: object(
      { text: about(message, "Text of the note, at most 100,000 characters.") },
      {
        mode: about(
          oneOf("now", "next-heartbeat"),
          "`now` (the default) starts a run. `next-heartbeat` keeps the note for the next run. For clients " +
            "of version 4 that name a session, it is the same as `now`.",
        ),
        sessionKey: about(
          name,
          "The session. Default: the main session of `agentId`, or of the default agent.",
        ),
        agentId: about(name, "Agent of the session. If `sessionKey` is given, it must belong to this agent."),
        idempotencyKey,
      },
    ),
    result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
    errors: [...NAMES_SESSION, ...ASKS_RUN, "agent_not_found", "too_large"],
    events: OF_RUNS,
  },
  agent: {
    scope: WRITE,
    summary: "Runs an agent. Answers twice: after the run is accepted, and after it has ended.",
    params: AGENT,
    result: about(
      object({ runId: text(), status: oneOf("accepted"), acceptedAt: number(), sessionKey: text() }),
      "The first of the two answers to this request. `GatewayClient.agent` returns both.",
    ),
    ignored: [
      "lane",
      "spawnedBy",
      "replyTo",
      "replyChannel",
      "replyAccountId",
      "groupId",
      "groupChannel",
      "groupSpace",
      "inputProvenance",
      "voiceWakeTrigger",
      "bestEffortDeliver",
    ],
    errors: [
      ...NAMES_SESSION,
      ...ASKS_RUN,
      "label_ambiguous",
      "agent_not_found",
      "invalid_thinking",
      "channel_unknown",
      "too_large",
      "run_not_found",
    ],
    events: [...OF_RUNS, "deliveries"],
  },
  "agent.wait": {
    scope: READ,
    takesLong: true,
    summary: "Waits for the end of a run. `timeout` means that the wait ended: the run continues.",
    params: object(
      { runId: about(name, "Id of the run.") },
      { timeoutMs: about(count(0), "Maximum wait in ms. Default 30000, at most a day. 0: returns at once.") },
    ),
    result: WAIT_ANSWER,
    errors: ["run_not_found"],
  },
  send: {
    scope: WRITE,
    summary: "Queues a text to people in the outbox. Calls no model.",
    params: SEND,
    result: object({ messageId: text(), channel: text(), status: oneOf("queued"), sessionKey: text() }),
    ignored: ["mediaUrl", "mediaUrls", "gifPlayback", "agentId"],
    errors: [...NAMES_SESSION, "channel_unknown", "send_denied", "queue_full", "session_archived"],
    events: ["deliveries", "chat", "sessions"],
  },
} as const satisfies Record<string, MethodSpec>;
