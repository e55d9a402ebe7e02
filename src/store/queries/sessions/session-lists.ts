// Lists sessions: newest first, filtered, in pages.
// A page starts where the previous one ended, at (updated_at, key): no offset skips rows.
// A page reads a bounded number of rows. If few of them match the filter, it is shorter, maybe empty, and its
// cursor continues from there.
// LS3: rows are read in the order of an index: by failure, label, spawner, roots, agent, kind, both or none.
//      Filters that few sessions match (a tree, a searched text, key patterns, keys) are looked up first and
//      sorted.
// A search with many matches is answered from the newest rows, without looking up all matches in an index.

import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { Scope } from "../../../core/rules/visibility.ts";
import type { Session, SessionKind } from "../../../core/shapes/session.ts";
import type { SessionTable } from "../../schema/tables.ts";
import { type Db, kindOf } from "../../sql.ts";
import { ACTIVE } from "../runs/runs.ts";
import {
  type Condition,
  fewInScope,
  fewInTree,
  LAST_SIGN,
  literalLike,
  rootCondition,
  scopeConditions,
} from "./session-scope.ts";
import { toSession } from "./sessions.ts";

/** Maximum number of matches that are looked up and sorted; more are found faster by reading in order. */
const FEW_MAX = 4_000;
/** Rows that one page reads in order to find matches. */
const WALK_ROWS_MAX = 10_000;
/** Newest rows that a page reads before it looks up a searched text in an index. */
const GLANCE_ROWS_MAX = 400;
/** Index ranges merged into one page; with more agents, rows are filtered instead. */
const RANGES_MAX = 8;
/** The same for ranges of agents and kinds. */
const KIND_RANGES_MAX = 12;
/** The full-text index holds pieces of three characters. */
const INDEXED_SEARCH_CHARS_MIN = 3;

export interface SessionFilter {
  /** The most that the viewer could reach. */
  readonly scope: Scope;
  readonly kinds?: readonly SessionKind[];
  readonly agentId?: string;
  /** Updated at this time or later, ms since 1970. */
  readonly activeSinceMs?: number;
  /** Part of a label, display name or key, ignoring case. */
  readonly search?: string;
  /** The whole label. */
  readonly label?: string;
  readonly spawnedBy?: string;
  /** Only sessions without a spawner that exists and is in the scope. */
  readonly roots?: boolean;
  /** Only sessions with these keys. */
  readonly keys?: readonly string[];
  /** `running`: with an unfinished run. `failed`: without one, and the last turn failed. */
  readonly doing?: "running" | "failed";
  /** Only sessions with a message of this token, from any device: its id. */
  readonly askedBy?: string;
  readonly includeArchived?: boolean;
  readonly excludeKeys?: readonly string[];
  /** `nextCursor` of the previous page. */
  readonly cursor?: string;
  readonly limit: number;
}

interface SessionRows {
  readonly rows: Session[];
  /** Cursor of the next page. Absent: no more rows. */
  readonly nextCursor?: string;
}

type Row = Selectable<SessionTable>;

/** A position in the order. */
interface Position {
  readonly updated_at: number;
  readonly key: string;
}

/** Position of the last row read, which the viewer may not see. */
interface Cut extends Position {
  readonly row_id: number;
}

/** Result of one source: rows in order, complete down to `cutAt`. */
interface Portion {
  readonly rows: readonly Row[];
  readonly cutAt?: Cut;
}

/** Names a returned row by its key, and any other row only by its number (I9). */
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

/** Whether a text is a cursor of a list. */
export function isSessionCursor(text: string): boolean {
  return readCursor(text) !== undefined;
}

async function positionOf(db: Db, cursor: string): Promise<Position | undefined> {
  const read = readCursor(cursor);
  if (read === undefined) return undefined;
  const { updated_at, row } = read;
  if (typeof row === "string") return { updated_at, key: row };
  const found = await db.selectFrom("sessions").select("key").where("row_id", "=", row).executeTakeFirst();
  // Deleted meanwhile: rows with the same time are read again.
  return { updated_at, key: found?.key ?? LAST_SIGN };
}

function newestFirst(a: Position, b: Position): number {
  if (a.updated_at !== b.updated_at) return b.updated_at - a.updated_at;
  return Buffer.compare(Buffer.from(b.key), Buffer.from(a.key));
}

export function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` and `);
}

/** Returns the conditions that bound an index range: the end of the last page, and the oldest time. */
function bounds(filter: SessionFilter, after: Position | undefined): Condition[] {
  const conditions: Condition[] = [];
  if (filter.activeSinceMs !== undefined) {
    // Round up: stored times are whole, and not every database compares them with fractions.
    conditions.push(sql`s.updated_at >= ${Math.ceil(filter.activeSinceMs)}`);
  }
  if (after !== undefined) {
    conditions.push(sql`(s.updated_at, s.key) < (${after.updated_at}, ${after.key})`);
  }
  return conditions;
}

const PLAIN_ASCII = /^[\x20-\x7e]*$/;

