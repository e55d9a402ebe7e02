// Owns the tool `sessions_list`: which sessions the caller can see, newest first (SPEC 3).

import { existsSync } from "node:fs";
import { badCursor, fail, ok, type Result, toolFailure } from "../core/errors.ts";
import { cutHistory } from "../core/history-cut.ts";
import type { Message } from "../core/message.ts";
import { optional } from "../core/optional.ts";
import { redactMessage, redactSecrets } from "../core/redact.ts";
import { SESSION_KINDS, type Session, type SessionKind } from "../core/session.ts";
import { channelOf, isAgentId } from "../core/session-key.ts";
import { modelOf } from "../core/settings.ts";
import { shownKey, visibilityOf } from "../flows/access.ts";
import { type ListedSession, type ListFilter, listVisible, visibleSpawners } from "../flows/list.ts";
import { isSessionCursor } from "../store/session-lists.ts";
import { lastMessages } from "../store/transcripts.ts";
import { countArgument, textArgument } from "./arguments.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

const LIMIT = { fallback: 50, min: 1, max: 200 };
const MESSAGE_LIMIT = { fallback: 0, min: 0, max: 20 };
const SEARCH_CHARS_MAX = 200;
const CURSOR_CHARS_MAX = 2_000;
const MINUTE_MS = 60_000;
/** An empty list of messages, as JSON. */
const NO_MESSAGES_BYTES = 2;

export const sessionsList: Tool = {
  spec: {
    name: "sessions_list",
    description:
      "List the sessions that you can see, newest first, with what each one is doing. " +
      "Use the `key` of a row as sessionKey in sessions_history and sessions_send.",
    parameters: {
      type: "object",
      properties: {
        kinds: {
          type: "array",
          items: { type: "string" },
          description: `Only these kinds: ${SESSION_KINDS.join(", ")}. Default: all.`,
        },
        limit: { type: "number", description: `Most rows. Default ${LIMIT.fallback}, at most ${LIMIT.max}.` },
        activeMinutes: { type: "number", description: "Only sessions updated in the last N minutes." },
        messageLimit: {
          type: "number",
          description:
            "Adds the last N messages of each session, without tool results. " +
            `Default ${MESSAGE_LIMIT.fallback}, at most ${MESSAGE_LIMIT.max}.`,
        },
        search: { type: "string", description: "Part of a label, a name or a key." },
        agentId: { type: "string", description: "Only sessions of this agent." },
        cursor: { type: "string", description: "`nextCursor` of the page before." },
      },
    },
    parallel: true,
    idempotent: true,
  },
  async execute(ctx, args) {
    const request = readRequest(args, ctx.engine.now());
    if (!request.ok) return toolFailure(request);
    const { filter, messageLimit } = request.value;
    const { rows, nextCursor } = await listVisible(ctx, ctx.viewer, filter);
    const listed = rows.map((row) => row.session);
    const spawners = await visibleSpawners(ctx, ctx.viewer, listed);
    const sessions = rows.map((row) => sessionRow(ctx, row, spawners));
    const cut = messageLimit > 0 ? await addMessages(ctx, rows, sessions, messageLimit) : false;
    return {
      count: sessions.length,
      sessions,
      ...(nextCursor === undefined ? {} : { nextCursor }),
      visibility: visibilityOf(ctx, ctx.viewer),
      ...(cut ? { messagesTruncated: true } : {}),
    };
  },
};

interface ListRequest {
  readonly filter: ListFilter;
  readonly messageLimit: number;
}

function readRequest(args: Record<string, unknown>, nowMs: number): Result<ListRequest> {
  const limit = countArgument(args, "limit", LIMIT);
  if (!limit.ok) return limit;
  const messageLimit = countArgument(args, "messageLimit", MESSAGE_LIMIT);
  if (!messageLimit.ok) return messageLimit;
  const kinds = readKinds(args.kinds);
  if (!kinds.ok) return kinds;
  const search = textArgument(args, "search", SEARCH_CHARS_MAX);
  if (!search.ok) return search;
  const cursor = textArgument(args, "cursor", CURSOR_CHARS_MAX);
  if (!cursor.ok) return cursor;
  if (cursor.value !== undefined && !isSessionCursor(cursor.value)) return badCursor("this tool");
  const agentId = readAgentId(args.agentId);
  if (!agentId.ok) return agentId;
  const { activeMinutes } = args;
  if (typeof activeMinutes === "number" && activeMinutes <= 0) {
    return fail("invalid_argument", `activeMinutes must be more than 0, got ${activeMinutes}`, {
      hint: "Leave activeMinutes out for sessions of any age.",
    });
  }
  const filter: ListFilter = {
    limit: limit.value,
    ...(kinds.value === undefined ? {} : { kinds: kinds.value }),
    ...(search.value === undefined ? {} : { search: search.value.trim() }),
    ...(cursor.value === undefined ? {} : { cursor: cursor.value }),
    ...(agentId.value === undefined ? {} : { agentId: agentId.value }),
    ...(typeof activeMinutes === "number"
      ? { activeSinceMs: Math.max(0, Math.floor(nowMs - activeMinutes * MINUTE_MS)) }
      : {}),
  };
  return ok({ filter, messageLimit: messageLimit.value });
}

