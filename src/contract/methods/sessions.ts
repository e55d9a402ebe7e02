// Owns the methods about sessions: finding, creating, changing, resetting, deleting them.

import type { Route } from "../../core/shapes/route.ts";
import { SESSION_KINDS, type SessionState } from "../../core/shapes/session.ts";
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
    limit: about(count(1), "Most rows. Default 200, at most 1000."),
    activeMinutes: about(count(1), "Only sessions with activity in this many minutes."),
    includeGlobal: flag("Also the session `global`, if it is not the only one."),
    includeUnknown: flag("Has no effect: the session `unknown` is never shown."),
    includeDerivedTitles: flag("Adds `derivedTitle`, the beginning of the first message."),
    includeLastMessage: flag("Adds `lastMessagePreview`."),
    includeArchived: flag("Also archived ones."),
    label: about(name, "Only sessions with exactly this label."),
    spawnedBy: about(name, "Only sessions that this one spawned."),
    roots: flag("Only root sessions: those without a parent that exists and that the token covers."),
    keys: list(name, "Only these; unknown, filtered and uncovered ones are left out.", {
      maxItems: LIST_KEYS_MAX,
    }),
    includeChildren: flag("Adds `children` and `jobs`: the sessions that each spawned, at most 1000."),
    only: about(
      oneOf("running", "failed", "mine"),
      "`running`: with an unfinished run. `failed`: idle, and the last turn failed. " +
        "`mine`: with a message of the caller's token, from any device.",
    ),
    includeCounts: flag("Adds `counts`."),
    agentId: about(name, "Only sessions of this agent."),
    search: text("Only sessions with this text in a label, a name or the key.", {
      maxLength: NAME_MAX_CHARS,
    }),
    kinds: list(oneOf(...SESSION_KINDS), "Only sessions of these kinds.", { maxItems: SESSION_KINDS.length }),
    cursor,
  },
);

const PATCH = object(
  { key: sessionKey },
  {
    label: about(nameOrNull, "At most 200 characters, one line; null clears it, as with the others."),
    thinkingLevel: about(nameOrNull, "Its models' thinking level; null: the agent's."),
    verboseLevel: about(nameOrNull, "How much of its work is shown: on, off or full; null: the default."),
    model: about(nameOrNull, "`<provider>/<model>`; null: the agent's."),
    sendPolicy: about(
      oneOf("allow", "deny", null),
      "Whether text may leave it; null: as session.sendPolicy says. Needs operator.admin.",
    ),
    archived: flag("false restores an archived one; true is refused."),
    idempotencyKey,
  },
);

/** Facts of a model's use of its context. */
export const CONTEXT = {
  contextTokens: about(nullable(number()), "Null: the model is unknown."),
  contextUsed: number("Tokens in the model's context at the last call; 0 before the first call."),
};

/** Fields of a session in rows of methods and of tools. */
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

/** The same, if they are set. */
export const ROW_OPTIONS = {
  label: text(),
  displayName: text(),
  thinkingLevel: text(),
  verboseLevel: text(),
  sendPolicy: oneOf("allow", "deny"),
  spawnedBy: text(),
  lastChannel: text("The channel of its people."),
  lastTo: text(),
  lastAccountId: text(),
  deliveryContext: about(declared<Route>("Route"), "The same destination in full, with its thread."),
};

/** The present work of a session. */
export const WORK = { state: declared<SessionState>("SessionState"), queuedRuns: number() };

const SESSION_FIELDS = {
  ...ROW,
  kind: oneOf("direct", "group", "global"),
  sessionKind: oneOf(...SESSION_KINDS),
  createdAt: number(),
  modelProvider: text(),
  cost: number("USD, since the last reset."),
  inputTokens: number(),
  outputTokens: number(),
};
const SESSION_OPTIONS = { ...ROW_OPTIONS, archivedAt: number() };

const SESSION_ROW = named(
  "SessionRow",
  "A session as `sessions.patch` and `sessions.reset` return it. Unset fields are absent.",
  object(SESSION_FIELDS, SESSION_OPTIONS),
);
export type SessionRow = Of<typeof SESSION_ROW>;

