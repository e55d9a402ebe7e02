// Lists sessions: newest first, filtered, in pages.
// A page starts after the last row of the previous page, at (updated_at, key), so earlier rows are not read
// again.
// A page reads a limited number of rows. If few of them match the filter, the page is shorter, or even empty,
// and its cursor continues after the rows that were read.
// LS3: rows are read in the order of an index. There are indexes for failed sessions, for a label, a spawner,
//      an agent, a kind, an agent and a kind, for roots, and for all sessions. Some filters match only few
//      sessions: a tree, a searched text, key patterns, keys. These sessions are looked up first and then
//      sorted. If a search has many matches, the newest rows are read instead.

import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { Scope } from "../../../core/rules/visibility.ts";
import type { Session, SessionKind } from "../../../core/shapes/session.ts";
import type { SessionTable } from "../../schema/tables.ts";
import { type Db, kindOf } from "../../sql.ts";
import { ACTIVE } from "../runs/runs.ts";
import {
  all,
  type Condition,
  fewInScope,
  fewInTree,
  LAST_SIGN,
  literalLike,
  rootCondition,
  scopeConditions,
} from "./session-scope.ts";
import { toSession } from "./sessions.ts";

/** Maximum number of matches to look up and sort. With more matches, reading rows in order is faster. */
const FEW_MAX = 4_000;
/** Maximum number of rows that a page reads in order to find matches. */
const WALK_ROWS_MAX = 10_000;
/** Number of newest rows to check before a searched text is looked up in an index. */
const GLANCE_ROWS_MAX = 400;
/**
 * Maximum number of index ranges that are merged into a page. If the scope has more agents, rows are read in
 * order and filtered.
 */
const RANGES_MAX = 8;
/** Maximum number of ranges by agent and kind. */
const KIND_RANGES_MAX = 12;
/** The index of names contains sequences of three characters, so shorter texts cannot be looked up. */
const INDEXED_SEARCH_CHARS_MIN = 3;

export interface SessionFilter {
  /** All sessions that the viewer may possibly see. */
  readonly scope: Scope;
  readonly kinds?: readonly SessionKind[];
  readonly agentId?: string;
  /** Only sessions that were updated at this time or later, in ms since 1970. */
  readonly activeSinceMs?: number;
  /** Only sessions whose label, display name, key or first words contain this text, ignoring case. */
  readonly search?: string;
  /** Only sessions with exactly this label. */
  readonly label?: string;
  readonly spawnedBy?: string;
  /**
   * Only sessions without a spawner. A deleted spawner, or a spawner outside the scope, does not count as
   * one.
   */
  readonly roots?: boolean;
  /** Only sessions with these keys. */
  readonly keys?: readonly string[];
  /**
   * `running`: the session has an unfinished run. `failed`: the session has no unfinished run, and its last
   * turn failed.
   */
  readonly doing?: "running" | "failed";
  /** Id of a token. Only sessions with a message that was sent with this token, from any device. */
  readonly askedBy?: string;
  readonly includeArchived?: boolean;
  readonly excludeKeys?: readonly string[];
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
  readonly limit: number;
}

interface SessionRows {
  readonly rows: Session[];
  /** Cursor of the next page. Absent on the last page. */
  readonly nextCursor?: string;
}

type Row = Selectable<SessionTable>;

/** A position in the order of the list. */
interface Position {
  readonly updated_at: number;
  readonly key: string;
}

/** Position of the last row that was read. The viewer may not be allowed to see that row. */
interface Cut extends Position {
  readonly row_id: number;
}

/**
 * Rows from one source, in order. If `cutAt` is set, reading stopped at this position, and later matches are
 * missing.
 */
interface Portion {
  readonly rows: readonly Row[];
  readonly cutAt?: Cut;
}

/**
 * Encodes a position. Names a row on the page by its key, and any other row only by its row id, which reveals
 * nothing (I9).
 */
