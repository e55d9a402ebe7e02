// Implements the tool `sessions_list`, which returns the sessions that the caller can see, newest first.

import { narrowingFor, shownKey, visibilityOf } from "../../access/access.ts";
import { LIST_LIMIT, LIST_MESSAGE_LIMIT } from "../../contract/tools/sessions.ts";
import type { ArgumentsOf, ToolResultOf } from "../../contract/tools.ts";
import { optional } from "../../core/optional.ts";
import { joinLabels, labelOfSession, withLabels } from "../../core/rules/labels/labels.ts";
import { badCursor, fail, ok } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { Message } from "../../core/shapes/message.ts";
import type { Session } from "../../core/shapes/session.ts";
import { channelOf } from "../../core/shapes/session-key.ts";
import { modelOf, windowOf } from "../../core/shapes/settings/settings.ts";
import { cutHistory } from "../../core/text/history-cut.ts";
import {
  type ListedSession,
  type ListFilter,
  listVisible,
  visibleSpawners,
} from "../../flows/session/list.ts";
import { isSessionCursor } from "../../store/queries/sessions/session-lists.ts";
import { lastLabelled } from "../../store/queries/transcripts/transcripts.ts";
import { agentIdLimit, countLimit, formLimit, textLimit } from "../arguments.ts";
import { type ReadingContext, type Tool, tool } from "../tool.ts";
import { withoutHiddenSources } from "./history.ts";

const SEARCH_CHARS_MAX = 200;
const CURSOR_CHARS_MAX = 2_000;
const MINUTE_MS = 60_000;
/** Size of an empty list of messages as JSON. */
const NO_MESSAGES_BYTES = 2;

type SessionRow = ToolResultOf<"sessions_list">["sessions"][number];
type PlaceFields = Pick<SessionRow, "lastChannel" | "lastTo" | "lastAccountId" | "deliveryContext">;

export const sessionsList: Tool<ReadingContext> = tool("sessions_list", {
  limits: {
    limit: countLimit(LIST_LIMIT),
    messageLimit: countLimit(LIST_MESSAGE_LIMIT),
    search: textLimit(SEARCH_CHARS_MAX),
    agentId: agentIdLimit,
    cursor: formLimit(CURSOR_CHARS_MAX, (cursor) =>
      isSessionCursor(cursor) ? undefined : badCursor("this tool"),
    ),
    activeMinutes: (value: unknown, name: string) =>
      typeof value !== "number"
        ? ok(undefined)
        : value > 0
          ? ok(value)
          : fail("invalid_argument", `${name} must be more than 0, got ${value}`, {
              hint: "Omit activeMinutes to list sessions of any age.",
            }),
  },
  async execute(ctx, { messageLimit, ...args }) {
    const { limit, kinds, search, cursor, agentId, activeMinutes } = args;
    const now = ctx.engine.now();
    const activeSinceMs =
      activeMinutes === undefined ? undefined : Math.max(0, Math.floor(now - activeMinutes * MINUTE_MS));
    const filter: ListFilter = {
      limit,
      ...optional({
        kinds: kinds && [...new Set(kinds)],
        search: search?.trim(),
        cursor,
        agentId,
        activeSinceMs,
      }),
    };
    const { rows, nextCursor } = await listVisible(ctx, ctx.viewer, filter);
    const listed = rows.map((row) => row.session);
    const spawners = await visibleSpawners(ctx, ctx.viewer, listed);
    const sessions = rows.map((row) => sessionRow(ctx, row, spawners));
    // Without their messages, the list has short titles only.
    const { cut, labels } = await addMessages(ctx, messageLimit > 0 ? rows : [], sessions, messageLimit);
    const answer: ToolResultOf<"sessions_list"> = {
      count: sessions.length,
      sessions,
      ...optional({ nextCursor }),
      visibility: visibilityOf(ctx, ctx.viewer),
      ...optional({ filtered: filteredBy(narrowingFor(ctx, ctx.viewer), args, nextCursor) }),
      ...(cut ? { messagesTruncated: true } : {}),
    };
    return ok(withLabels(answer, labels));
  },
});