function searchCondition(db: Db, search: string): Condition {
  // SQL ignores case only for a-z, so try the usual spellings of other scripts.
  const isLike = kindOf(db) === "sqlite" ? sql`like` : sql`ilike`;
  const isFolded = PLAIN_ASCII.test(search);
  const spellings = isFolded ? [search] : [...new Set([search, search.toLowerCase(), search.toUpperCase()])];
  const tests = spellings.map((text) => {
    const like = `%${literalLike(text)}%`;
    return sql`s.key ${isLike} ${like} escape '\\' or s.label ${isLike} ${like} escape '\\'
      or s.display_name ${isLike} ${like} escape '\\'`;
  });
  return sql`(${sql.join(tests, sql` or `)})`;
}

const BUSY_KEYS = sql`select r.session_key from runs r where r.state in (${sql.join(ACTIVE)})`;

/** Matches an idle session `s` whose last turn failed. */
export const HAS_FAILED = sql<SqlBool>`(s.failed_run is not null and s.key not in (${BUSY_KEYS}))`;

/** Matches a session `s` to which a token, or one of its devices, sent a message. */
export function askedCondition(tokenId: string): Condition {
  // The owner of a key is the token's id, maybe followed by a colon and a device.
  return sql`exists (select 1 from runs r where r.session_key = s.key
    and r.asked_by >= ${tokenId} and r.asked_by < ${`${tokenId};`})`;
}

/**
 * Returns each field of the filter as a separate condition, so that the one an index answers can be left out.
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

/** Returns the sessions whose names contain the searched text, if they are few. */
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

/** Looks up at most `count` rows, then filters and sorts them. */
async function sorted(
  db: Db,
  named: RawBuilder<unknown>,
  count: number,
  conditions: readonly Condition[],
  filter: SessionFilter,
): Promise<Portion> {
  if (count === 0) return { rows: [] };
  const archived = filter.includeArchived === true ? [] : [sql<boolean>`s.archived = 0`];
  // The inner limit separates the two steps: by name first, then filter and order.
  const { rows } = await sql<Row>`
    select * from (
      select * from sessions where ${named}
      limit ${sql.lit(count)}
    ) as s
    where ${all([...archived, ...conditions])}
    order by s.updated_at desc, s.key desc limit ${sql.lit(filter.limit + 1)}`.execute(db);
  return { rows };
}

function sortedById(
  db: Db,
  ids: readonly number[],
  conditions: readonly Condition[],
  filter: SessionFilter,
): Promise<Portion> {
  const among =
    kindOf(db) === "sqlite"
      ? sql`row_id in (select value from json_each(${JSON.stringify(ids)}))`
      : sql`row_id = any(${ids}::bigint[])`;
  return sorted(db, among, ids.length, conditions, filter);
}

