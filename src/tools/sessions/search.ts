// Implements the tool `sessions_search`: full-text search in the transcripts of visible sessions. The query
// is treated as words, never as search syntax. Every hit passes the visibility check (I9), and its excerpt is
// redacted (I14). A read worker searches the index, and stops when the caller stops waiting.

import { openGate, shownKey, viewerScope } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { SEARCH_LIMIT } from "../../contract/tools/sessions.ts";
import { optional } from "../../core/optional.ts";
import { badCursor, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { type SearchHit, searchTranscripts } from "../../store/queries/transcripts/transcript-search.ts";
import { agentIdLimit, countLimit, formLimit, textLimit } from "../arguments.ts";
import { type ReadingContext, type RunContext, type Tool, tool } from "../tool.ts";

const QUERY_CHARS_MAX = 500;
const CURSOR_CHARS_MAX = 2_000;

export const sessionsSearch: Tool<ReadingContext & Pick<RunContext, "signal">> = tool("sessions_search", {
  limits: {
    query: textLimit(QUERY_CHARS_MAX),
    sessionKey: textLimit(KEY_CHARS_MAX),
    agentId: agentIdLimit,
    limit: countLimit(SEARCH_LIMIT),
    cursor: formLimit(CURSOR_CHARS_MAX, (cursor) =>
      /^\d{1,15}$/.test(cursor) ? undefined : badCursor("this tool"),
    ),
  },
  async execute(ctx, { sessionKey, query, cursor, agentId, limit }) {
    const only = await namedSession(ctx, sessionKey);
    if (!only.ok) return only;

    const question = {
      query,
      scope: viewerScope(ctx, ctx.viewer),
      limit,
      redactor: ctx.engine.redactor,
      ...optional({ cursor, agentId, sessionKey: only.value?.key }),
    };
    const page = await searchTranscripts(ctx.engine.store.readWorker ?? ctx.db, question, ctx.signal);
    const hits = await visibleHits(ctx, page.hits);
    return ok({
      count: hits.length,
      hits,
      ...optional({ nextCursor: page.nextCursor }),
    });
  },
});

async function namedSession(
  ctx: ReadingContext,
  sessionKey: string | undefined,
): Promise<Result<Session | undefined>> {
  if (sessionKey === undefined) return ok(undefined);
  return resolveSession(ctx, ctx.viewer, "search", { sessionKey });
}

async function visibleHits(ctx: ReadingContext, hits: readonly SearchHit[]): Promise<SearchHit[]> {
  const gate = openGate(ctx, ctx.viewer);
  const admitted = new Map<string, boolean>();
  for (const key of new Set(hits.map((hit) => hit.sessionKey))) {
    const session = await getSession(ctx.db, key);
    admitted.set(key, session !== undefined && (await gate.admits("search", session)));
  }
  return hits
    .filter((hit) => admitted.get(hit.sessionKey) === true)
    .map((hit) => ({ ...hit, sessionKey: shownKey(ctx, ctx.viewer, hit.sessionKey) }));
}
