// Counts sessions of a list, up to a limit: the children of each session by state, all sessions below each
// session with their cost, and the sessions that match a filter.

import { sql } from "kysely";
import type { Db } from "../../sql.ts";
import { ACTIVE } from "../runs/runs.ts";
import { askedCondition, HAS_FAILED, type SessionFilter } from "./session-lists.ts";
import { inScope } from "./session-scope.ts";

/** Maximum value of a count. */
const COUNTED_MAX = 1_000;

/** Number of newest sessions among which the sessions with a message of a token are counted. */
const OWN_AMONG_MAX = 10_000;

/** Counts of the sessions that one session spawned, each at most `COUNTED_MAX`. */
export interface ChildCounts {
  readonly children: number;
  /** Children with an unfinished run. */
  readonly running: number;
  /** Children without an unfinished run whose last turn failed. */
  readonly failed: number;
  /** Children without an unfinished run whose last turn was stopped. */
  readonly stopped: number;
}

/**
 * Counts, for each of these sessions, its children that a list with `spawnedBy` would show. Sessions without
 * children are missing.
 */
export async function childCounts(
  db: Db,
  of: Pick<SessionFilter, "scope" | "includeArchived"> & { readonly keys: readonly string[] },
): Promise<Map<string, ChildCounts>> {
  if (of.keys.length === 0) return new Map();
  const keys = sql.join(of.keys);
  const max = sql.lit(COUNTED_MAX);
  const fits = inScope(db, of);
  const { rows } = await sql<ChildCounts & { key: string }>`
    with busy (parent, key) as (
      select distinct s.spawned_by, s.key from runs r join sessions s on s.key = r.session_key
      where r.state in (${sql.join(ACTIVE)}) and s.spawned_by in (${keys}) and ${fits}
    )
    select p.key,
      (select count(*) from (
        select 1 from sessions s where s.spawned_by = p.key and ${fits} limit ${max}
      ) as counted) as children,
      (select count(*) from busy where busy.parent = p.key) as running,
      (select count(*) from (
        select 1 from sessions s where s.spawned_by = p.key and s.failed_run is not null and ${fits}
          and s.key not in (select busy.key from busy) limit ${max}
      ) as counted) as failed,
      (select count(*) from (
        select s.key, s.aborted_last_run, s.failed_run from sessions s where s.spawned_by = p.key and ${fits}
          limit ${max}
      ) as s where s.aborted_last_run = 1 and s.failed_run is null
        and s.key not in (select busy.key from busy)) as stopped
    from sessions p where p.key in (${keys})`.execute(db);
  return new Map(
    rows
      .filter(({ children }) => children > 0)
      .map(({ key, children, ...counted }) => {
        // If there are more children than are counted, the sum of the states must not exceed the count.
        const running = Math.min(counted.running, children);
        const failed = Math.min(counted.failed, children - running);
        const stopped = Math.min(counted.stopped, children - running - failed);
        return [key, { children, running, failed, stopped }];
      }),
  );
}

/** The sessions below one session, on all levels. */
export interface SumBelow {
  readonly sessions: number;
  readonly tokens: number;
  /** In USD. */
  readonly cost: number;
}

/** Maximum number of sessions that one call of `sumsBelow` adds up. */
const ADDED_MAX = 10_000;

/**
 * Adds up, for each of these sessions, the sessions below it that a reader would find by opening its tree.
 * If there are more than `max`, no sum would be right, so none is returned. This also ends a cycle in damaged
 * data.
 */
export async function sumsBelow(
  db: Db,
  of: Parameters<typeof childCounts>[1],
  max = ADDED_MAX,
): Promise<Map<string, SumBelow>> {
  if (of.keys.length === 0) return new Map();
  const fits = inScope(db, of);
  // SQLite would read all unarchived sessions at each step, if the join did not say which table is first.
  const { rows } = await sql<SumBelow & { key: string }>`
    with recursive down (root, key, tokens, cost) as (
      select s.spawned_by, s.key, s.total_tokens, s.cost from sessions s
      where s.spawned_by in (${sql.join(of.keys)}) and ${fits}
      union all
      select down.root, s.key, s.total_tokens, s.cost from down cross join sessions s
      where s.spawned_by = down.key and ${fits}
    )
    select root as key, count(*) as sessions, sum(tokens) as tokens, sum(cost) as cost
    from (select * from down limit ${sql.lit(max + 1)}) as limited group by root`.execute(db);
  const sums = rows.map(({ key, sessions, tokens, cost }) => [key, { sessions, tokens, cost }] as const);
  return sums.reduce((sum, [, one]) => sum + one.sessions, 0) > max ? new Map() : new Map(sums);
}

/** Numbers of sessions that match a filter, each at most `COUNTED_MAX`. */
export interface FilterCounts {
  readonly running: number;
  readonly failed: number;
  /**
   * Number of sessions, among the newest `OWN_AMONG_MAX`, with a message that was sent with the given token.
   */
  readonly mine: number;
}

/** Counts the sessions that lists with `doing` or `askedBy` would show, without archived ones. */
export async function filterCounts(
  db: Db,
  { scope, askedBy }: { readonly scope: SessionFilter["scope"]; readonly askedBy: string },
): Promise<FilterCounts> {
  const max = sql.lit(COUNTED_MAX);
  const fits = inScope(db, { scope });
  const { rows } = await sql<FilterCounts>`select
    (select count(*) from (
      select distinct s.key from runs r cross join sessions s
      where r.state in (${sql.join(ACTIVE)}) and s.key = r.session_key and ${fits} limit ${max}
    ) as counted) as running,
    (select count(*) from (
      select 1 from sessions s where ${HAS_FAILED} and ${fits} limit ${max}
    ) as counted) as failed,
    (select count(*) from (
      select 1 from (
        select s.key from sessions s where ${fits}
        order by s.updated_at desc, s.key desc limit ${sql.lit(OWN_AMONG_MAX)}
      ) as s where ${askedCondition(askedBy)} limit ${max}
    ) as counted) as mine`.execute(db);
  return rows[0] ?? { running: 0, failed: 0, mine: 0 };
}
