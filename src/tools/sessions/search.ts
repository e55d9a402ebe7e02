// The tool `sessions_search`: full-text search in the transcripts of visible sessions. The query is words,
// never search syntax. Every hit passes the visibility check (I9), and its excerpt is redacted (I14). A read
// worker reads the index, and stops when the caller stops waiting.

import { openGate, shownKey, viewerScope } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { optional } from "../../core/optional.ts";
import { badCursor, ok, type Result } from "../../core/shapes/errors.ts";
import type { Session } from "../../core/shapes/session.ts";
import { KEY_CHARS_MAX } from "../../core/shapes/session-key.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import { type SearchHit, searchTranscripts } from "../../store/queries/transcripts/transcript-search.ts";
import { agentIdLimit, countLimit, formLimit, textLimit } from "../arguments.ts";
import type { ReadingContext, RunContext, Tool } from "../tool.ts";

const LIMIT = { fallback: 20, min: 1, max: 100 };
const QUERY_CHARS_MAX = 500;
const CURSOR_CHARS_MAX = 2_000;

type SearchResult = {
  readonly count: number;
  readonly hits: readonly SearchHit[];
  readonly nextCursor?: string;
};

export const sessionsSearch: Tool<ReadingContext & Pick<RunContext, "signal">, SearchResult> = {
  spec: {
    name: "sessions_search",
    description:
      "Find messages by their words in the transcripts of the sessions that you can see. " +
      "Returns excerpts with message ids; use sessions_history to read the messages around one. " +
      "A hit with `earlier` is from before a reset: only its excerpt can be read.",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words that the message contains." },
        sessionKey: { type: "string", description: "Only this session." },
        agentId: { type: "string", description: "Only sessions of this agent." },
        limit: {
          type: "number",
          description: `Maximum number of hits. Default ${LIMIT.fallback}, at most ${LIMIT.max}.`,
        },
        cursor: { type: "string", description: "`nextCursor` of the previous page." },
      },
      required: ["query"],
    },
    parallel: true,
    idempotent: true,
  },
  limits: {
    query: textLimit(QUERY_CHARS_MAX),
    sessionKey: textLimit(KEY_CHARS_MAX),
    agentId: agentIdLimit,
    limit: countLimit(LIMIT),
    cursor: formLimit(CURSOR_CHARS_MAX, (cursor) =>
      /^\d{1,15}$/.test(cursor) ? undefined : badCursor("this tool"),
    ),
  },
  async execute(ctx, args) {
    const { sessionKey, query = "", cursor, agentId } = args as Partial<Record<string, string>>;
    const only = await namedSession(ctx, sessionKey);
    if (!only.ok) return only;

    const question = {
      query,
      scope: viewerScope(ctx, ctx.viewer),
      limit: args.limit as number,
      redactor: ctx.engine.redactor,
      ...optional({ cursor, agentId }),
      ...(only.value === undefined ? {} : { sessionKey: only.value.key }),
    };
    const page = await searchTranscripts(ctx.engine.store.readWorker ?? ctx.db, question, ctx.signal);
    const hits = await visibleHits(ctx, page.hits);
    return ok({
      count: hits.length,
      hits,
      ...optional({ nextCursor: page.nextCursor }),
    });
  },
};

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
