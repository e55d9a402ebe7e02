// The tool `sessions_list`: the sessions that the caller can see, newest first.

import { shownKey, visibilityOf } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import { badCursor, fail, ok } from "../../core/shapes/errors.ts";
import type { Message } from "../../core/shapes/message.ts";
import { type Route, SESSION_KINDS, type Session, type SessionKind } from "../../core/shapes/session.ts";
import { channelOf } from "../../core/shapes/session-key.ts";
import { modelOf, type VisibilityMode, windowOf } from "../../core/shapes/settings/settings.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import {
  type ListedSession,
  type ListFilter,
  listVisible,
  visibleSpawners,
} from "../../flows/session/list.ts";
import { isSessionCursor } from "../../store/queries/sessions/session-lists.ts";
import { lastMessages } from "../../store/queries/transcripts/transcripts.ts";
import { agentIdLimit, countLimit, formLimit, textLimit } from "../arguments.ts";
import type { ReadingContext, Tool } from "../tool.ts";

const LIMIT = { fallback: 50, min: 1, max: 200 };
const MESSAGE_LIMIT = { fallback: 0, min: 0, max: 20 };
const SEARCH_CHARS_MAX = 200;
const CURSOR_CHARS_MAX = 2_000;
const MINUTE_MS = 60_000;
/** Size of an empty list of messages as JSON. */
const NO_MESSAGES_BYTES = 2;

/** The place of a session's people. */
interface PlaceFields {
  readonly lastChannel?: string;
  readonly lastTo?: string;
  readonly lastAccountId?: string;
  readonly deliveryContext?: Route;
}

/** Fields that a row takes over from the session unchanged. */
type SessionFields = Pick<
  Session,
  | "kind"
  | "agentId"
  | "updatedAt"
  | "sessionId"
  | "contextUsed"
  | "totalTokens"
  | "thinkingLevel"
  | "verboseLevel"
  | "systemSent"
  | "abortedLastRun"
  | "sendPolicy"
>;

interface SessionRow extends SessionFields, PlaceFields, Omit<ListedSession, "session"> {
  readonly key: string;
  readonly channel: string;
  readonly label?: string;
  readonly displayName?: string;
  readonly model: string;
  /** Size of the model's context. Null: not known. */
  readonly contextTokens: number | null;
  readonly spawnedBy?: string;
  /** The JSONL copy of the transcript. */
  readonly transcriptPath?: string;
  /** The last messages, if the call asked for them. */
  messages?: readonly Message[];
}

type ListResult = {
  readonly count: number;
  readonly sessions: readonly SessionRow[];
  readonly nextCursor?: string;
  readonly visibility: VisibilityMode;
  readonly messagesTruncated?: true;
};

export const sessionsList: Tool<ReadingContext, ListResult> = {
  spec: {
    name: "sessions_list",
    description:
      "List the sessions that you can see, newest first, with the state of each. " +
      "Use the `key` of a row as sessionKey in sessions_history and sessions_send.",
    parameters: {
      type: "object",
      properties: {
        kinds: {
          type: "array",
          items: { type: "string", enum: SESSION_KINDS },
          description: "Only these kinds. Default: all.",
        },
        limit: {
          type: "number",
          description: `Maximum number of rows. Default ${LIMIT.fallback}, at most ${LIMIT.max}.`,
        },
        activeMinutes: { type: "number", description: "Only sessions updated in the last N minutes." },
        messageLimit: {
          type: "number",
          description:
            "Adds the last N messages of each session, without tool results. " +
            `Default ${MESSAGE_LIMIT.fallback}, at most ${MESSAGE_LIMIT.max}.`,
        },
        search: { type: "string", description: "Part of a label, a name or a key." },
        agentId: { type: "string", description: "Only sessions of this agent." },
        cursor: { type: "string", description: "`nextCursor` of the previous page." },
      },
    },
    parallel: true,
    idempotent: true,
  },
  limits: {
    limit: countLimit(LIMIT),
    messageLimit: countLimit(MESSAGE_LIMIT),
    search: textLimit(SEARCH_CHARS_MAX),
    agentId: agentIdLimit,
    cursor: formLimit(CURSOR_CHARS_MAX, (cursor) =>
      isSessionCursor(cursor) ? undefined : badCursor("this tool"),
    ),
    activeMinutes: (value, name) =>
      typeof value !== "number" || value > 0
        ? ok(value)
        : fail("invalid_argument", `${name} must be more than 0, got ${value}`, {
            hint: "Leave activeMinutes out for sessions of any age.",
          }),
  },
  async execute(ctx, args) {
    const messageLimit = args.messageLimit as number;
    const filter = filterOf(args, ctx.engine.now());
    const { rows, nextCursor } = await listVisible(ctx, ctx.viewer, filter);
    const listed = rows.map((row) => row.session);
    const spawners = await visibleSpawners(ctx, ctx.viewer, listed);
    const sessions = rows.map((row) => sessionRow(ctx, row, spawners));
    const cut = messageLimit > 0 ? await addMessages(ctx, rows, sessions, messageLimit) : false;
    return ok({
      count: sessions.length,
      sessions,
      ...optional({ nextCursor }),
      visibility: visibilityOf(ctx, ctx.viewer),
      ...(cut ? { messagesTruncated: true } : {}),
    });
  },
};

