// Owns the list of the sessions that a viewer may see, with what each one is doing.
// LV1: the query is narrowed to what the viewer could reach; each row then passes the gate (I9).
// LV2: a page costs a fixed number of queries; only relations that the gate must follow add any.

import type { Session, SessionState } from "../core/session.ts";
import type { Viewer } from "../core/visibility.ts";
import { childCounts, listSessions, type SessionFilter } from "../store/session-lists.ts";
import { activityOf, getSession } from "../store/sessions.ts";
import { type AccessContext, openGate, viewerScope } from "./access.ts";

/** The gate hides archived sessions from everybody but operators, whatever is asked for. */
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

/** Store pages read to fill one page when the gate refuses rows; a shorter page with a cursor after that. */
const PAGES_MAX = 10;

/** Visible sessions, newest first. */
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
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const row of found.rows) if (await gate.admits("list", row)) seen.push(row);
    cursor = found.nextCursor;
    // The store read as much as it may for one page: its cursor goes on, and the caller decides whether to.
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
  return { rows, ...(cursor === undefined ? {} : { nextCursor: cursor }) };
}

/** How many sessions that a list would show each of these spawned; none: it is left out. */
export async function visibleChildren(
  ctx: AccessContext,
  viewer: Viewer,
  of: { readonly keys: readonly string[]; readonly includeArchived?: boolean },
): Promise<ReadonlyMap<string, number>> {
  return childCounts(ctx.db, { ...of, scope: viewerScope(ctx, viewer) });
}

/** Those who spawned these sessions, as far as the viewer may see them: a row names nobody else. */
export async function visibleSpawners(
  ctx: AccessContext,
  viewer: Viewer,
  sessions: readonly Session[],
): Promise<ReadonlySet<string>> {
  const gate = openGate(ctx, viewer);
  const seen = new Set<string>();
  for (const key of new Set(sessions.flatMap(({ spawnedBy }) => spawnedBy ?? []))) {
    const spawner = sessions.find((session) => session.key === key) ?? (await getSession(ctx.db, key));
    if (spawner !== undefined && (await gate.admits("list", spawner))) seen.add(key);
  }
  return seen;
}