function cursorOf(updatedAt: number, row: string | number): string {
  return Buffer.from(JSON.stringify([updatedAt, row])).toString("base64url");
}

interface ReadCursor {
  readonly updated_at: number;
  readonly row: string | number;
}

function readCursor(cursor: string): ReadCursor | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(parsed) || parsed.length !== 2) return undefined;
    const [updated_at, row]: unknown[] = parsed;
    const isPlace =
      Number.isSafeInteger(updated_at) && (typeof row === "string" || Number.isSafeInteger(row));
    return isPlace ? ({ updated_at, row } as ReadCursor) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a text is a cursor of a list. */
export function isSessionCursor(text: string): boolean {
  return readCursor(text) !== undefined;
}

async function positionOf(db: Db, cursor: string): Promise<Position | undefined> {
  const read = readCursor(cursor);
  if (read === undefined) return undefined;
  const { updated_at, row } = read;
  if (typeof row === "string") return { updated_at, key: row };
  const found = await db.selectFrom("sessions").select("key").where("row_id", "=", row).executeTakeFirst();
  // If the session has been deleted, all rows with the same time are read again.
  return { updated_at, key: found?.key ?? LAST_SIGN };
}

function newestFirst(a: Position, b: Position): number {
  if (a.updated_at !== b.updated_at) return b.updated_at - a.updated_at;
  return Buffer.compare(Buffer.from(b.key), Buffer.from(a.key));
}

/**
 * Returns the conditions that limit an index range: rows after the previous page, and the oldest allowed
 * time.
 */
function bounds(filter: SessionFilter, after: Position | undefined): Condition[] {
  const conditions: Condition[] = [];
  if (filter.activeSinceMs !== undefined) {
    // Rounded up, because stored times are integers and not every database compares them with fractions.
    conditions.push(sql`s.updated_at >= ${Math.ceil(filter.activeSinceMs)}`);
  }
  if (after !== undefined) {
    conditions.push(sql`(s.updated_at, s.key) < (${after.updated_at}, ${after.key})`);
  }
  return conditions;
}

const PLAIN_ASCII = /^[\x20-\x7e]*$/;

function searchCondition(db: Db, search: string): Condition {
  // SQL ignores case only for a-z. For other letters, the text is also tried in lower case and in upper case.
  const isLike = kindOf(db) === "sqlite" ? sql`like` : sql`ilike`;
  const isFolded = PLAIN_ASCII.test(search);
  const spellings = isFolded ? [search] : [...new Set([search, search.toLowerCase(), search.toUpperCase()])];
  const tests = spellings.map((text) => {
    const like = `%${literalLike(text)}%`;
    return sql`s.key ${isLike} ${like} escape '\\' or s.label ${isLike} ${like} escape '\\'
      or s.display_name ${isLike} ${like} escape '\\' or s.first_words ${isLike} ${like} escape '\\'`;
  });
  return sql`(${sql.join(tests, sql` or `)})`;
}

const BUSY_KEYS = sql`select r.session_key from runs r where r.state in (${sql.join(ACTIVE)})`;

/** Matches a session `s` whose last turn failed and which has no unfinished run. */
export const HAS_FAILED = sql<SqlBool>`(s.failed_run is not null and s.key not in (${BUSY_KEYS}))`;

/** Matches a session `s` to which a token, or one of its devices, sent a message. */
export function askedCondition(tokenId: string): Condition {
  // An owner is the id of a token, possibly followed by a colon and a device.
  return sql`exists (select 1 from runs r where r.session_key = s.key
    and r.asked_by >= ${tokenId} and r.asked_by < ${`${tokenId};`})`;
}

/**
 * Returns one condition per field of the filter, so that the caller can omit a field that an index range
 * already covers.
 */
