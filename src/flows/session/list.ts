// Lists the sessions that a viewer may see, with their current activity. The query covers only sessions that
// the viewer could see, and visibility is then checked for each row (I9). A page costs a fixed number of
// queries, plus the queries for the relations that the visibility check needs.

import { type AccessContext, openGate, viewerScope } from "../../access/access.ts";
import { optional } from "../../core/optional.ts";
import type { Viewer } from "../../core/rules/visibility.ts";
import type { Session, SessionState } from "../../core/shapes/session.ts";
import {
  type ChildCounts,
  childCounts,
  type FilterCounts,
  filterCounts,
  type SumBelow,
  sumsBelow,
} from "../../store/queries/sessions/counts.ts";
import { listSessions, type SessionFilter } from "../../store/queries/sessions/session-lists.ts";
import { activityOf, getSession } from "../../store/queries/sessions/sessions.ts";

/** Filter of a list. With any filter, the visibility check shows archived sessions only to operators. */
export type ListFilter = Omit<SessionFilter, "scope">;

export interface ListedSession {
  readonly session: Session;
  readonly state: SessionState;
  readonly queuedRuns: number;
}

export interface SessionPage {
  readonly rows: readonly ListedSession[];
  readonly nextCursor?: string;
}

/**
 * Maximum number of store pages read to fill one page. After that a shorter page with a cursor is returned.
 */
const PAGES_MAX = 10;

/** Returns visible sessions, newest first. */
export async function listVisible(
  ctx: AccessContext,
  viewer: Viewer,
  filter: ListFilter,
): Promise<SessionPage> {
  const gate = openGate(ctx, viewer);
  const scope = viewerScope(ctx, viewer);
  const seen: Session[] = [];
  let cursor = filter.cursor;
  for (let page = 0; page < PAGES_MAX && seen.length < filter.limit; page++) {
    const limit = filter.limit - seen.length;
    const found = await listSessions(ctx.db, {
      ...filter,
      scope,
      limit,
      ...optional({ cursor }),
    });
    for (const row of found.rows) if (await gate.admits("list", row)) seen.push(row);
    cursor = found.nextCursor;
    // The page may be short because the store reached its maximum of rows to read. Then the caller continues
    // from the cursor.
    if (cursor === undefined || found.rows.length < limit) break;
  }
  const activity = await activityOf(
    ctx.db,
    seen.map((session) => session.key),
  );
  const rows = seen.map((session) => ({
    session,
    ...(activity.get(session.key) ?? { state: "idle" as const, queuedRuns: 0 }),
  }));
  return { rows, ...optional({ nextCursor: cursor }) };
}

/**
 * Returns, for each session, the number of visible sessions that it spawned. Sessions without any are left
 * out.
 */
export async function visibleChildren(
  ctx: AccessContext,
  viewer: Viewer,
  of: { readonly keys: readonly string[]; readonly includeArchived?: boolean },
): Promise<ReadonlyMap<string, ChildCounts & { readonly below?: SumBelow }>> {
  const scope = viewerScope(ctx, viewer);
  const counts = await childCounts(ctx.db, { ...of, scope });
  const sums = await sumsBelow(ctx.db, { ...of, keys: [...counts.keys()], scope });
  return new Map([...counts].map(([key, own]) => [key, { ...own, ...optional({ below: sums.get(key) }) }]));
}

/** Counts the visible sessions that are running, that failed, and that got a message with this token. */
export async function visibleCounts(
  ctx: AccessContext,
  viewer: Viewer,
  askedBy: string,
): Promise<FilterCounts> {
  return filterCounts(ctx.db, { scope: viewerScope(ctx, viewer), askedBy });
}

/** Returns the visible spawners of these sessions. Invisible spawners are left out. */
export async function visibleSpawners(
  ctx: AccessContext,
  viewer: Viewer,
  sessions: readonly Session[],
): Promise<ReadonlySet<string>> {
  const gate = openGate(ctx, viewer);
  const seen = new Set<string>();
  const listed = new Map(sessions.map((session) => [session.key, session]));
  for (const key of new Set(sessions.flatMap(({ spawnedBy }) => spawnedBy ?? []))) {
    const spawner = listed.get(key) ?? (await getSession(ctx.db, key));
    if (spawner !== undefined && (await gate.admits("list", spawner))) seen.add(key);
  }
  return seen;
}
