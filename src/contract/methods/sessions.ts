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
    includeGlobal: about(flag, "Also the session `global`, if it is not the only one."),
    includeUnknown: about(flag, "Has no effect: the session `unknown` is never shown."),
    includeDerivedTitles: about(flag, "Adds `derivedTitle`, the beginning of the first message."),
    includeLastMessage: about(flag, "Adds `lastMessagePreview`."),
    includeArchived: about(flag, "Also archived ones."),
    label: about(name, "Only sessions with exactly this label."),
    spawnedBy: about(name, "Only sessions that this one spawned."),
    roots: about(flag, "Only root sessions: those without a parent that exists and that the token covers."),
    keys: about(
      list(name, { maxItems: LIST_KEYS_MAX }),
      "Only these; unknown, filtered and uncovered ones are left out.",
    ),
    includeChildren: about(flag, "Adds `children`: the number of sessions that each spawned, at most 1000."),
    agentId: about(name, "Only sessions of this agent."),
    search: about(
      text({ maxLength: NAME_MAX_CHARS }),
      "Only sessions with this text in a label, a name or the key.",
    ),
    kinds: about(
      list(oneOf(...SESSION_KINDS), { maxItems: SESSION_KINDS.length }),
      "Only sessions of these kinds.",
    ),
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
    archived: about(flag, "false restores an archived one; true is refused."),
    idempotencyKey,
  },
);

const SESSION_FIELDS = {
  key: text(),
  kind: oneOf("direct", "group", "global"),
  sessionKind: oneOf(...SESSION_KINDS),
  channel: text(),
  agentId: text(),
  createdAt: number(),
  updatedAt: number(),
  sessionId: text(),
  modelProvider: text(),
  model: text(),
  contextTokens: about(nullable(number()), "Null: the model is unknown."),
  contextUsed: about(number(), "Tokens in the model's context at the last call; 0 before the first call."),
  cost: about(number(), "USD, since the last reset."),
  inputTokens: number(),
  outputTokens: number(),
  totalTokens: number(),
  systemSent: flag,
  abortedLastRun: flag,
};

const SESSION_OPTIONS = {
  label: text(),
  displayName: text(),
  archivedAt: number(),
  thinkingLevel: text(),
  verboseLevel: text(),
  sendPolicy: oneOf("allow", "deny"),
  spawnedBy: text(),
  lastChannel: text(),
  lastTo: text(),
  lastAccountId: text(),
  deliveryContext: about(declared<Route>("Route"), "The same destination in full, with its thread."),
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
  "A session as `sessions.list` and `chat.history` return it: a `SessionRow` with its current state.",
  object(
    { ...SESSION_FIELDS, state: declared<SessionState>("SessionState"), queuedRuns: number() },
    {
      ...SESSION_OPTIONS,
      waitingOn: about(
        list(text()),
        "If it waits: the sessions of the runs that it waits for, as far as the caller sees them.",
      ),
      children: about(
        number(),
        "With `includeChildren`: the number of sessions that it spawned, at most 1000.",
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
    { nextCursor: text() },
  ),
);

const EARLIER = named(
  "EarlierRow",
  "A conversation that a reset has ended.",
  object(
    {
      sessionId: text(),
      startedAt: about(number(), "When the conversation began."),
      endedAt: about(number(), "When its last message was written."),
      messages: about(number(), "Number of messages."),
    },
    { title: about(text(), "The beginning of its first message.") },
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
        agentId: about(name, "With `label`: whose session."),
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
      sessionId: about(text(), "Of the current conversation."),
      conversations: about(list(EARLIER), "Earlier conversations, ended by resets, newest first."),
    }),
    errors: NAMES_SESSION,
  },
  "sessions.preview": {
    scope: READ,
    summary: "Returns the last messages of several sessions, a line each.",
    params: object(
      {
        keys: about(
          list(name, { minItems: 1, maxItems: PREVIEW_KEYS_MAX }),
          "The sessions; an unknown one is returned as `missing`.",
        ),
      },
      {
        limit: about(count(1), "Messages of each. Default 12, at most 50."),
        maxChars: about(integer({ minimum: 20 }), "Characters of a line. Default 240, at most 4000."),
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
      {
        deleteTranscript: about(flag, "Whether its messages are deleted, too. Default true."),
        idempotencyKey,
      },
    ),
    result: object({ ok: done, key: text(), deleted: done }),
    ignored: ["emitLifecycleHooks"],
    errors: [...NAMES_SESSION, "protected_session"],
    events: OF_RUNS,
  },
} as const satisfies Record<string, MethodSpec>;
