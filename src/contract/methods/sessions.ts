// Defines the methods for sessions: finding, creating, changing, resetting and deleting them.

import type { Route } from "../../core/shapes/route.ts";
import { INSTRUCTIONS_CHARS_MAX, SESSION_KINDS, type SessionState } from "../../core/shapes/session.ts";
import {
  about,
  declared,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  type Of,
  object,
  oneOf,
  text,
} from "../schema.ts";
import {
  ADMIN,
  count,
  cursor,
  HOLD,
  idempotencyKey,
  type MethodSpec,
  NAME_MAX_CHARS,
  NAMES_SESSION,
  name,
  nameOrNull,
  OF_RUNS,
  READ,
  sessionKey,
  WRITE,
} from "./parts.ts";

const PREVIEW_KEYS_MAX = 64;
const LIST_KEYS_MAX = 200;

const LIST = object(
  {},
  {
    limit: about(count(1), "Maximum number of rows. Default 200, at most 1000."),
    activeMinutes: about(count(1), "Returns only sessions that were active in the last N minutes."),
    includeGlobal: flag(
      "Includes the session `global`, which is otherwise listed only if `session.scope` is `global`.",
    ),
    includeDerivedTitles: flag("Adds `derivedTitle`, the beginning of the first message."),
    includeLastMessage: flag("Adds `lastMessagePreview`."),
    includeArchived: flag("Includes archived sessions."),
    label: about(name, "Returns only sessions with exactly this label."),
    spawnedBy: about(name, "Returns only sessions that this session spawned."),
    roots: flag(
      "Returns only sessions without a visible parent (one that exists and that the token covers).",
    ),
    keys: list(name, "Returns only these sessions, if the token covers them and the other filters match.", {
      maxItems: LIST_KEYS_MAX,
    }),
    includeChildren: flag(
      "Adds `children`, `jobs` and `below`, which count the sessions that each session spawned.",
    ),
    only: about(
      oneOf("running", "failed", "mine"),
      "`running`: has an unfinished run. `failed`: idle, and the last run failed. " +
        "`mine`: has a message that was sent with the caller's token.",
    ),
    includeCounts: flag("Adds `counts`."),
    agentId: about(name, "Returns only sessions of this agent."),
    search: text("Returns only sessions with this text in the label, name, key or first words.", {
      maxLength: NAME_MAX_CHARS,
    }),
    kinds: list(oneOf(...SESSION_KINDS), "Returns only sessions of these kinds.", {
      maxItems: SESSION_KINDS.length,
    }),
    cursor,
  },
);

const PATCH = object(
  { key: sessionKey },
  {
    label: about(nameOrNull, "Label: one line, at most 200 characters. null clears a field."),
    thinkingLevel: about(nameOrNull, "Thinking level of the model. null: the agent's level."),
    verboseLevel: about(
      nameOrNull,
      "How much of the agent's work people see: on, off or full. null: the default.",
    ),
    model: about(nameOrNull, "Model as `<provider>/<model>`. null: the agent's model."),
    sendPolicy: about(
      oneOf("allow", "deny", null),
      "Whether the session may send texts to people. null: session.sendPolicy decides. Needs operator.admin.",
    ),
    instructions: about(
      nullable(text(undefined, { maxLength: INSTRUCTIONS_CHARS_MAX })),
      "Instructions for the model in this session, beside those of its agent. null clears them.",
    ),
    archived: flag(
      "`true` archives an idle session; then no other field is allowed. `false` restores an archived one.",
    ),
    idempotencyKey,
  },
);

/** The size of the model's context, and its used part. */
export const CONTEXT = {
  contextTokens: about(
    nullable(number()),
    "Size of the model's context in tokens. Null if the model is unknown.",
  ),
  contextUsed: number("Tokens in the model's context at the last call. 0 before the first call."),
};

/** Fields that a session has in the results of methods and of tools. */
export const ROW = {
  key: text(),
  channel: text(),
  agentId: text(),
  updatedAt: number(),
  sessionId: text(),
  model: text(),
  ...CONTEXT,
  totalTokens: number(),
  systemSent: flag(),
  abortedLastRun: flag(),
};