/** Names what may keep sessions out of a list: settings, arguments, the end of the page. */
function filteredBy(
  settings: readonly string[],
  { kinds, search, agentId, activeMinutes }: ArgumentsOf<"sessions_list">,
  nextCursor: string | undefined,
): ToolResultOf<"sessions_list">["filtered"] {
  const named = Object.keys(optional({ kinds, search, agentId, activeMinutes }));
  const hints = optional({
    visibility: settings.length > 0 ? `It has only what ${settings.join(" and ")} shows to you.` : undefined,
    arguments: named.length > 0 ? `It has only what ${named.join(", ")} match.` : undefined,
    limit: nextCursor === undefined ? undefined : "For more rows, set cursor to nextCursor.",
  });
  const reasons = Object.keys(hints) as (keyof typeof hints)[];
  if (reasons.length === 0) return undefined;
  return { reasons, hint: ["This list may be incomplete.", ...Object.values(hints)].join(" ") };
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

/** Returns the row of one session. Each field is set separately, which is faster. */
function sessionRow(ctx: ReadingContext, listed: ListedSession, spawners: ReadonlySet<string>): SessionRow {
  const { session, state, queuedRuns } = listed;
  const { label, displayName, spawnedBy = "" } = session;
  const model = modelOf(ctx.settings, session);
  const row: { -readonly [K in keyof SessionRow]: SessionRow[K] } = {
    key: shownKey(ctx, ctx.viewer, session.key),
    kind: session.kind,
    channel: channelOf(session),
    agentId: session.agentId,
    updatedAt: session.updatedAt,
    sessionId: session.sessionId,
    model,
    contextTokens: windowOf(ctx.settings, model),
    contextUsed: session.contextUsed,
    totalTokens: session.totalTokens,
    systemSent: session.systemSent,
    abortedLastRun: session.abortedLastRun,
    state,
    queuedRuns,
  };
  if (label !== undefined) row.label = ctx.engine.redactor.mask(label);
  if (displayName !== undefined) row.displayName = ctx.engine.redactor.mask(displayName);
  if (session.thinkingLevel !== undefined) row.thinkingLevel = session.thinkingLevel;
  if (session.verboseLevel !== undefined) row.verboseLevel = session.verboseLevel;
  if (session.sendPolicy !== undefined) row.sendPolicy = session.sendPolicy;
  if (session.lastRoute !== undefined) Object.assign(row, placeFields(session));
  if (spawners.has(spawnedBy)) row.spawnedBy = shownKey(ctx, ctx.viewer, spawnedBy);
  const path = ctx.engine.store.writtenTranscript(session.sessionId);
  if (path !== undefined) row.transcriptPath = path;
  return row;
}

/**
 * Adds each session's last messages, newest session first, up to the byte limit. Returns their labels, and
 * whether some were left out.
 */
async function addMessages(
  ctx: ReadingContext,
  rows: readonly ListedSession[],
  shown: readonly SessionRow[],
  limit: number,
): Promise<{ readonly cut: boolean; readonly labels: Labels | undefined }> {
  const { maxTextChars, maxBytes } = ctx.settings.tools.history;
  let bytesLeft = maxBytes;
  let truncated = false;
  let labels: Labels | undefined;
  for (const [index, row] of rows.entries()) {
    if (bytesLeft <= NO_MESSAGES_BYTES) {
      // No more messages fit, so the messages of this session are not read.
      Object.assign(shown[index] ?? {}, { messages: [] });
      truncated = true;
      continue;
    }
    const found = await lastLabelled(ctx.db, row.session.sessionId, limit, { includeTools: false });
    labels = joinLabels(joinLabels(labels, found.labels), labelOfSession(ctx.settings, row.session));
    const shownTo = await withoutHiddenSources(ctx, found.messages);
    const cut = await cutHistory(shownTo, { maxTextChars, maxBytes: bytesLeft }, ctx.engine.redactor);
    const messages: readonly Message[] = cut.messages;
    bytesLeft = Math.max(0, bytesLeft - cut.bytes);
    truncated ||= cut.truncated || cut.droppedMessages > 0;
    Object.assign(shown[index] ?? {}, { messages });
  }
  return { cut: truncated, labels };
}