function fieldConditions(db: Db, filter: SessionFilter): Map<keyof SessionFilter, Condition> {
  const conditions = new Map<keyof SessionFilter, Condition>();
  const { label, spawnedBy, agentId, kinds, search, excludeKeys } = filter;
  if (label !== undefined) conditions.set("label", sql`s.label = ${label}`);
  if (spawnedBy !== undefined) conditions.set("spawnedBy", sql`s.spawned_by = ${spawnedBy}`);
  if (filter.roots === true) conditions.set("roots", rootCondition(db, filter.scope));
  if (agentId !== undefined) conditions.set("agentId", sql`s.agent_id = ${agentId}`);
  if (kinds !== undefined && kinds.length > 0) conditions.set("kinds", sql`s.kind in (${sql.join(kinds)})`);
  if (search !== undefined && search !== "") conditions.set("search", searchCondition(db, search));
  if (filter.doing === "running") conditions.set("doing", sql`s.key in (${BUSY_KEYS})`);
  if (filter.doing === "failed") conditions.set("doing", HAS_FAILED);
  if (filter.askedBy !== undefined) conditions.set("askedBy", askedCondition(filter.askedBy));
  if (excludeKeys !== undefined && excludeKeys.length > 0) {
    conditions.set("excludeKeys", sql`s.key not in (${sql.join(excludeKeys)})`);
  }
  return conditions;
}

/**
 * Returns the row ids of sessions whose names contain the searched text. Undefined if there are too many, or
 * if the text is too short for the index.
 */
async function fewNamed(db: Db, search: string): Promise<number[] | undefined> {
  const text = search.replaceAll("\0", "");
  if ([...text].length < INDEXED_SEARCH_CHARS_MIN) return undefined;
  const named =
    kindOf(db) === "sqlite"
      ? sql<{ row_id: number }>`select rowid as row_id from session_names
          where session_names match ${`"${text.replaceAll('"', '""')}"`} limit ${sql.lit(FEW_MAX + 1)}`
      : sql<{ row_id: number }>`select row_id from session_names
          where name like ${`%${literalLike(text.toLowerCase())}%`} escape '\\'
          limit ${sql.lit(FEW_MAX + 1)}`;
  const { rows } = await named.execute(db);
  return rows.length <= FEW_MAX ? rows.map((row) => row.row_id) : undefined;
}

/** Rows that can be looked up. */
interface Few {
  readonly condition: RawBuilder<unknown>;
  readonly count: number;
}

function withIds(db: Db, ids: readonly number[]): Few {
  const condition =
    kindOf(db) === "sqlite"
      ? sql`row_id in (select value from json_each(${JSON.stringify(ids)}))`
      : sql`row_id = any(${ids}::bigint[])`;
  return { condition, count: ids.length };
}

/** Looks up rows, and then filters and sorts them. */
async function sortFew(
  db: Db,
  { condition, count }: Few,
  conditions: readonly Condition[],
  filter: SessionFilter,
): Promise<Portion> {
  if (count === 0) return { rows: [] };
  const archived = filter.includeArchived === true ? [] : [sql<boolean>`s.archived = 0`];
  // The inner limit makes the database look up the rows first, and then filter and sort them.
  return await sql<Row>`
    select * from (
      select * from sessions where ${condition}
      limit ${sql.lit(count)}
    ) as s
    where ${all([...archived, ...conditions])}
    order by s.updated_at desc, s.key desc limit ${sql.lit(filter.limit + 1)}`.execute(db);
}

/** Reads an index range in order, and keeps the rows that match. */
async function walkRange(
  db: Db,
  range: readonly Condition[],
  fits: readonly Condition[],
  limit: number,
  rowsMax: number,
): Promise<Portion> {
  const order = sql`order by s.updated_at desc, s.key desc`;
  if (fits.length === 0) {
    return await sql<Row>`
      select s.* from sessions s where ${all(range)} ${order} limit ${sql.lit(limit + 1)}`.execute(db);
  }
  const { rows } = await sql<Row>`
    select * from (select * from sessions s where ${all(range)} ${order} limit ${sql.lit(rowsMax)}) as s
    where ${all(fits)} limit ${sql.lit(limit + 1)}`.execute(db);
  if (rows.length > limit) return { rows };
  const last =
    await sql<Cut>`select s.updated_at, s.key, s.row_id from sessions s where ${all(range)} ${order}
    limit 1 offset ${rowsMax - 1}`.execute(db);
  const cutAt = last.rows[0];
  return cutAt === undefined ? { rows } : { rows, cutAt };
}