/** Optional fields of a session in these results. */
export const ROW_OPTIONS = {
  label: text(),
  displayName: text(),
  thinkingLevel: text(),
  verboseLevel: text(),
  sendPolicy: oneOf("allow", "deny"),
  spawnedBy: text(),
  lastChannel: text("Channel on which people last wrote."),
  lastTo: text(),
  lastAccountId: text(),
  lastThreadId: text(),
  deliveryContext: about(
    declared<Route>("Route"),
    "The full route of the last message from people, with its thread.",
  ),
};

/** The current work of a session. */
export const WORK = { state: declared<SessionState>("SessionState"), queuedRuns: number() };

const SESSION_FIELDS = {
  ...ROW,
  kind: oneOf("direct", "group", "global"),
  sessionKind: oneOf(...SESSION_KINDS),
  createdAt: number(),
  modelProvider: text(),
  cost: number("Cost in USD since the last reset."),
  inputTokens: number(),
  outputTokens: number(),
};
const SESSION_OPTIONS = {
  ...ROW_OPTIONS,
  archivedAt: number(),
  outside: list(text(), "Sources of content from outside since the last reset. See `labels.explain`."),
};

const SESSION_ROW = named(
  "SessionRow",
  "A session as `sessions.patch` and `sessions.reset` return it. Unset fields are absent.",
  object(SESSION_FIELDS, SESSION_OPTIONS),
);
export type SessionRow = Of<typeof SESSION_ROW>;

/** A session with its current state. */
export const LISTED_ROW = named(
  "ListedRow",
  "A session as `sessions.list` and `chat.history` return it: a `SessionRow` with its current state. " +
    "`chat.history` returns it as `sessions.list` does with `includeChildren`.",
  object(
    { ...SESSION_FIELDS, ...WORK },
    {
      ...SESSION_OPTIONS,
      waitingOn: list(
        text(),
        "Keys of the sessions that this session waits for, if the caller may see them.",
      ),
      hold: HOLD,
      children: number("With `includeChildren`: number of spawned sessions, at most 1000."),
      jobs: about(
        object({
          running: number(),
          done: number("Number of those that succeeded or have not run."),
          failed: number(),
          stopped: number(),
        }),
        "With `includeChildren`: number of spawned sessions by state. Absent if there are none.",
      ),
      below: about(
        object({
          sessions: number(),
          tokens: number(),
          cost: number("In USD, since the last reset of each session."),
        }),
        "With `includeChildren`: all visible sessions below this one, on every level. Absent if there are " +
          "none, or more than 10,000 below the rows of the page.",
      ),
      failure: about(
        object(
          {
            runId: text(),
            code: text(),
            endedAt: number(),
            retriable: flag(
              "True if `runs.retry` accepts the run: it is not a job, and nobody has dismissed it.",
            ),
          },
          { reason: text("One line, at most 200 characters.") },
        ),
        "The last run, if it failed and the session is idle.",
      ),
      derivedTitle: text(),
      lastMessagePreview: text(),
    },
  ),
);
export type ListedRow = Of<typeof LISTED_ROW>;

const PAGE = named(
  "SessionsPage",
  "A page of sessions, newest activity first.",
  object(
    {
      ts: number(),
      path: text(),
      count: number(),
      defaults: object({ modelProvider: text(), model: text(), contextTokens: nullable(number()) }),
      sessions: list(LISTED_ROW),
    },
    {
      nextCursor: text(),
      counts: about(
        object({ running: number(), failed: number(), mine: number("See `only`.") }),
        "With `includeCounts`: number of sessions by value of `only`, without other filters, at most 1000.",
      ),
    },
  ),
);

const EARLIER = named(
  "EarlierRow",
  "A conversation that was ended by a reset.",
  object(
    {
      sessionId: text(),
      startedAt: number("Time of the conversation's start."),
      endedAt: number("Time of the last message."),
      messages: number("Number of messages."),
    },
    { title: text("Beginning of the first message.") },
  ),
);

const PREVIEW = named(
  "Preview",
  "The last messages of a session, oldest first.",
  object({
    key: text(),
    status: about(
      oneOf("ok", "empty", "missing"),
      "`empty`: no messages. `missing`: the session does not exist, or the token does not cover it.",
    ),
    items: list(object({ role: text(), text: text() })),
  }),
);

export const SEARCH_LIMIT = { fallback: 20, min: 1, max: 100 };
const QUERY_CHARS_MAX = 500;

