// Owns the table of deadlines. Deadlines are stored as rows, so they survive a restart.

import { sql } from "kysely";
import { tryAdvisoryLock } from "../locks.ts";
import type { Db, Tx } from "../sql.ts";

export interface Deadline {
  readonly kind: string;
  readonly key: string;
  /** ms since 1970. */
  readonly dueAt: number;
}

/** Sets or moves a deadline. */
export async function setDeadline(tx: Tx, deadline: Deadline): Promise<void> {
  await tx
    .insertInto("deadlines")
    .values({ kind: deadline.kind, key: deadline.key, due_at: Math.round(deadline.dueAt) })
    .onConflict((conflict) =>
      conflict.columns(["kind", "key"]).doUpdateSet({ due_at: Math.round(deadline.dueAt) }),
    )
    .execute();
}

/** Makes a deadline due now, if it exists. */
export async function hurryDeadline(tx: Tx, { kind, key, dueAt }: Deadline): Promise<void> {
  await tx
    .updateTable("deadlines")
    .set({ due_at: Math.round(dueAt) })
    .where("kind", "=", kind)
    .where("key", "=", key)
    .execute();
}

export async function dropDeadline(tx: Tx, kind: string, key: string): Promise<void> {
  await tx.deleteFrom("deadlines").where("kind", "=", kind).where("key", "=", key).execute();
}

/**
 * Reads the first deadlines of each of these kinds. Each kind is read by itself, in the order of its index,
 * so that neither other kinds nor later deadlines cost anything.
 */
async function firstOfEach(
  db: Db,
  kinds: readonly string[],
  limit: number,
  dueBy = Number.MAX_SAFE_INTEGER,
): Promise<Deadline[]> {
  if (kinds.length === 0) return [];
  const each = kinds.map(
    (kind) => sql`select * from (select kind, key, due_at as "dueAt" from deadlines
      where kind = ${kind} and due_at <= ${dueBy} order by due_at limit ${sql.lit(limit)}) as first`,
  );
  const { rows } = await sql<Deadline>`${sql.join(each, sql` union all `)}`.execute(db);
  return rows.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit);
}

/** Returns due deadlines of these kinds, oldest first. */
export function dueDeadlines(
  db: Db,
  now: number,
  limit: number,
  kinds: readonly string[],
): Promise<Deadline[]> {
  return firstOfEach(db, kinds, limit, now);
}

/**
 * Lets only this transaction handle a due deadline. Returns false if the deadline was deleted or moved, or if
 * another transaction handles it. The row itself is not locked, because a handler locks sessions, and
 * transactions that hold a session set its deadlines.
 */
export async function takeDeadline(tx: Tx, { kind, key, dueAt }: Deadline): Promise<boolean> {
  if (!(await tryAdvisoryLock(tx, "deadlines", `${kind} ${key}`))) return false;
  const row = await tx
    .selectFrom("deadlines")
    .select("key")
    .where("kind", "=", kind)
    .where("key", "=", key)
    .where("due_at", "=", dueAt)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes a handled deadline, or moves it to `next`, unless it was moved in the meantime. */
export async function settleDeadline(tx: Tx, { kind, key, dueAt }: Deadline, next?: number): Promise<void> {
  const which = sql`kind = ${kind} and key = ${key} and due_at = ${dueAt}`;
  if (next === undefined) await sql`delete from deadlines where ${which}`.execute(tx);
  else await sql`update deadlines set due_at = ${Math.round(next)} where ${which}`.execute(tx);
}

/** Returns the time of the next deadline of these kinds. */
export async function nextDeadlineAt(db: Db, kinds: readonly string[]): Promise<number | undefined> {
  return (await firstOfEach(db, kinds, 1))[0]?.dueAt;
}

/** Returns whether the deadline of the given kind and key exists. */
export async function hasDeadline(db: Db, kind: string, key: string): Promise<boolean> {
  const query = db.selectFrom("deadlines").select("key").where("kind", "=", kind).where("key", "=", key);
  return (await query.executeTakeFirst()) !== undefined;
}

/** Returns whether a deadline of this kind has a key that begins with `first` and a space. */
export async function hasDeadlineOf(db: Db, kind: string, first: string): Promise<boolean> {
  const row = await db
    .selectFrom("deadlines")
    .select("key")
    .where("kind", "=", kind)
    .where("key", ">=", `${first} `)
    .where("key", "<", `${first}!`)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Returns the keys, of deadlines of this kind, whose text equals `rest` from character `at` on (counted from
 * 1).
 */
export async function deadlineKeysWith(db: Db, kind: string, at: number, rest: string): Promise<string[]> {
  const rows = await db
    .selectFrom("deadlines")
    .select("key")
    // Literals, so that the index of such keys can be used.
    .where("kind", "=", sql.lit(kind))
    .where(sql<string>`substr(key, ${sql.lit(at)})`, "=", rest)
    .execute();
  return rows.map(({ key }) => key);
}
