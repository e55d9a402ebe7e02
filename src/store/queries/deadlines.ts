// Owns the table of deadlines. Deadlines are stored as rows, so they survive a restart.

import { type RawBuilder, sql } from "kysely";
import { freeLock } from "../locks.ts";
import { type RecordOf, recordsOf } from "../records.ts";
import type { Db, Tx } from "../sql.ts";

/** Maximum number of due deadlines among which one that is free is chosen. */
const TRIED_MAX = 50;

/** A time, in ms since 1970, at which a handler of the kind is called. */
export type Deadline = RecordOf<"deadlines">;

const DEADLINES = recordsOf<Deadline>()("deadlines", { key: ["kind", "key"], columns: ["due_at"] });

/** Returns a date that differs from the one of the row, so that a running handler does not delete the row. */
function moveDate(dueAt: number): RawBuilder<number> {
  const at = sql`cast(${Math.round(dueAt)} as bigint)`;
  return sql`case when deadlines.due_at = ${at} then ${at} + 1 else ${at} end`;
}

/** Sets or moves a deadline. */
export async function setDeadline(tx: Tx, { kind, key, dueAt }: Deadline): Promise<void> {
  await tx
    .insertInto("deadlines")
    .values({ kind, key, due_at: Math.round(dueAt) })
    .onConflict((conflict) => conflict.columns(["kind", "key"]).doUpdateSet({ due_at: moveDate(dueAt) }))
    .execute();
}

/** Makes a deadline due now, if it exists. */
export async function hurryDeadline(tx: Tx, { kind, key, dueAt }: Deadline): Promise<void> {
  const deadline = tx.updateTable("deadlines").where((eb) => eb.and({ kind, key }));
  await deadline.set({ due_at: moveDate(dueAt) }).execute();
}

export async function dropDeadline(tx: Tx, kind: string, key: string): Promise<void> {
  await DEADLINES.remove(tx, { kind, key });
}

/** A kind of which deadlines are stored. */
export interface StoredKind {
  readonly kind: string;
  readonly firstAt: number;
  /** Time of its first deadline after now. */
  readonly nextAt: number | null;
}

/** Returns the kinds of which deadlines are stored. Its cost does not depend on the number of deadlines. */
export async function storedKinds(db: Db, now: number): Promise<StoredKind[]> {
  const first = (more: RawBuilder<unknown>) =>
    sql`(select t.due_at from deadlines t where t.kind = stored.kind ${more} order by t.due_at limit 1)`;
  const { rows } = await sql<StoredKind>`with recursive stored (kind) as (
      select min(kind) from deadlines
      union all
      select (select min(t.kind) from deadlines t where t.kind > stored.kind) from stored
      where stored.kind is not null
    ) select kind, ${first(sql``)} as "firstAt", ${first(sql`and t.due_at > ${now}`)} as "nextAt"
    from stored where kind is not null`.execute(db);
  return rows;
}

/**
 * Returns the first due deadline that no other transaction handles, and lets only this transaction handle it.
 * `key`: looks only at this deadline. The row itself is not locked, because a handler locks sessions, and
 * transactions that hold a session set its deadlines.
 */
export async function takeDeadline(
  tx: Tx,
  kind: string,
  now: number,
  key?: string,
): Promise<Deadline | undefined> {
  const due = (one: string | undefined) => sql<Deadline>`select kind, key, due_at as "dueAt" from deadlines
    where kind = ${kind} and due_at <= ${now}
      ${one === undefined ? sql`order by due_at limit ${sql.lit(TRIED_MAX)}` : sql`and key = ${one}`}`;
  const isFree = freeLock(tx, "deadlines", sql`kind || ' ' || key`);
  const free = await sql<Deadline>`select * from (${due(key)}) as due where ${isFree} limit 1`.execute(tx);
  const [first] = free.rows;
  if (first === undefined) return undefined;
  // Again, because the transaction that had the lock may have settled the row since the query began.
  return (await due(first.key).execute(tx)).rows[0] ?? takeDeadline(tx, kind, now, key);
}

/** Deletes a handled deadline, or moves it to `next`, unless it was moved in the meantime. */
export async function settleDeadline(tx: Tx, { kind, key, dueAt }: Deadline, next?: number): Promise<void> {
  const which = sql`kind = ${kind} and key = ${key} and due_at = ${dueAt}`;
  if (next === undefined) await sql`delete from deadlines where ${which}`.execute(tx);
  else await sql`update deadlines set due_at = ${Math.round(next)} where ${which}`.execute(tx);
}

/** Returns whether the deadline of the given kind and key exists. */
export const hasDeadline = async (db: Db, kind: string, key: string) =>
  (await DEADLINES.find(db, { kind, key })) !== undefined;

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
