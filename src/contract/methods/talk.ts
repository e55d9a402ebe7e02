// Owns the methods for talking to an agent: the chat window's, an agent's run, a text to
// people.

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
  "Pictures: `{mimeType, content}`, the content in base64, at most 10 MiB each.",
  { maxItems: ATTACHMENTS_MAX },
);
const thinking = about(name, "off, minimal, low, medium, high, xhigh or max. Default: the session's.");
const runId = about(
  { ...idempotencyKey },
  "Id of the run, chosen by the caller. The same request with the same id returns the same run.",
);
const words = text(undefined, { maxLength: MESSAGE_MAX_CHARS });

const CHAT_SEND = object(
  {
    sessionKey,
    message: about(
      words,
      "The message; a command such as `/status` is executed. May be empty if there are pictures.",
    ),
    idempotencyKey: runId,
  },
  {
    thinking,
    deliver: flag("Has no effect."),
    attachments,
    timeoutMs: about(count(0), "Ends the run this long after its start. 0: never. At most 7 days."),
  },
);

const AGENT = object(
  { message: about(message, "The message to the agent."), idempotencyKey: runId },
  {
    sessionKey: about(name, "The session. Default: the main one of `agentId`, or of the default agent."),
    agentId: about(name, "The session's agent; with a key it must be the key's agent."),
    sessionId: about(name, "Instead of `sessionKey`: the id of its transcript."),
    to: about(name, "With `deliver`: the chat. Default: the session's last route."),
    channel: about(name, "With `deliver`: the channel, or `last` (the default)."),
    accountId: about(name, "With `deliver`: the account. Default: the first."),
    threadId: about(threadId, "With `deliver`: the thread or topic."),
    deliver: flag("Whether the answer is delivered to people, besides the transcript. Default false."),
    thinking,
    timeout: about(count(0), "Seconds after its start at which the run ends. 0: never. At most 7 days."),
    lane: about(name, "Has no effect: the lane is the session's."),
    extraSystemPrompt: about(words, "Added to the model's system prompt in this run only."),
    label: about(name, "Instead of `sessionKey`: the session's label."),
    spawnedBy: about(name, "Has no effect."),
    attachments,
  },
);

const SEND = object(
  {
    to: about(name, "The chat, by the id of its platform; on webchat and with `last` a session."),
    message: about(message, "The text, in Markdown."),
    idempotencyKey,
  },
  {
    channel: about(name, "webchat (the default), `last` or a channel that is set up."),
    accountId: about(name, "The account. Default: the first."),
    threadId: about(threadId, "The thread or topic."),
    sessionKey: about(name, "The session that records the text. Default: the session of that chat."),
  },
);

const HISTORY = object(
  { sessionKey },
  {
    limit: integer("Most messages. Default 200.", { minimum: 1, maximum: HISTORY_LIMIT_MAX }),
    before: about(
      name,
      "A message id: returns the page before it. Give at most one of before, after and around.",
    ),
    after: about(name, "A message id: returns the page after it."),
    around: about(name, "A message id: returns the page with it near the middle."),
    sessionId: about(
      name,
      "A conversation from before a reset, of `sessions.earlier`. Default: the current one.",
    ),
    includeRuns: flag("Adds the runs of these messages, and on the newest page the session's current state."),
  },
);

const QUEUED_RUN = named(
  "QueuedRun",
  "A message that waits in the lane.",
  object(
    { runId: text() },
    {
      text: text("Its beginning, if the text is long."),
      provenance: declared<Provenance>("Provenance"),
      senderName: text(),
    },
  ),
);
export type QueuedRun = Of<typeof QUEUED_RUN>;

