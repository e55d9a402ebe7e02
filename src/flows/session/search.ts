// Full-text search in the transcripts of visible sessions, for the tool `sessions_search` and for clients. A
// query consists of words and has no search syntax. Every hit passes the visibility check (I9), and its
// excerpt is redacted (I14). A read worker reads the index, and stops when the caller stops waiting.

import { type AccessContext, openGate, shownKey, viewerScope } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import {
  type SearchHit,
  type SearchPage,
  searchTranscripts,
} from "../../store/queries/transcripts/transcript-search.ts";
import type { Db } from "../../store/sql.ts";

/** The dependencies of a search. */
export interface SearchParts extends AccessContext {
  readonly viewer: Viewer;
  readonly redactor: Redactor;
  /** Database connection that reads the index. Default: `db`. */
  readonly readWorker: Db | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Limits the search to this session. */
  readonly sessionKey?: string | undefined;
  /** Limits the search to sessions of this agent. */
  readonly agentId?: string | undefined;
}

export async function searchVisible(parts: SearchParts, request: SearchRequest): Promise<Result<SearchPage>> {
  const { viewer, redactor, readWorker, db, signal } = parts;
  const { query, limit, cursor, agentId, sessionKey } = request;
  const named =
    sessionKey === undefined ? ok(undefined) : await resolveSession(parts, viewer, "search", { sessionKey });
  if (!named.ok) return named;
  const scope = viewerScope(parts, viewer);
  const question = { query, limit, scope, redactor };
  const page = await searchTranscripts(
    readWorker ?? db,
    { ...question, ...optional({ cursor, agentId, sessionKey: named.value?.key }) },
    signal,
  );
  const hits = await visibleHits(parts, page.hits);
  return ok({ hits, ...optional({ nextCursor: page.nextCursor }) });
}

async function visibleHits(parts: SearchParts, hits: readonly SearchHit[]): Promise<SearchHit[]> {
  const gate = openGate(parts, parts.viewer);
  const admitted = new Map<string, boolean>();
  for (const key of new Set(hits.map((hit) => hit.sessionKey))) {
    const session = await getSession(parts.db, key);
    admitted.set(key, session !== undefined && (await gate.admits("search", session)));
  }
  return hits
    .filter((hit) => admitted.get(hit.sessionKey) === true)
    .map((hit) => ({ ...hit, sessionKey: shownKey(parts, parts.viewer, hit.sessionKey) }));
}