function readKinds(value: unknown): Result<SessionKind[] | undefined> {
  if (!Array.isArray(value)) return ok(undefined);
  const valid = `valid kinds: ${SESSION_KINDS.join(", ")}`;
  if (value.length === 0) {
    return fail("invalid_argument", `kinds must not be empty; ${valid}`, {
      hint: "Leave kinds out for all.",
    });
  }
  const isKind = (kind: unknown): kind is SessionKind => SESSION_KINDS.some((known) => known === kind);
  const unknown = value.filter((kind) => !isKind(kind));
  if (unknown.length > 0) {
    const named = unknown.slice(0, 3).map((kind) => JSON.stringify(String(kind).slice(0, 40)));
    return fail("invalid_argument", `unknown kind ${named.join(", ")}; ${valid}`);
  }
  return ok([...new Set(value.filter(isKind))]);
}

/** An agent id as it is stored, from an optional argument. */
export function readAgentId(value: unknown): Result<string | undefined> {
  if (typeof value !== "string") return ok(undefined);
  const agentId = value.trim().toLowerCase();
  if (isAgentId(agentId)) return ok(agentId);
  return fail("invalid_argument", "agentId must be 1 to 64 of a-z, 0-9, _ and -", {
    hint: "agents_list and the agentId of a row in sessions_list show valid ones.",
  });
}

function routeFields(session: Session): ToolResult {
  const route = session.lastRoute;
  if (route === undefined) return {};
  const { channel, to, accountId, threadId } = route;
  return {
    lastChannel: channel,
    lastTo: to,
    ...(accountId === undefined ? {} : { lastAccountId: accountId }),
    deliveryContext: {
      channel,
      to,
      ...(accountId === undefined ? {} : { accountId }),
      ...(threadId === undefined ? {} : { threadId }),
    },
  };
}

/** The readable copy, once there is one: a session in which nothing was said has none yet. */
function transcriptPathOf(ctx: ToolContext, session: Session): string | undefined {
  const path = ctx.engine.store.transcriptPath(session.sessionId);
  return path !== undefined && existsSync(path) ? path : undefined;
}

function sessionRow(ctx: ToolContext, row: ListedSession, spawners: ReadonlySet<string>): ToolResult {
  const { session, state, queuedRuns } = row;
  const { label, displayName } = session;
  const spawnedBy = spawners.has(session.spawnedBy ?? "") ? session.spawnedBy : undefined;
  return {
    key: shownKey(ctx, ctx.viewer, session.key),
    kind: session.kind,
    channel: channelOf(session),
    ...optional({
      label: label && redactSecrets(label),
      displayName: displayName && redactSecrets(displayName),
    }),
    agentId: session.agentId,
    updatedAt: session.updatedAt,
    sessionId: session.sessionId,
    model: modelOf(ctx.settings, session),
    contextTokens: session.contextTokens,
    totalTokens: session.totalTokens,
    ...optional({ thinkingLevel: session.thinkingLevel, verboseLevel: session.verboseLevel }),
    systemSent: session.systemSent,
    abortedLastRun: session.abortedLastRun,
    ...optional({ sendPolicy: session.sendPolicy }),
    ...routeFields(session),
    ...optional({
      spawnedBy: spawnedBy && shownKey(ctx, ctx.viewer, spawnedBy),
      transcriptPath: transcriptPathOf(ctx, session),
    }),
    state,
    queuedRuns,
  };
}

/** Adds the last messages of each session, newest session first, up to the byte cap. True: some were cut. */
async function addMessages(
  ctx: ToolContext,
  rows: readonly ListedSession[],
  shown: readonly ToolResult[],
  limit: number,
): Promise<boolean> {
  const { maxTextChars, maxBytes } = ctx.settings.tools.history;
  let bytesLeft = maxBytes;
  let truncated = false;
  for (const [index, row] of rows.entries()) {
    if (bytesLeft <= NO_MESSAGES_BYTES) {
      // Nothing would fit: what is not shown is not read either.
      Object.assign(shown[index] ?? {}, { messages: [] });
      truncated = true;
      continue;
    }
    const found = await lastMessages(ctx.db, row.session.sessionId, limit, { includeTools: false });
    const cut = cutHistory(found.map(redactMessage), { maxTextChars, maxBytes: bytesLeft });
    const messages: readonly Message[] = cut.messages;
    bytesLeft = Math.max(0, bytesLeft - cut.bytes);
    truncated ||= cut.truncated || cut.droppedMessages > 0;
    Object.assign(shown[index] ?? {}, { messages });
  }
  return truncated;
}