const HISTORY_NOW = named(
  "HistoryNow",
  "The session beside the newest page of its transcript.",
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
        "Oldest first; with `includeRuns` each names its run, if it has one.",
      ),
      thinkingLevel: text(),
    },
    {
      sessionId: text(
        "The messages' conversation. Absent: the key is unused; the first message starts the conversation.",
      ),
      nextBefore: text("For `before`: the previous page. Absent on the first page of the transcript."),
      nextAfter: text("For `after`: the next page. Absent on the newest page."),
      runs: about(
        mapOf(declared<RunRow>("RunRow")),
        "With `includeRuns`: the runs of these messages, and on the newest page the unfinished ones.",
      ),
      compactions: about(
        mapOf(number()),
        "With `includeRuns`: ids of messages, and when the model began to read a summary of all before them.",
      ),
      now: about(HISTORY_NOW, "With `includeRuns`, on the newest page."),
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
      status: about(oneOf("ok", "error", "timeout"), "`timeout`: the wait ended, the run continues."),
      runStatus: declared<RunState>("RunState"),
    },
    { startedAt: number(), endedAt: number(), error: text(), code: text() },
  ),
);
export type WaitAnswer = Of<typeof WAIT_ANSWER>;

export const TALK_METHODS = {
  "chat.history": {
    scope: READ,
    summary: "Reads a page of a transcript, at most 4 MiB; credentials are redacted.",
    params: HISTORY,
    result: HISTORY_PAGE,
    ignored: ["maxChars"],
    errors: [...NAMES_SESSION, "message_not_found"],
  },
  "chat.send": {
    scope: WRITE,
    summary: "Sends a message to a session's agent. Returns once it is stored; events report the rest.",
    params: CHAT_SEND,
    result: object(
      { runId: text(), status: oneOf("started") },
      {
        reply: text(
          "The answer to a command such as `/status`. In the transcript it follows the current run.",
        ),
      },
    ),
    ignored: [
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
    summary: "Cancels a session's running and pending work and its unfinished sub-agents; or one run.",
    params: object({ sessionKey }, { runId: about(name, "Cancels only this run."), idempotencyKey }),
    result: object({ ok: oneOf(true), aborted: flag(), runIds: list(text()) }),
    errors: NAMES_SESSION,
    events: OF_RUNS,
  },
  "chat.inject": {
    scope: WRITE,
    summary: "Writes a note into a transcript as the agent's message; no model is called.",
    params: object(
      { sessionKey, message: about(message, "The note. At most 256 KiB.") },
      { label: about(name, "Prefixed to the note in brackets."), idempotencyKey },
    ),
    result: object({ ok: oneOf(true), runId: text(), sessionKey: text() }),
    ignored: ["command", "interactive", "channelData"],
    errors: [...NAMES_SESSION, "session_archived", "too_large"],
    events: ["chat", "sessions"],
  },
  agent: {
    scope: WRITE,
    summary: "Runs an agent. Answers twice: when the run is accepted, and when it has ended.",
    params: AGENT,
    result: about(
      object({ runId: text(), status: oneOf("accepted"), acceptedAt: number(), sessionKey: text() }),
      "The first answer; `GatewayClient.agent` returns both.",
    ),
    ignored: [
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
    summary: "Waits for the end of a run. `timeout` means that the wait ended: the run continues.",
    params: object(
      { runId: about(name, "Id of the run.") },
      { timeoutMs: about(count(0), "The timeout. Default 30000, at most a day; 0: returns at once.") },
    ),
    result: WAIT_ANSWER,
    errors: ["run_not_found"],
  },
  send: {
    scope: WRITE,
    summary: "Sends a text to people, without a model. `queued`: it is in the outbox.",
    params: SEND,
    result: object({ messageId: text(), channel: text(), status: oneOf("queued"), sessionKey: text() }),
    ignored: ["mediaUrl", "mediaUrls", "gifPlayback", "agentId"],
    errors: [...NAMES_SESSION, "channel_unknown", "send_denied", "queue_full", "session_archived"],
    events: ["deliveries", "chat", "sessions"],
  },
} as const satisfies Record<string, MethodSpec>;