/** Index ranges that together contain all possible matches, and further conditions for the rows in them. */
interface Ranges {
  readonly axis: readonly Condition[];
  readonly fits: readonly Condition[];
  /** Ids of further rows to check that are outside the ranges. These rows have conditions of their own. */
  readonly besides: readonly number[];
  readonly besidesFit?: readonly Condition[];
}

async function rangesOf(db: Db, filter: SessionFilter): Promise<Ranges> {
  const { scope } = filter;
  const fields = fieldConditions(db, filter);
  const scoped = scopeConditions(db, scope);
  const without = (...names: (keyof SessionFilter)[]): Condition[] =>
    [...fields].filter(([field]) => !names.includes(field)).map(([, condition]) => condition);
  const along = (axis: readonly Condition[], ...names: (keyof SessionFilter)[]): Ranges => {
    return { axis, fits: [...without(...names), ...scoped], besides: [] };
  };
  const ofKinds = [...new Set(filter.kinds)].map((kind) => sql<SqlBool>`s.kind = ${kind}`);
  const withKinds = (agents: readonly Condition[]): Condition[] =>
    agents.flatMap((agent) => ofKinds.map((kind) => sql<SqlBool>`${agent} and ${kind}`));
  if (filter.doing === "failed") return along([sql`s.failed_run is not null`]);
  for (const name of ["label", "spawnedBy", "roots", "agentId"] as const) {
    const axis = fields.get(name);
    // A scope with patterns has roots that are not in the index of roots, because their spawner is outside
    // the scope.
    const isWide = name === "roots" && !scope.all && scope.patterns !== undefined;
    if (axis === undefined || isWide) continue;
    const hasKinds = name === "agentId" && ofKinds.length > 0;
    return hasKinds ? along(withKinds([axis]), name, "kinds") : along([axis], name);
  }
  const isOpen = scope.all || scope.agentIds === "any" || scope.sharesGlobal === true;
  const agentIds = isOpen ? undefined : (scope.agentIds as readonly string[] | undefined);
  if (agentIds !== undefined && agentIds.length > 0 && agentIds.length <= RANGES_MAX) {
    const tree = await fewInTree(db, scope, FEW_MAX);
    if (tree !== undefined) {
      const axis = agentIds.map((agentId) => sql<SqlBool>`s.agent_id = ${agentId}`);
      const isLimited = !scope.all && (scope.patterns ?? scope.within) !== undefined;
      const patterns = isLimited ? scoped : [];
      // The ranges contain the sessions of these agents, so they are not read again among the tree.
      const elsewhere = sql<SqlBool>`s.agent_id not in (${sql.join(agentIds)})`;
      const kinds = fields.get("kinds");
      if (kinds !== undefined && axis.length * ofKinds.length <= KIND_RANGES_MAX) {
        const besidesFit = [elsewhere, kinds];
        return { axis: withKinds(axis), fits: [...without("kinds"), ...patterns], besides: tree, besidesFit };
      }
      return { axis, fits: [...without(), ...patterns], besides: tree, besidesFit: [elsewhere] };
    }
  }
  return ofKinds.length > 0 ? along(ofKinds, "kinds") : along([sql`1 = 1`]);
}