/** Reads one index range in order and keeps matching rows. */
async function walked(
  db: Db,
  range: readonly Condition[],
  fits: readonly Condition[],
  limit: number,
  rowsMax: number,
): Promise<Portion> {
  const order = sql`order by s.updated_at desc, s.key desc`;
  if (fits.length === 0) {
    const query = sql<Row>`
      select s.* from sessions s where ${all(range)} ${order} limit ${sql.lit(limit + 1)}`;
    return { rows: (await query.execute(db)).rows };
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

/** Index ranges with all possible matches, and the remaining conditions for each. */
interface Ranges {
  readonly axis: readonly Condition[];
  readonly fits: readonly Condition[];
  /** Row ids outside the ranges, with their additional conditions. */
  readonly besides: readonly number[];
  readonly besidesFit?: readonly Condition[];
}

async function rangesOf(db: Db, filter: SessionFilter): Promise<Ranges> {
  const fields = fieldConditions(db, filter);
  const scoped = scopeConditions(db, filter.scope);
  const without = (...names: (keyof SessionFilter)[]): Condition[] =>
    [...fields].filter(([field]) => !names.includes(field)).map(([, condition]) => condition);
  const ofKinds = [...new Set(filter.kinds)].map((kind) => sql<SqlBool>`s.kind = ${kind}`);
  const withKinds = (agents: readonly Condition[]): Condition[] =>
    agents.flatMap((agent) => ofKinds.map((kind) => sql<SqlBool>`${agent} and ${kind}`));
  if (filter.doing === "failed") {
    return { axis: [sql`s.failed_run is not null`], fits: [...without(), ...scoped], besides: [] };
  }
  for (const name of ["label", "spawnedBy", "roots", "agentId"] as const) {
    const axis = fields.get(name);
    // With patterns there are more roots than the index of roots holds.
    const isWide = name === "roots" && !filter.scope.all && filter.scope.patterns !== undefined;
    if (axis === undefined || isWide) continue;
    if (name === "agentId" && ofKinds.length > 0) {
      return { axis: withKinds([axis]), fits: [...without(name, "kinds"), ...scoped], besides: [] };
    }
    return { axis: [axis], fits: [...without(name), ...scoped], besides: [] };
  }
  const { scope } = filter;
  const agentIds = scope.all || scope.agentIds === "any" ? undefined : scope.agentIds;
  if (agentIds !== undefined && agentIds.length > 0 && agentIds.length <= RANGES_MAX) {
    const tree = await fewInTree(db, scope, FEW_MAX);
    if (tree !== undefined) {
      const axis = agentIds.map((agentId) => sql<SqlBool>`s.agent_id = ${agentId}`);
      const patterns = scope.all || scope.patterns === undefined ? [] : scoped;
      if (ofKinds.length > 0 && axis.length * ofKinds.length <= KIND_RANGES_MAX) {
        const kinds = fields.get("kinds");
        const besidesFit = kinds === undefined ? [] : [kinds];
        return { axis: withKinds(axis), fits: [...without("kinds"), ...patterns], besides: tree, besidesFit };
      }
      return { axis, fits: [...without(), ...patterns], besides: tree };
    }
  }
  if (ofKinds.length > 0) return { axis: ofKinds, fits: [...without("kinds"), ...scoped], besides: [] };
  return { axis: [sql`1 = 1`], fits: [...without(), ...scoped], besides: [] };
}

/** Merges the results of several sources into one page. */
function pageOf(portions: readonly Portion[], limit: number): SessionRows {
  const cuts = portions.flatMap(({ cutAt }) => (cutAt === undefined ? [] : [cutAt])).sort(newestFirst);
  const cutAt = cuts[0];
  const merged = new Map(portions.flatMap(({ rows }) => rows).map((row) => [row.key, row]));
  const rows = [...merged.values()].sort(newestFirst);
  const complete = cutAt === undefined ? rows : rows.filter((row) => newestFirst(row, cutAt) <= 0);
  const page = complete.slice(0, limit);
  const last = page[page.length - 1];
  const sessions = page.map(toSession);
  if (complete.length > limit && last !== undefined)
    return { rows: sessions, nextCursor: cursorOf(last.updated_at, last.key) };
  if (cutAt === undefined) return { rows: sessions };
  return { rows: sessions, nextCursor: cursorOf(cutAt.updated_at, cutAt.row_id) };
}

/**
 * Lists sessions, newest `updatedAt` first, without archived ones unless the filter includes them. Rows are
 * within `scope`, but the caller still checks the visibility of each. A page may be short although there is
 * more: `nextCursor` says so. A cursor that is not from a list (`isSessionCursor`) finds nothing.
 */
export async function listSessions(db: Db, filter: SessionFilter): Promise<SessionRows> {
  const after = filter.cursor === undefined ? undefined : await positionOf(db, filter.cursor);
  if (filter.cursor !== undefined && after === undefined) return { rows: [] };
  const bounded = bounds(filter, after);
  if (filter.keys !== undefined) {
    const keys = [...new Set(filter.keys)];
    const fits = [...fieldConditions(db, filter).values(), ...scopeConditions(db, filter.scope), ...bounded];
    const found = await sorted(db, sql`key in (${sql.join(keys)})`, keys.length, fits, filter);
    return pageOf([found], filter.limit);
  }
  const within = await fewInScope(db, filter.scope, FEW_MAX);
  // The index ignores case beyond a-z, where a read of the rows may miss matches.
  const mayGlance = filter.search === undefined || PLAIN_ASCII.test(filter.search);
  if (filter.search === undefined || (mayGlance && (within?.length ?? FEW_MAX) <= GLANCE_ROWS_MAX)) {
    if (within !== undefined) return amongFew(db, within, bounded, filter);
    return inRanges(db, bounded, filter, WALK_ROWS_MAX);
  }
  if (within === undefined && mayGlance) {
    const glance = await inRanges(db, bounded, filter, GLANCE_ROWS_MAX);
    // A full page is always right; a short one only if no rows are left.
    if (glance.rows.length === filter.limit || glance.nextCursor === undefined) return glance;
  }
  const named = await fewNamed(db, filter.search);
  const few = named ?? within;
  if (few !== undefined) return amongFew(db, few, bounded, filter, few === named ? ["search"] : []);
  return inRanges(db, bounded, filter, WALK_ROWS_MAX);
}

async function amongFew(
  db: Db,
  few: readonly number[],
  bounded: readonly Condition[],
  filter: SessionFilter,
  answered: readonly (keyof SessionFilter)[] = [],
): Promise<SessionRows> {
  const fields = [...fieldConditions(db, filter)].filter(([field]) => !answered.includes(field));
  const fits = fields.map(([, condition]) => condition);
  const conditions = [...fits, ...scopeConditions(db, filter.scope), ...bounded];
  return pageOf([await sortedById(db, few, conditions, filter)], filter.limit);
}

async function inRanges(
  db: Db,
  bounded: readonly Condition[],
  filter: SessionFilter,
  rowsMax: number,
): Promise<SessionRows> {
  const { axis, fits, besides, besidesFit = [] } = await rangesOf(db, filter);
  const portions = [await sortedById(db, besides, [...fits, ...besidesFit, ...bounded], filter)];
  for (const condition of axis) {
    for (const archived of filter.includeArchived === true ? [0, 1] : [0]) {
      const range = [condition, sql<boolean>`s.archived = ${archived}`, ...bounded];
      portions.push(await walked(db, range, fits, filter.limit, rowsMax));
    }
  }
  return pageOf(portions, filter.limit);
}