/** A session with its current state. */
export const LISTED_ROW = named(
  "ListedRow",
  "A session as `sessions.list` and `chat.history` return it: a `SessionRow` with its current state.",
  object(
    { ...SESSION_FIELDS, ...WORK },
    {
      ...SESSION_OPTIONS,
      waitingOn: list(
        text(),
        "If it waits: the sessions of the runs that it waits for, as far as the caller sees them.",
      ),
      children: number("With `includeChildren`: the number of sessions that it spawned, at most 1000."),
      jobs: about(
        object({ running: number(), done: number("Ended well, or stopped."), failed: number() }),
        "With `includeChildren`, if there are any: its children by state. `running`: with an unfinished run.",
      ),
      failure: about(
        object(
          { runId: text(), code: text(), endedAt: number() },
          { reason: text("One line, at most 200 characters.") },
        ),
        "If it is idle and its last turn failed: that run, and why.",
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
        object({ running: number(), failed: number(), mine: number("As `only` says.") }),
        "With `includeCounts`: sessions for each value of `only`, without other filters, at most 1000.",
      ),
    },
  ),
);

const EARLIER = named(
  "EarlierRow",
  "A conversation that a reset has ended.",
  object(
    {
      sessionId: text(),
      startedAt: number("When the conversation began."),
      endedAt: number("When its last message was written."),
      messages: number("Number of messages."),
    },
    { title: text("The beginning of its first message.") },
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

const done = oneOf(true);

export const SESSION_METHODS = {
  "sessions.list": {
    scope: READ,
    summary: "Lists the sessions that the token covers, newest activity first.",
    params: LIST,
    result: PAGE,
  },
  "sessions.resolve": {
    scope: READ,
    summary: "Finds the key of one session. Exactly one of `key`, `sessionId` and `label` is given.",
    params: object(
      {},
      {
        key: about(name, "A session key, in any spelling."),
        sessionId: about(name, "The id of its transcript."),
        label: about(name, "Its label."),
        agentId: about(name, "With `label`: the agent of the session."),
        spawnedBy: about(name, "Only a session that this one spawned."),
      },
    ),
    result: object({ ok: done, key: text() }),
    ignored: ["includeGlobal", "includeUnknown"],
    errors: [...NAMES_SESSION, "label_ambiguous"],
  },
  "sessions.create": {
    scope: WRITE,
    summary: "Creates a session for a conversation: `agent:<id>:chat:<uuid>`, or the one named by `key`.",
    params: object(
      { idempotencyKey },
      {
        key: about(
          name,
          "A free name, `agent:<id>:<name>` or `<name>` alone. An existing session is returned unchanged.",
        ),
        agentId: about(name, "The session's agent. Default: the default agent."),
        label: about(name, "Its label. At most 200 characters, one line."),
        client: about(oneOf("acp"), "For an editor: the key is then `agent:<id>:acp:<uuid>`."),
      },
    ),
    result: object({ ok: done, key: text(), sessionId: text() }),
    ignored: ["model", "envelope", "parentSessionKey", "task", "message"],
    errors: [...NAMES_SESSION, "agent_not_found"],
    events: ["sessions"],
  },
  "sessions.earlier": {
    scope: READ,
    summary: "Lists the conversations that resets have ended, newest first; `chat.history` reads one.",
    params: object(
      { key: sessionKey },
      { limit: about(count(1), "Most conversations. Default 50, at most 1000.") },
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
    summary: "Returns the last messages of several sessions, a line each.",
    params: object(
      {
        keys: list(name, "The sessions; an unknown one is returned as `missing`.", {
          minItems: 1,
          maxItems: PREVIEW_KEYS_MAX,
        }),
      },
      {
        limit: about(count(1), "Messages of each. Default 12, at most 50."),
        maxChars: integer("Characters of a line. Default 240, at most 4000.", { minimum: 20 }),
      },
    ),
    result: object({ ts: number(), previews: list(PREVIEW) }),
  },
  "sessions.patch": {
    scope: WRITE,
    summary: "Changes the settings of a session. Absent fields stay.",
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
    errors: [...NAMES_SESSION, "session_archived", "invalid_model", "invalid_thinking"],
    events: ["sessions"],
  },
  "sessions.reset": {
    scope: ADMIN,
    summary: "Cancels a session's work and starts a new transcript; the old one is kept.",
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
      { deleteTranscript: flag("Whether its messages are deleted, too. Default true."), idempotencyKey },
    ),
    result: object({ ok: done, key: text(), deleted: done }),
    ignored: ["emitLifecycleHooks"],
    errors: [...NAMES_SESSION, "protected_session"],
    events: OF_RUNS,
  },
} as const satisfies Record<string, MethodSpec>;
