// Owns the params of the methods for talking to an agent: the chat window's, an agent's run, a text to
// people.

import {
  ASKS_RUN,
  about,
  anyObject,
  count,
  flag,
  idempotencyKey,
  MESSAGE_MAX_CHARS,
  type MethodSpec,
  message,
  NAMES_SESSION,
  name,
  OF_RUNS,
  object,
  READ,
  sessionKey,
  threadId,
  WRITE,
} from "./shapes.ts";

const ATTACHMENTS_MAX = 16;
const HISTORY_LIMIT_MAX = 1000;

const attachments = about(
  { type: "array", items: anyObject, maxItems: ATTACHMENTS_MAX },
  "Pictures: `{mimeType, content}`, the content in base64, at most 10 MiB each.",
);
const thinking = about(name, "off, minimal, low, medium, high, xhigh or max. Default: the session's.");
const runId = about(
  { ...idempotencyKey },
  "The id of the run, made up by the caller. The same key is the same run.",
);
const words = { type: "string", maxLength: MESSAGE_MAX_CHARS } as const;

const CHAT_SEND = object(
  {
    sessionKey,
    message: about(words, "What is said; a command if it is one. May be empty beside pictures."),
    thinking,
    deliver: about(flag, "Has no effect."),
    attachments,
    timeoutMs: about(count(0), "Ends the run so long after its start. 0: never. At most 7 days."),
    idempotencyKey: runId,
  },
  ["sessionKey", "message", "idempotencyKey"],
);

const AGENT = object(
  {
    message: about(message, "What the agent is told."),
    sessionKey: about(name, "Which session. Default: the main one of `agentId`, or of the default agent."),
    agentId: about(name, "Whose session; beside a key it must be the key's."),
    sessionId: about(name, "Instead of `sessionKey`: the id of its transcript."),
    to: about(name, "With `deliver`: the chat. Default: where the session's people were last."),
    channel: about(name, "With `deliver`: the channel, or `last` (the default)."),
    accountId: about(name, "With `deliver`: which account. Default: the first."),
    threadId: about(threadId, "With `deliver`: the thread or topic."),
    deliver: about(flag, "Whether the answer goes to people, besides the transcript. Default false."),
    thinking,
    timeout: about(count(0), "Seconds after its start at which the run ends. 0: never. At most 7 days."),
    lane: about(name, "Has no effect: the lane is the session's."),
    extraSystemPrompt: about(words, "Told to the model for this run alone."),
    label: about(name, "Instead of `sessionKey`: the session's label."),
    spawnedBy: about(name, "Has no effect."),
    attachments,
    idempotencyKey: runId,
  },
  ["message", "idempotencyKey"],
);

const SEND = object(
  {
    to: about(name, "The chat, by the id of its platform; on webchat and with `last` a session."),
    message: about(message, "The text, in Markdown."),
    channel: about(name, "webchat (the default), `last` or a channel that is set up."),
    accountId: about(name, "Which account. Default: the first."),
    threadId: about(threadId, "The thread or topic."),
    sessionKey: about(name, "Where it is written down. Default: the session of whoever reads there."),
    idempotencyKey,
  },
  ["to", "message", "idempotencyKey"],
);

const HISTORY = object(
  {
    sessionKey,
    limit: about({ type: "integer", minimum: 1, maximum: HISTORY_LIMIT_MAX }, "Most messages. Default 200."),
    before: about(name, "A message id: the page before it. At most one of the three is given."),
    after: about(name, "A message id: the page behind it."),
    around: about(name, "A message id: the page with it about in the middle."),
    sessionId: about(
      name,
      "A conversation from before a reset, of `sessions.earlier`. Default: the one in force.",
    ),
    includeRuns: about(flag, "Adds the runs of these messages, and on the newest page what goes on now."),
  },
  ["sessionKey"],
);

export const TALK_METHODS = {
  "chat.history": {
    scope: READ,
    does: "Reads a page of a transcript, at most 4 MiB; credentials are masked.",
    params: HISTORY,
    ignored: ["maxChars"],
    fails: [...NAMES_SESSION, "message_not_found"],
  },
  "chat.send": {
    scope: WRITE,
    does: "Says something to a session's agent. Answered once it is kept; events tell the rest.",
    params: CHAT_SEND,
    ignored: [
      ...["sessionId", "fastMode", "originatingChannel", "originatingTo", "originatingAccountId"],
      ...["originatingThreadId", "systemInputProvenance", "systemProvenanceReceipt"],
    ],
    fails: [...NAMES_SESSION, ...ASKS_RUN, "invalid_thinking", "too_large"],
    causes: OF_RUNS,
  },
  "chat.abort": {
    scope: WRITE,
    does: "Ends what runs and waits in a session, and its unfinished sub-agents; or one run.",
    params: object({ sessionKey, runId: about(name, "Only this run."), idempotencyKey }, ["sessionKey"]),
    ignored: [],
    fails: NAMES_SESSION,
    causes: OF_RUNS,
  },
  "chat.inject": {
    scope: WRITE,
    does: "Writes a note into a transcript, as if the agent had said it; no model is asked.",
    params: object(
      {
        sessionKey,
        message: about(message, "The note. At most 256 KiB."),
        label: about(name, "Put before it in brackets."),
        idempotencyKey,
      },
      ["sessionKey", "message"],
    ),
    ignored: ["command", "interactive", "channelData"],
    fails: [...NAMES_SESSION, "session_archived", "too_large"],
    causes: ["chat", "sessions"],
  },
  agent: {
    scope: WRITE,
    does: "Runs an agent, and answers twice: when the run is accepted, and when it has ended.",
    params: AGENT,
    ignored: [
      ...["replyTo", "replyChannel", "replyAccountId", "groupId", "groupChannel", "groupSpace"],
      ...["inputProvenance", "voiceWakeTrigger", "bestEffortDeliver"],
    ],
    fails: [
      ...NAMES_SESSION,
      ...ASKS_RUN,
      ...(["label_ambiguous", "agent_not_found", "invalid_thinking", "channel_unknown"] as const),
      ...(["too_large", "run_not_found"] as const),
    ],
    causes: [...OF_RUNS, "deliveries"],
  },
  "agent.wait": {
    scope: READ,
    does: "Waits for the end of a run. `timeout` means that waiting ended: the run goes on.",
    params: object(
      {
        runId: about(name, "Which run."),
        timeoutMs: about(count(0), "How long. Default 30000, at most a day; 0: only looks."),
      },
      ["runId"],
    ),
    ignored: [],
    fails: ["run_not_found"],
  },
  send: {
    scope: WRITE,
    does: "Sends a text to people without a model. `queued`: it is in the outbox.",
    params: SEND,
    ignored: ["mediaUrl", "mediaUrls", "gifPlayback", "agentId"],
    fails: [...NAMES_SESSION, "channel_unknown", "send_denied", "queue_full", "session_archived"],
    causes: ["deliveries", "chat", "sessions"],
  },
} as const satisfies Record<string, MethodSpec>;
