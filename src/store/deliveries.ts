// Owns the outbox table: texts that have to leave through a channel, news for programs, and what became of
// each.
// DL1: queued is not delivered: only an acknowledgement makes a row `sent` (I5).
// DL2: an attempt is written down before it is made; one that a crash left open is never quietly made again.
// DL3: one route goes in order: a pending row holds back the later ones of its route, a settled one does not.
//      News for programs is ordered in each session only (`hook-due.ts`).

import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { Route } from "../core/route.ts";
import { heldIfFree } from "./locks.ts";
import { livingProcesses } from "./processes.ts";
import type { Db, Tx } from "./sql.ts";
import type { DeliveryTable } from "./tables.ts";

export type DeliveryState = "pending" | "sent" | "failed" | "skipped";
type DeliveryKind = "announce" | "send" | "hook";
/** Texts for people, or news for programs: each is delivered without a thought for the other. */
export type DeliveryClass = "texts" | "hooks";

export interface Delivery {
  readonly id: string;
  /** Rises over the whole store. */
  readonly seq: number;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly kind: DeliveryKind;
  readonly route: Route;
  readonly text: string;
  readonly state: DeliveryState;
  readonly code?: string;
  readonly error?: string;
  readonly attempts: number;
  /** An attempt was begun and is not yet known to have ended. */
  readonly attemptOpen: boolean;
  /** Parts of the text that the channel has acknowledged; they are not sent again. */
  readonly partsSent: number;
  readonly nextAttemptAt: number;
  readonly createdAt: number;
  readonly settledAt?: number;
  readonly dismissedAt?: number;
}

export interface NewDelivery {
  readonly id: string;
  readonly sessionKey: string;
  readonly runId?: string;
  readonly kind: DeliveryKind;
  readonly route: Route;
  readonly text: string;
  /** `skipped`: forbidden from the start; `failed`: nobody is there to have it. Both are kept to be seen. */
  readonly state: "pending" | "skipped" | "failed";
  readonly code?: string;
  readonly error?: string;
  readonly createdAt: number;
}

/** What came of an attempt. `retry`: nothing left, and it may be tried again. */
export type AttemptOutcome =
  | { readonly kind: "sent" }
  /** The channel has acknowledged one part; more are to follow. */
  | { readonly kind: "part" }
  | { readonly kind: "failed" | "skipped"; readonly code: string; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly nextAttemptAt: number };

/** One text for one route, whatever order its fields were written in. */
export function routeKeyOf(route: Route): string {
  return JSON.stringify([route.channel, route.accountId ?? null, route.to, route.threadId ?? null]);
}

/** What the route keys of a channel begin with. */
export function channelPrefix(channel: string): string {
  return `[${JSON.stringify(channel)},`;
}

function ofClass(of: DeliveryClass | undefined, kind: RawBuilder<unknown>): RawBuilder<SqlBool> {
  if (of === undefined) return sql`true`;
  return of === "hooks" ? sql`${kind} = 'hook'` : sql`${kind} <> 'hook'`;
}

function toDelivery(row: Selectable<DeliveryTable>): Delivery {
  return {
    id: row.id,
    seq: row.seq,
    sessionKey: row.session_key,
    kind: row.kind as DeliveryKind,
    route: JSON.parse(row.route_json) as Route,
    text: row.text,
    state: row.state as DeliveryState,
    attempts: row.attempts,
    attemptOpen: row.attempt_open === 1,
    partsSent: row.parts_sent,
    nextAttemptAt: row.next_attempt_at,
    createdAt: row.created_at,
    ...(row.run_id === null ? {} : { runId: row.run_id }),
    ...(row.code === null ? {} : { code: row.code }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.settled_at === null ? {} : { settledAt: row.settled_at }),
    ...(row.dismissed_at === null ? {} : { dismissedAt: row.dismissed_at }),
  };
}