/** Builds the filter from checked arguments. */
function filterOf(args: Record<string, unknown>, nowMs: number): ListFilter {
  const { kinds, search, cursor, agentId, activeMinutes } = args;
  return {
    limit: args.limit as number,
    ...(Array.isArray(kinds) ? { kinds: [...new Set(kinds as SessionKind[])] } : {}),
    ...(typeof search === "string" ? { search: search.trim() } : {}),
    ...(typeof cursor === "string" ? { cursor } : {}),
    ...(typeof agentId === "string" ? { agentId } : {}),
    ...(typeof activeMinutes === "number"
      ? { activeSinceMs: Math.max(0, Math.floor(nowMs - activeMinutes * MINUTE_MS)) }
      : {}),
  };
}

function placeFields(session: Session): PlaceFields {
  const route = session.lastRoute;
  if (route === undefined) return {};
  const { channel, to, accountId, threadId } = route;
  return {
    lastChannel: channel,
    lastTo: to,
    ...optional({ lastAccountId: accountId }),
    deliveryContext: {
      channel,
      to,
      ...optional({ accountId, threadId }),
    },
  };
}

function sessionRow(ctx: ReadingContext, row: ListedSession, spawners: ReadonlySet<string>): SessionRow {
  const { session, state, queuedRuns } = row;
  const { label, displayName } = session;
  const spawnedBy = spawners.has(session.spawnedBy ?? "") ? session.spawnedBy : undefined;
  return {
    key: shownKey(ctx, ctx.viewer, session.key),
    kind: session.kind,
    channel: channelOf(session),
    ...optional({
      label: label && ctx.engine.redactor.mask(label),
      displayName: displayName && ctx.engine.redactor.mask(displayName),
    }),
    agentId: session.agentId,
    updatedAt: session.updatedAt,
    sessionId: session.sessionId,
    model: modelOf(ctx.settings, session),
    contextTokens: windowOf(ctx.settings, modelOf(ctx.settings, session)),
    contextUsed: session.contextUsed,
    totalTokens: session.totalTokens,
    ...optional({ thinkingLevel: session.thinkingLevel, verboseLevel: session.verboseLevel }),
    systemSent: session.systemSent,
    abortedLastRun: session.abortedLastRun,
    ...optional({ sendPolicy: session.sendPolicy }),
    ...placeFields(session),
    ...optional({
      spawnedBy: spawnedBy && shownKey(ctx, ctx.viewer, spawnedBy),
      transcriptPath: ctx.engine.store.writtenTranscript(session.sessionId),
    }),
    state,
    queuedRuns,
  };
}

/** Adds each session's last messages, newest session first, up to the byte limit. True: some were cut. */
async function addMessages(
  ctx: ReadingContext,
  rows: readonly ListedSession[],
  shown: readonly SessionRow[],
  limit: number,
): Promise<boolean> {
  const { maxTextChars, maxBytes } = ctx.settings.tools.history;
  let bytesLeft = maxBytes;
  let truncated = false;
  for (const [index, row] of rows.entries()) {
    if (bytesLeft <= NO_MESSAGES_BYTES) {
      // Nothing more fits, so nothing is read.
      Object.assign(shown[index] ?? {}, { messages: [] });
      truncated = true;
      continue;
    }
    const found = await lastMessages(ctx.db, row.session.sessionId, limit, { includeTools: false });
    const cut = await cutHistory(found, { maxTextChars, maxBytes: bytesLeft }, ctx.engine.redactor);
    const messages: readonly Message[] = cut.messages;
    bytesLeft = Math.max(0, bytesLeft - cut.bytes);
    truncated ||= cut.truncated || cut.droppedMessages > 0;
    Object.assign(shown[index] ?? {}, { messages });
  }
  return truncated;
}