const AUTHOR = object(
  {
    kind: about(
      oneOf("agent", "person", "session", "notice", "note", "cron", "hook", "node"),
      "`session`: another session. `notice`: the gateway. `note`: an operator, by `chat.inject`.",
    ),
  },
  {
    name: text("Id of the agent, name of the person, label of the session, or name of the source."),
    sessionKey: text("The session that sent the message, or that the notice is about."),
  },
);

export const SEARCH_HIT = object(
  {
    sessionKey: text(),
    sessionId: text(),
    messageId: text(),
    role: text(),
    author: about(AUTHOR, "A `person` without a name writes to the gateway directly."),
    timestamp: number(),
    excerpt: text("The text around the words; credentials are redacted."),
  },
  { earlier: about(oneOf(true), "True if the message is from before a reset.") },
);

const done = oneOf(true);

export const LEFT_BEHIND = about(
  object({
    runs: number("Running, waiting and queued runs."),
    jobs: number("Sub-agents' unfinished jobs that the caller may see."),
    waits: number("Sessions that the origin waits for, if the caller may see them."),
  }),
  "Unfinished work of the origin, which the fork does not have.",
);

export const SESSION_METHODS = {
  "sessions.list": {
    scope: READ,
    summary: "Lists the sessions that the token covers, newest activity first.",
    params: LIST,
    result: PAGE,
    ignored: ["includeUnknown"],
  },
  "sessions.subscribe": {
    scope: READ,
    summary: "Returns the list for clients of version 4. Every client gets the events without asking.",
    params: LIST,
    result: object(
      { subscribed: about(done, "Always true.") },
      { list: about(PAGE, "As `sessions.list` with these params. Absent if there are none.") },
    ),
    ignored: ["includeUnknown"],
    events: ["sessions"],
  },
  "sessions.describe": {
    scope: READ,
    summary: "Returns one session, or null if the session does not exist or the token does not cover it.",
    params: object({ key: sessionKey }),
    result: object({ session: nullable(LISTED_ROW) }),
    errors: ["invalid_session_key"],
  },
  "sessions.resolve": {
    scope: READ,
    summary: "Finds the key of one session. Give exactly one of `key`, `sessionId` and `label`.",
    params: object(
      {},
      {
        key: about(name, "A session key, in any spelling."),
        sessionId: about(name, "Id of the session's transcript."),
        label: about(name, "Label of the session."),
        agentId: about(name, "With `label`: agent of the session."),
        spawnedBy: about(name, "Finds only a session that this session spawned."),
      },
    ),
    result: object({ ok: done, key: text() }),
    ignored: ["includeGlobal", "includeUnknown"],
    errors: [...NAMES_SESSION, "label_ambiguous"],
  },
  "sessions.create": {
    scope: WRITE,
    summary: "Creates a session for a conversation, with the key `agent:<id>:chat:<uuid>` or a chosen one.",
    params: object(
      { idempotencyKey },
      {
        key: about(
          name,
          "Key of the session: `agent:<id>:<name>` or `<name>`. An existing session is returned unchanged.",
        ),
        agentId: about(name, "Agent of the session. Default: the default agent."),
        label: about(name, "Label of the session: one line, at most 200 characters."),
        client: about(oneOf("acp"), "`acp` for an editor: the key is then `agent:<id>:acp:<uuid>`."),
      },
    ),
    result: object({ ok: done, key: text(), sessionId: text() }),
    ignored: [
      ...["model", "envelope", "parentSessionKey", "task", "message"],
      ...["succeedsParent", "emitCommandHooks"],
    ],
    errors: [...NAMES_SESSION, "agent_not_found"],
    events: ["sessions"],
  },
  "sessions.fork": {
    scope: WRITE,
    summary:
      "Makes a session that continues a conversation after one of its messages. " +
      "The fork shares the messages up to there, and has the rights of its origin.",
    params: object(
      {
        sessionKey,
        at: about(
          name,
          "Id of the last message to share. A message with tool calls is shared with all their results; " +
            "if a result is missing, the fork ends before the message.",
        ),
        idempotencyKey,
      },
      { label: about(name, "Label of the fork: one line, at most 200 characters.") },
    ),
    result: object({
      ok: done,
      key: text("Key of the fork: the key of its origin, `:fork:` and an id."),
      sessionId: text(),
      at: text("Id of the last shared message."),
      leftBehind: LEFT_BEHIND,
    }),
    errors: [...NAMES_SESSION, "message_not_found", "session_archived"],
    events: ["sessions"],
  },
  "sessions.earlier": {
    scope: READ,
    summary: "Lists the conversations that were ended by resets, newest first. `chat.history` reads one.",
    params: object(
      { key: sessionKey },
      { limit: about(count(1), "Maximum number of conversations. Default 50, at most 1000.") },
    ),
    result: object({
      key: text(),
      sessionId: text("Id of the current transcript."),
      conversations: list(EARLIER, "Earlier conversations, ended by resets, newest first."),
    }),
    errors: NAMES_SESSION,
  },
  "sessions.preview": {
    scope: READ,
    summary: "Returns the last messages of several sessions, each message as one line.",
    params: object(
      {
        keys: list(name, "Keys of the sessions. An unknown session is returned as `missing`.", {
          minItems: 1,
          maxItems: PREVIEW_KEYS_MAX,
        }),
      },
      {
        limit: about(count(1), "Maximum number of messages per session. Default 12, at most 50."),
        maxChars: integer("Maximum number of characters per line. Default 240, at most 4000.", {
          minimum: 20,
        }),
      },
    ),
    result: object({ ts: number(), previews: list(PREVIEW) }),
  },
  "sessions.search": {
    scope: READ,
    summary: "Finds messages by their words in the transcripts of the sessions that the token covers.",
    params: object(
      { query: text("Words that the message contains.", { maxLength: QUERY_CHARS_MAX }) },
      {
        sessionKey: about(name, "Only this session."),
        agentId: about(name, "Only sessions of this agent."),
        limit: about(
          count(1),
          `Maximum number of hits. Default ${SEARCH_LIMIT.fallback}, at most ${SEARCH_LIMIT.max}.`,
        ),
        cursor,
      },
    ),
    result: object({ hits: list(SEARCH_HIT, "Newest first.") }, { nextCursor: text() }),
    errors: NAMES_SESSION,
  },
  "sessions.patch": {
    scope: WRITE,
    summary: "Changes the settings of a session. Absent fields keep their values.",
    params: PATCH,
    result: object({ ok: done, path: text(), key: text(), entry: SESSION_ROW }),
    ignored: [
      "fastMode",
      "traceLevel",
      "reasoningLevel",
      "responseUsage",
      "elevatedLevel",
      "execHost",
      "execSecurity",
      "execAsk",
      "execNode",
      "spawnedWorkspaceDir",
      "spawnDepth",
      "subagentRole",
      "subagentControlScope",
      "envelope",
      "groupActivation",
    ],
    errors: [
      ...NAMES_SESSION,
      "session_archived",
      "session_busy",
      "protected_session",
      "invalid_model",
      "invalid_thinking",
    ],
    events: ["sessions"],
  },
  "sessions.compact": {
    scope: WRITE,
    summary:
      "Summarises the older messages of a session and waits for that. The model then reads the summary in " +
      "their place; nothing is deleted. It is a run of the session, so it waits for the runs before it.",
    params: object({ key: sessionKey, idempotencyKey }),
    result: object(
      {
        ok: done,
        key: text(),
        runId: text(),
        compacted: flag("False if there was nothing older to summarise, or if the run failed."),
      },
      { reason: text("Why nothing was summarised.") },
    ),
    ignored: ["maxLines"],
    errors: [...NAMES_SESSION, "send_denied", "queue_full", "idempotency_conflict"],
    events: OF_RUNS,
  },
  "sessions.reset": {
    scope: ADMIN,
    summary: "Cancels a session's work and starts a new transcript. The old transcript is kept.",
    params: object({ key: sessionKey }, { idempotencyKey }),
    result: object({ ok: done, key: text(), sessionId: text(), entry: SESSION_ROW }),
    ignored: ["reason"],
    errors: [...NAMES_SESSION, "session_archived"],
    events: OF_RUNS,
  },
  "sessions.delete": {
    scope: ADMIN,
    summary: "Cancels a session's work and deletes the session. Its usage stays in the ledger.",
    params: object(
      { key: sessionKey },
      {
        deleteTranscript: flag("Whether to delete the messages of the session, too. Default true."),
        idempotencyKey,
      },
    ),
    result: object({ ok: done, key: text(), deleted: done }),
    ignored: ["emitLifecycleHooks"],
    errors: [...NAMES_SESSION, "protected_session"],
    events: OF_RUNS,
  },
} as const satisfies Record<string, MethodSpec>;
