// Full-text search in the transcripts of visible sessions, for the tool `sessions_search` and for clients. A
// query consists of words and has no search syntax. Every hit passes the visibility check (I9), and its
// excerpt is redacted (I14). An author does not reveal a session that the viewer may not see. A read
// worker reads the index, and stops when the caller stops waiting.

import { type AccessContext, openGate, shownKey, viewerScope } from "../../access/access.ts";
import { resolveSession } from "../../access/resolve.ts";
import { optional } from "../../core/optional.ts";
import { joinLabels, labelOfSession } from "../../core/rules/labels/labels.ts";
import { NOT_VISIBLE, type Viewer } from "../../core/rules/visibility.ts";
import { ok, type Result } from "../../core/shapes/errors.ts";
import type { Labels } from "../../core/shapes/labels.ts";
import type { Session } from "../../core/shapes/session.ts";
import type { Redactor } from "../../core/text/redact/redact.ts";
import { getSession } from "../../store/queries/sessions/sessions.ts";
import {
  type LabelledHit,
  type SearchHit,
  type SearchPage,
  searchTranscripts,
} from "../../store/queries/transcripts/transcript-search.ts";
import type { Db } from "../../store/sql.ts";

export interface SearchParts extends AccessContext {
  readonly viewer: Viewer;
  readonly redactor: Redactor;
  /** Database connection that reads the index. Default: `db`. */
  readonly readWorker: Db | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A session that sent a found message. */
interface Source {
  readonly label?: string;
}

export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly agentId?: string | undefined;
}

/** Hits that the viewer may see, with the labels of everything that their sessions hold. */
export interface VisibleHits {
  readonly page: SearchPage;
  readonly labels: Labels | undefined;
}

export async function searchVisible(
  parts: SearchParts,
  request: SearchRequest,
): Promise<Result<VisibleHits>> {
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
  const { hits, labels } = await visibleHits(parts, page.hits);
  return ok({ page: { hits, ...optional({ nextCursor: page.nextCursor }) }, labels });
}

async function visibleHits(parts: SearchParts, hits: readonly LabelledHit[]) {
  const gate = openGate(parts, parts.viewer);
  const admitted = new Map<string, Session>();
  for (const key of new Set(hits.map((hit) => hit.sessionKey))) {
    const session = await getSession(parts.db, key);
    if (session !== undefined && (await gate.admits("search", session))) admitted.set(key, session);
  }
  const shown = hits.filter((hit) => admitted.has(hit.sessionKey));
  const sources = await sourcesOf(parts, shown);
  const ofSessions = [...admitted.values()].map((session) => labelOfSession(parts.settings, session));
  const all = [...ofSessions, ...shown.map((hit) => hit.labels)];
  const labels = all.reduce<Labels | undefined>(joinLabels, undefined);
  const visible = shown.map(({ labels: _, ...hit }) => ({
    ...hit,
    sessionKey: shownKey(parts, parts.viewer, hit.sessionKey),
    author: shownAuthor(parts, hit, admitted.get(hit.sessionKey)?.agentId, sources),
  }));
  return { hits: visible, labels };
}

/** Returns the sessions that sent these messages, as far as the viewer may see them. */
async function sourcesOf(parts: SearchParts, hits: readonly SearchHit[]): Promise<Map<string, Source>> {
  const gate = openGate(parts, parts.viewer);
  const found = new Map<string, Source>();
  for (const key of new Set(hits.flatMap(({ author }) => author.sessionKey ?? []))) {
    const session = await getSession(parts.db, key);
    // Nobody sees a session that was deleted: its key alone does not tell whose sub-agent it was.
    if (session === undefined || !(await gate.admits("list", session))) continue;
    found.set(key, optional({ label: session.label || session.displayName }));
  }
  return found;
}

/** Returns the author as the viewer may see it. */
function shownAuthor(
  parts: SearchParts,
  { author }: SearchHit,
  agentId: string | undefined,
  sources: ReadonlyMap<string, Source>,
): SearchHit["author"] {
  const { kind, sessionKey } = author;
  if (kind === "agent") return { kind, ...optional({ name: agentId }) };
  const source = sessionKey === undefined ? undefined : sources.get(sessionKey);
  const name = author.name ?? source?.label;
  const shown = source === undefined ? NOT_VISIBLE : shownKey(parts, parts.viewer, sessionKey ?? "");
  return {
    kind,
    ...(name === undefined ? {} : { name: parts.redactor.mask(name) }),
    ...(sessionKey === undefined ? {} : { sessionKey: shown }),
  };
}