/** Queues a text. The same id again changes nothing. */
export async function insertDelivery(tx: Tx, delivery: NewDelivery): Promise<void> {
  await tx
    .insertInto("deliveries")
    .values({
      id: delivery.id,
      session_key: delivery.sessionKey,
      run_id: delivery.runId ?? null,
      kind: delivery.kind,
      route_key: routeKeyOf(delivery.route),
      route_json: JSON.stringify(delivery.route),
      text: delivery.text,
      state: delivery.state,
      code: delivery.code ?? null,
      error: delivery.error ?? null,
      attempts: 0,
      attempt_open: 0,
      parts_sent: 0,
      next_attempt_at: delivery.createdAt,
      created_at: delivery.createdAt,
      settled_at: delivery.state === "pending" ? null : delivery.createdAt,
      dismissed_at: null,
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}

export async function getDelivery(db: Db, id: string): Promise<Delivery | undefined> {
  const row = await db.selectFrom("deliveries").selectAll().where("id", "=", id).executeTakeFirst();
  return row === undefined ? undefined : toDelivery(row);
}

/** Of each of these runs: how the delivery of its reply stands. News for programs is none. */
export async function deliveryStates(
  db: Db,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, DeliveryState>> {
  if (runIds.length === 0) return new Map();
  const rows = await db
    .selectFrom("deliveries")
    .select(["run_id", "state"])
    .where("run_id", "in", runIds)
    .where("kind", "<>", "hook")
    .orderBy("seq")
    .execute();
  return new Map(
    rows.flatMap((row) => (row.run_id === null ? [] : [[row.run_id, row.state as DeliveryState]])),
  );
}

/** The first pending row of each route: steps from route to route, so that a long queue costs nothing. */
function withHeads(query: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`with recursive head (seq) as (
      select first.seq
        from (select seq from deliveries where state = 'pending' order by route_key, seq limit 1) as first
      union all
      select (
        select later.seq from deliveries later
        where later.state = 'pending'
          and later.route_key > (select this.route_key from deliveries this where this.seq = head.seq)
        order by later.route_key, later.seq limit 1
      ) from head where head.seq is not null
    ) ${query}`;
}

/**
 * Rows whose turn it is: due, first of their route, and not being attempted. Oldest first. `of`: of this
 * class only.
 */
export async function dueDeliveries(
  db: Db,
  now: number,
  limit: number,
  of?: DeliveryClass,
): Promise<Delivery[]> {
  const query = withHeads(sql`select d.* from head cross join deliveries d
    where d.seq = head.seq and d.attempt_open = 0 and d.next_attempt_at <= ${now}
      and ${ofClass(of, sql`d.kind`)}
    order by d.seq limit ${sql.lit(limit)}`);
  const { rows } = await (query as RawBuilder<Selectable<DeliveryTable>>).execute(db);
  return rows.map(toDelivery);
}

/** The routes of a class in which something waits. */
export async function pendingRoutes(db: Db, of: DeliveryClass): Promise<Route[]> {
  const query = withHeads(sql`select d.route_json from head cross join deliveries d
    where d.seq = head.seq and ${ofClass(of, sql`d.kind`)}`);
  const { rows } = await (query as RawBuilder<{ route_json: string }>).execute(db);
  return rows.map((row) => JSON.parse(row.route_json) as Route);
}

/** These rows, in their order. */
export async function readDeliveries(db: Db, ids: readonly string[]): Promise<Delivery[]> {
  if (ids.length === 0) return [];
  const rows = await db.selectFrom("deliveries").selectAll().where("id", "in", ids).orderBy("seq").execute();
  return rows.map(toDelivery);
}

/** When the next row falls due, among those that nothing holds back; undefined: nothing waits. */
export async function nextDueAt(db: Db, of?: DeliveryClass): Promise<number | undefined> {
  const query = withHeads(sql`select min(d.next_attempt_at) as at from head cross join deliveries d
    where d.seq = head.seq and d.attempt_open = 0 and ${ofClass(of, sql`d.kind`)}`);
  const { rows } = await (query as RawBuilder<{ at: number | null }>).execute(db);
  return rows[0]?.at ?? undefined;
}

/**
 * Writes down that `owner` is about to make an attempt, with the parts behind `partsSent`. Again for the same
 * attempt, it changes nothing. False: somebody else made it or settled the row; do not send.
 */
export async function beginAttempt(
  tx: Tx,
  delivery: Pick<Delivery, "id" | "partsSent">,
  owner: string,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("deliveries")
    .set({ attempt_open: 1, attempt_owner: owner, attempts: sql<number>`attempts + 1 - attempt_open` })
    .where("id", "=", delivery.id)
    .where("state", "=", sql.lit("pending"))
    .where((eb) => eb.or([eb("attempt_open", "=", 0), eb("attempt_owner", "=", owner)]))
    .where("parts_sent", "=", delivery.partsSent)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

function settled(outcome: Exclude<AttemptOutcome, { kind: "part" }>, at: number) {
  switch (outcome.kind) {
    case "sent":
      return { state: "sent", code: null, error: null, settled_at: at };
    case "retry":
      return { error: outcome.error, next_attempt_at: outcome.nextAttemptAt };
    case "failed":
    case "skipped":
      return { state: outcome.kind, code: outcome.code, error: outcome.error, settled_at: at };
  }
}

/** Writes down what came of the owner's open attempt. False: there was none, and nothing changed. */
export async function endAttempt(
  tx: Tx,
  { id, owner }: { id: string; owner: string },
  outcome: AttemptOutcome,
  at: number,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("deliveries")
    .set((eb) => ({
      attempt_open: 0,
      attempt_owner: null,
      ...(outcome.kind === "part" ? { parts_sent: eb("parts_sent", "+", 1) } : settled(outcome, at)),
    }))
    .where("id", "=", id)
    .where("attempt_open", "=", 1)
    .where(sql<string>`coalesce(attempt_owner, '')`, "=", owner)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** The open attempts that are to be settled. */
export interface Recovery {
  readonly at: number;
  /** Whether the channel can recognise a repeated text. */
  canRepeat(route: Route): boolean;
  /** Only attempts of dead processes. Absent: of all, since nobody else is there. */
  readonly from?: "the dead" | undefined;
  /** Of this class only. Default: all. */
  readonly of?: DeliveryClass | undefined;
  /**
   * The process that asks, and whether it makes the attempt of this row at this moment. Its others are lost.
   */
  readonly own?: { readonly owner: string; isUnderWay(id: string): boolean };
}

/**
 * Settles the attempts that nobody makes any more. Where the channel can recognise a repeated text the row
 * is due again; elsewhere it fails as `ambiguous`, for a person to decide. Returns the rows that failed.
 * One that nobody owns was begun by a version that did not write it down, and is nobody's.
 */
export async function recoverOpenAttempts(
  tx: Tx,
  { at, canRepeat, from, of, own }: Recovery,
): Promise<Delivery[]> {
  let query = tx
    .selectFrom("deliveries")
    .selectAll()
    .where("attempt_open", "=", sql.lit(1))
    .where(ofClass(of, sql.ref("kind")));
  if (from !== undefined) {
    const isDead = sql<SqlBool>`coalesce(attempt_owner, '') not in ${livingProcesses()}`;
    query = query.where(sql<SqlBool>`(${isDead} or attempt_owner = ${own?.owner ?? ""})`);
  }
  const rows = await heldIfFree(tx, query.orderBy("seq")).execute();
  const failed: Delivery[] = [];
  for (const row of rows) {
    // Asked of the rows that were read: what this process begins meanwhile is not among them.
    if (row.attempt_owner === own?.owner && own.isUnderWay(row.id)) continue;
    const delivery = toDelivery(row);
    const owner = row.attempt_owner ?? "";
    const error = "The gateway stopped during an attempt, so it is not known whether the text arrived.";
    const repeat = canRepeat(delivery.route);
    const outcome: AttemptOutcome = repeat
      ? { kind: "retry", error, nextAttemptAt: at }
      : { kind: "failed", code: "ambiguous", error };
    await endAttempt(tx, { id: delivery.id, owner }, outcome, at);
    if (!repeat) failed.push(delivery);
  }
  return failed;
}

/**
 * A failed, undismissed row becomes pending again, in its old place in the order. False: it is in another
 * state.
 */
export async function requeueDelivery(tx: Tx, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("deliveries")
    .set({ state: "pending", code: null, error: null, attempts: 0, next_attempt_at: at, settled_at: null })
    .where("id", "=", id)
    .where("state", "=", "failed")
    .where("dismissed_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * A person has seen the failed row and lets it be. False: it is in another state, or was dismissed before.
 */
export async function dismissDelivery(tx: Tx, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("deliveries")
    .set({ dismissed_at: at })
    .where("id", "=", id)
    .where("state", "=", "failed")
    .where("dismissed_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

interface DeliveryFilter {
  readonly state?: DeliveryState;
  readonly sessionKey?: string;
  /** `nextCursor` of the page before; anything else finds nothing. */
  readonly cursor?: string;
  readonly limit: number;
}

/** The outbox, newest first. */
export async function listDeliveries(
  db: Db,
  filter: DeliveryFilter,
): Promise<{ rows: Delivery[]; nextCursor?: string }> {
  const before = filter.cursor === undefined ? undefined : Number(filter.cursor);
  if (before !== undefined && !Number.isSafeInteger(before)) return { rows: [] };
  let query = db.selectFrom("deliveries").selectAll();
  if (filter.state !== undefined) query = query.where("state", "=", sql.lit(filter.state));
  if (filter.sessionKey !== undefined) query = query.where("session_key", "=", filter.sessionKey);
  if (before !== undefined) query = query.where("seq", "<", before);
  const found = await query
    .orderBy("seq", "desc")
    .limit(filter.limit + 1)
    .execute();
  const rows = found.slice(0, filter.limit).map(toDelivery);
  const last = rows[rows.length - 1];
  return found.length > filter.limit && last !== undefined
    ? { rows, nextCursor: String(last.seq) }
    : { rows };
}

/** Texts for people that these runs brought about, newest first. */
export async function deliveriesOfRuns(
  db: Db,
  runIds: readonly string[],
  limit: number,
): Promise<Delivery[]> {
  if (runIds.length === 0) return [];
  const rows = await db
    .selectFrom("deliveries")
    .selectAll()
    .where("run_id", "in", runIds)
    .where("kind", "!=", sql.lit("hook"))
    .orderBy("seq", "desc")
    .limit(limit)
    .execute();
  return rows.map(toDelivery);
}

/** How many texts wait, and how many failed and were not dismissed. */
export async function countDeliveries(db: Db): Promise<{ pending: number; failed: number }> {
  const count = (state: DeliveryState) =>
    db
      .selectFrom("deliveries")
      .select((eb) => eb.fn.countAll<number>().as("n"))
      .where("state", "=", sql.lit(state));
  // Each by itself: those that wait may be many, and are counted in their index.
  const pending = await count("pending").executeTakeFirstOrThrow();
  const failed = await count("failed").where("dismissed_at", "is", null).executeTakeFirstOrThrow();
  return { pending: Number(pending.n), failed: Number(failed.n) };
}

/** Whether a text of one of these runs has not left and not failed yet. */
export async function hasPendingDelivery(db: Db, runIds: readonly string[]): Promise<boolean> {
  if (runIds.length === 0) return false;
  const row = await db
    .selectFrom("deliveries")
    .select("id")
    .where("run_id", "in", runIds)
    .where("state", "=", "pending")
    .executeTakeFirst();
  return row !== undefined;
}

/** Removes those whose ids begin so, and which were settled before this time. */
export async function forgetSettled(tx: Tx, prefix: string, beforeMs: number): Promise<void> {
  await tx
    .deleteFrom("deliveries")
    .where("id", ">=", prefix)
    .where("id", "<", `${prefix}~`)
    .where("state", "<>", sql.lit("pending"))
    .where("settled_at", "<", beforeMs)
    .execute();
}
