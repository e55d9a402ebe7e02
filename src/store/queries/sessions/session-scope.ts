// Limits a query over sessions to a scope: all sessions that a viewer may possibly see. The conditions
// include every session of the scope, and possibly more, so the visibility check then decides about each row
// (I9).

import { type RawBuilder, type SqlBool, sql } from "kysely";
import { FORKS_MAX } from "../../../core/fork-key.ts";
import type { Scope } from "../../../core/rules/visibility.ts";
import { type Db, kindOf } from "../../sql.ts";

/** A character that sorts after all texts with the same prefix. */
export const LAST_SIGN = "\u{10ffff}";

export type Condition = RawBuilder<SqlBool>;

/** Escapes `text` for a LIKE pattern. */
export function literalLike(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

const FORK_ID_CHARS = 36;
/** Length of the end of a fork's key: `:fork:` and its id. */
const FORK_END_CHARS = ":fork:".length + FORK_ID_CHARS;

/**
 * Matches the keys that a token with these patterns covers (`decideAccess`). A fork is covered only if the
 * sessions from which it was forked are covered, too.
 */
export function patternCondition(
  db: Db,
  key: RawBuilder<unknown>,
  patterns: readonly string[],
  depth = FORKS_MAX,
): Condition {
  // The same keys as those of `matchesPattern`, including case.
  const tests = patterns.map((pattern) => {
    const pieces = pattern.split("*");
    if (kindOf(db) === "sqlite") {
      return sql`${key} glob ${pieces.map((piece) => piece.replace(/[?[]/g, "[$&]")).join("*")}`;
    }
    return sql`${key} like ${pieces.map(literalLike).join("%")} escape '\\'`;
  });
  const matches: Condition = tests.length === 0 ? sql`1 = 0` : sql`(${sql.join(tests, sql` or `)})`;
  if (depth === 0) return matches;
  const origin = sql`substr(${key}, 1, length(${key}) - ${sql.lit(FORK_END_CHARS)})`;
  const covered = patternCondition(db, origin, patterns, depth - 1);
  // Matches the keys of forks, exactly as `forkOrigin` does.
  const id = [8, 4, 4, 4, 12].map((chars) => "[0-9a-f]".repeat(chars)).join("-");
  const isFork =
    kindOf(db) === "sqlite"
      ? sql`${key} glob ${`?*:fork:${id}`}`
      : sql`${key} ~ ${".:fork:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}`;
  return sql`(${matches} and (not ${isFork} or ${covered}))`;
}

/** Builds the recursive table `down`: these sessions and, with `below`, all their descendants. */
function downFrom(roots: readonly string[], below: boolean): RawBuilder<unknown> {
  const keys = sql.join(roots);
  // The root session may have been deleted while its children still exist.
  const steps = sql`union select c.row_id, c.key from sessions c where c.spawned_by in (${keys})
      union select c.row_id, c.key from down join sessions c on c.spawned_by = down.key`;
  return sql`with recursive down (row_id, key) as (
      select root.row_id, root.key from sessions root where root.key in (${keys}) ${below ? steps : sql``}
    )`;
}

/**
 * Returns the conditions under which a row `s` is in the scope because of its agent, or undefined if no row
 * is.
 */
function agentConditions(
  db: Db,
  { agentIds = [], sharesGlobal, within }: Extract<Scope, { all: false }>,
): Condition[] | undefined {
  const requesters = within === undefined ? [] : scopeConditions(db, within);
  if (agentIds === "any") return requesters;
  if (agentIds.length === 0) return undefined;
  const ofAgent = sql<SqlBool>`s.agent_id in (${sql.join(agentIds)})`;
  return [sharesGlobal === true ? sql`(${ofAgent} or s.key = 'global')` : ofAgent, ...requesters];
}

/** Returns the conditions that limit a row `s` of the session table to the scope. */
export function scopeConditions(db: Db, scope: Scope): Condition[] {
  if (scope.all) return [];
  const conditions: Condition[] = [];
  const { self, patterns } = scope;
  const byAgent = agentConditions(db, scope);
  if (byAgent?.length !== 0) {
    const ways: RawBuilder<unknown>[] = [];
    if (self !== undefined) ways.push(sql`s.key = ${self}`);
    if (scope.treeOf !== undefined) {
      ways.push(sql`s.key in (${downFrom([scope.treeOf], true)} select key from down)`);
    }
    if (byAgent !== undefined) ways.push(sql`(${sql.join(byAgent, sql` and `)})`);
    conditions.push(ways.length === 0 ? sql`1 = 0` : sql`(${sql.join(ways, sql` or `)})`);
  }
  if (patterns !== undefined) conditions.push(patternCondition(db, sql`s.key`, patterns));
  return conditions;
}

/** Joins conditions. */
export function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` and `);
}

/** Matches a row `s` of sessions in the scope, without archived ones unless the filter includes them. */
export function inScope(
  db: Db,
  { scope, includeArchived = false }: { readonly scope: Scope; readonly includeArchived?: boolean },
): RawBuilder<unknown> {
  return all([
    includeArchived ? sql`s.archived in (0, 1)` : sql`s.archived = 0`,
    ...scopeConditions(db, scope),
  ]);
}

/**
 * Matches a row `s` whose spawner does not exist or is outside the scope. The index of roots only covers the
 * first case.
 */
export function rootCondition(db: Db, scope: Scope): Condition {
  const root = sql<SqlBool>`(s.spawned_by is null or s.orphaned = 1)`;
  if (scope.all || scope.patterns === undefined) return root;
  return sql`(${root} or not ${patternCondition(db, sql`s.spawned_by`, scope.patterns)})`;
}

async function rowIds(db: Db, query: RawBuilder<{ row_id: number }>): Promise<number[]> {
  return (await query.execute(db)).rows.map((row) => row.row_id);
}

/**
 * Returns the row ids of the sessions in the scope, if there are at most `max` of them and they can be looked
 * up by tree or key pattern. The result may contain more sessions than the scope, so check `scopeConditions`
 * afterwards. Returns undefined if rows must be read in order and filtered instead.
 */
export async function fewInScope(db: Db, scope: Scope, max: number): Promise<number[] | undefined> {
  if (scope.all) return undefined;
  if (scope.agentIds === undefined) {
    const ids = await fewInTree(db, scope, max);
    if (ids !== undefined) return ids;
  }
  if (scope.patterns === undefined) return undefined;
  const found = new Set<number>();
  for (const pattern of scope.patterns) {
    // The keys that such a pattern can match are no range.
    if (pattern.startsWith("*")) return undefined;
    const [from, rest] = pattern.split("*", 2);
    const to = rest === undefined ? from : from + LAST_SIGN;
    const query = sql<{ row_id: number }>`select row_id from sessions
      where key >= ${from} and key <= ${to} limit ${sql.lit(max + 1 - found.size)}`;
    for (const id of await rowIds(db, query)) found.add(id);
    if (found.size > max) return undefined;
  }
  return [...found];
}

/**
 * Returns the row ids of the sessions that are in the scope because of their key or tree, not because of
 * their agent. Returns undefined if there are more than `max`.
 */
export async function fewInTree(db: Db, scope: Scope, max: number): Promise<number[] | undefined> {
  if (scope.all) return [];
  const { self, treeOf: treeKey } = scope;
  if (self === undefined && treeKey === undefined) return [];
  const roots = [self, treeKey].filter((key) => key !== undefined);
  const down = downFrom(roots, treeKey !== undefined);
  const ids = await rowIds(db, sql`${down} select row_id from down limit ${sql.lit(max + 1)}`);
  return ids.length <= max ? ids : undefined;
}