/** Merges the rows of several sources into one page. */
function pageOf(portions: readonly Portion[], limit: number): SessionRows {
  const cuts = portions.flatMap(({ cutAt }) => (cutAt === undefined ? [] : [cutAt])).sort(newestFirst);
  const cutAt = cuts[0];
  const merged = new Map(portions.flatMap(({ rows }) => rows).map((row) => [row.key, row]));
  const rows = [...merged.values()].sort(newestFirst);
  const complete = cutAt === undefined ? rows : rows.filter((row) => newestFirst(row, cutAt) <= 0);
  const page = complete.slice(0, limit);
  const [last, sessions] = [page.at(-1), page.map(toSession)];
  if (complete.length > limit && last !== undefined)
    return { rows: sessions, nextCursor: cursorOf(last.updated_at, last.key) };
  if (cutAt === undefined) return { rows: sessions };
  return { rows: sessions, nextCursor: cursorOf(cutAt.updated_at, cutAt.row_id) };
}

/**
 * Lists sessions, the most recently updated first. Archived ones are included only if the filter says so. All
 * rows are within `scope`, but the caller must still check the visibility of each. A page may be short
 * although more rows follow; `nextCursor` is then set. With an invalid cursor (`isSessionCursor`) the list is
 * empty.
 */
export async function listSessions(db: Db, filter: SessionFilter): Promise<SessionRows> {
  const after = filter.cursor === undefined ? undefined : await positionOf(db, filter.cursor);
  if (filter.cursor !== undefined && after === undefined) return { rows: [] };
  const bounded = bounds(filter, after);
  if (filter.keys !== undefined) {
    const keys = [...new Set(filter.keys)];
    const few = { condition: sql`key in (${sql.join(keys)})`, count: keys.length };
    return amongFew(db, few, bounded, filter);
  }
  const within = await fewInScope(db, filter.scope, FEW_MAX);
  // The index ignores the case of all letters. Reading rows may miss matches with letters other than a-z.
  const mayGlance = filter.search === undefined || PLAIN_ASCII.test(filter.search);
  if (filter.search === undefined || (mayGlance && (within?.length ?? FEW_MAX) <= GLANCE_ROWS_MAX)) {
    if (within !== undefined) return amongFew(db, withIds(db, within), bounded, filter);
    return inRanges(db, bounded, filter, WALK_ROWS_MAX);
  }
  if (within === undefined && mayGlance) {
    const glance = await inRanges(db, bounded, filter, GLANCE_ROWS_MAX);
    // A full page is correct. A short page is correct only if no more rows follow.
    if (glance.rows.length === filter.limit || glance.nextCursor === undefined) return glance;
  }
  const named = await fewNamed(db, filter.search);
  const few = named ?? within;
  const answered = few === named ? "search" : undefined;
  if (few !== undefined) return amongFew(db, withIds(db, few), bounded, filter, answered);
  return inRanges(db, bounded, filter, WALK_ROWS_MAX);
}

async function amongFew(
  db: Db,
  few: Few,
  bounded: readonly Condition[],
  filter: SessionFilter,
  answered?: "search",
): Promise<SessionRows> {
  const fields = [...fieldConditions(db, filter)].filter(([field]) => field !== answered);
  const fits = [...fields.map(([, condition]) => condition), ...scopeConditions(db, filter.scope)];
  return pageOf([await sortFew(db, few, [...fits, ...bounded], filter)], filter.limit);
}

async function inRanges(
  db: Db,
  bounded: readonly Condition[],
  filter: SessionFilter,
  rowsMax: number,
): Promise<SessionRows> {
  const { axis, fits, besides, besidesFit = [] } = await rangesOf(db, filter);
  const portions = [await sortFew(db, withIds(db, besides), [...fits, ...besidesFit, ...bounded], filter)];
  for (const condition of axis) {
    for (const archived of filter.includeArchived === true ? [0, 1] : [0]) {
      const range = [condition, sql<boolean>`s.archived = ${archived}`, ...bounded];
      portions.push(await walkRange(db, range, fits, filter.limit, rowsMax));
    }
  }
  return pageOf(portions, filter.limit);
}
