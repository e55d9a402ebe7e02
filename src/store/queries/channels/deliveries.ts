// Owns the outbox table: texts to send through a channel, events for web hooks, and the outcomes of their
// delivery.
// A row becomes `sent` only when the channel acknowledges it (I5). The start of an attempt is stored before
// the attempt, and an attempt that a crash interrupted is never silently repeated. The rows of a queue are
// delivered in order: a pending row blocks the later ones. A queue is a route, or the events for a program
// about one session. Each queue with pending rows has a timer, which is a stored deadline at the time of its
// first row; triggers keep it (`outbox-schema.ts`).

import { type RawBuilder, type Selectable, type SqlBool, sql, type Updateable } from "kysely";
import type { Controls } from "../../../core/rules/command.ts";
import type { Route } from "../../../core/shapes/route.ts";
import { heldIfFree } from "../../locks.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import { firstSql } from "../../schema/outbox-schema.ts";
import type { DeliveryTable } from "../../schema/tables.ts";
import { changesRows, countRows, type Db, isAmong, type Tx } from "../../sql.ts";
import { deletePiece } from "../delete-piece.ts";
import { livingProcesses } from "../processes.ts";

/** Time after which a delivery is given up. A retry by a person starts it again. */
const GIVE_UP_MS = 24 * 3_600_000;

export type DeliveryState = "pending" | "sent" | "failed" | "skipped";
/** Code of the outbox row that records dropped events. Its text has only their number. */
export const BACKLOG_FULL = "backlog_full";

/** Texts for people, or events for programs. The two classes are delivered independently. */
export type DeliveryClass = "texts" | "hooks";

/**
 * A row of the outbox. `partsSent` parts of the text were acknowledged by the channel; they are not sent
 * again. After `giveUpAt`, a failed attempt is not repeated. The file with the id `fileId` is sent instead
 * of the text.
 */
export type Delivery = RecordOf<
  "deliveries",
  {
    readonly kind: "announce" | "send" | "hook";
    readonly route: Route;
    readonly state: DeliveryState;
    readonly attemptOpen: boolean;
    readonly giveUpAt: number;
    readonly controls?: Controls;
  },
  "route_key" | "attempt_owner" | "erase"
>;

type Defaults = "seq" | "giveUpAt";
const DELIVERIES = recordsOf<Omit<Delivery, Defaults> & { readonly [K in Defaults]?: number }, Delivery>()(
  "deliveries",
  {
    key: ["id"],
    columns: [
      "session_key",
      "run_id",
      "kind",
      "route_json",
      "text",
      "state",
      "code",
      "error",
      "attempts",
      "parts_sent",
      "next_attempt_at",
      "created_at",
      "settled_at",
      "dismissed_at",
      "file_id",
      "controls_json",
    ],
    flags: ["attempt_open"],
    names: { give_up_at: "giveUpAt" },
    generated: ["seq"],
  },
  ({ seq = 0, giveUpAt, ...delivery }) => ({
    ...delivery,
    seq,
    giveUpAt: giveUpAt ?? delivery.createdAt + GIVE_UP_MS,
  }),
);

type Fixed = "id" | "sessionKey" | "runId" | "kind" | "route" | "text" | "code" | "error" | "createdAt";

export interface NewDelivery extends Pick<Delivery, Fixed | "fileId" | "controls"> {
  /**
   * `skipped`: policy forbids the delivery. `failed`: there is no recipient. Both are stored so that people
   * can see them.
   */
  readonly state: "pending" | "skipped" | "failed";
  /** True for an event about a session that is deleted in the same transaction. */
  readonly erase?: boolean;
}

/** Outcome of an attempt. `retry`: nothing was sent, so the attempt can be repeated. */
export type AttemptOutcome =
  | { readonly kind: "sent" }
  /** The channel has acknowledged one part; more parts follow. */
  | { readonly kind: "part" }
  | { readonly kind: "failed" | "skipped"; readonly code: string; readonly error: string }
  | { readonly kind: "retry"; readonly error: string; readonly nextAttemptAt: number };

/** Returns a key that is the same for equal routes, whatever the order of their fields. */
export function routeKeyOf(route: Route): string {
  return JSON.stringify([route.channel, route.accountId ?? null, route.to, route.threadId ?? null]);
}

/** Returns the prefix with which the keys of all routes of a channel begin. */
export function channelPrefix(channel: string): string {
  return `[${JSON.stringify(channel)},`;
}

/** Queues a text. A second call with the same id changes nothing. */
export async function insertDelivery(tx: Tx, delivery: NewDelivery): Promise<void> {
  const { createdAt, state, route, erase } = delivery;
  const fresh = { attempts: 0, attemptOpen: false, partsSent: 0, nextAttemptAt: createdAt };
  const row = DELIVERIES.write({
    ...delivery,
    ...fresh,
    ...(state === "pending" ? {} : { settledAt: createdAt }),
  });
  await tx
    .insertInto("deliveries")
    .values({ ...row, route_key: routeKeyOf(route), erase: Number(erase === true) })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}

export const getDelivery = (db: Db, id: string) => DELIVERIES.find(db, { id });

/** Returns the delivery state of each run's reply. Ignores events for programs. */
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

/**
 * Returns due rows of a place in their order, those that have waited longest since they were due. Each is the
 * first pending row of its queue and has no open attempt.
 */
export async function dueDeliveries(
  db: Db,
  { place, now, limit }: { place: string; now: number; limit: number },
): Promise<Delivery[]> {
  const first = sql.raw(firstSql("t.key"));
  const { rows } = await sql<Selectable<DeliveryTable>>`select due.* from deadlines t
    cross join deliveries due where t.kind = ${place} and t.due_at <= ${now}
      and due.seq = (select d.seq ${first}) and due.attempt_open = 0
    order by t.due_at limit ${sql.lit(limit)}`.execute(db);
  return rows.map(DELIVERIES.read).sort((a, b) => a.seq - b.seq);
}

/**
 * Stores that `owner` starts an attempt to send the parts after `partsSent`. A repeated call has no effect.
 * Returns false if another process has made the attempt or settled the row. The caller must then send
 * nothing.
 */
export async function beginAttempt(
  tx: Tx,
  delivery: Pick<Delivery, "id" | "partsSent">,
  owner: string,
): Promise<boolean> {
  const attempt = tx
    .updateTable("deliveries")
    .set({ attempt_open: 1, attempt_owner: owner, attempts: sql<number>`attempts + 1 - attempt_open` })
    .where("id", "=", delivery.id)
    .where("state", "=", sql.lit("pending"))
    .where((eb) => eb.or([eb("attempt_open", "=", 0), eb("attempt_owner", "=", owner)]))
    .where("parts_sent", "=", delivery.partsSent);
  return changesRows(tx, attempt);
}

function settleFields(outcome: Exclude<AttemptOutcome, { kind: "part" }>, at: number) {
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

/** Stores the outcome of the owner's open attempt. Returns false, and changes nothing, if there is none. */
export async function endAttempt(
  tx: Tx,
  { id, owner }: { id: string; owner: string },
  outcome: AttemptOutcome,
  at: number,
): Promise<boolean> {
  const row = await tx
    .updateTable("deliveries")
    .set((eb) => ({
      attempt_open: 0,
      attempt_owner: null,
      ...(outcome.kind === "part" ? { parts_sent: eb("parts_sent", "+", 1) } : settleFields(outcome, at)),
    }))
    .where("id", "=", id)
    .where("attempt_open", "=", 1)
    .where(sql<string>`coalesce(attempt_owner, '')`, "=", owner)
    .returning(["state", "erase", "file_id"])
    .executeTakeFirst();
  if (row?.erase === 1 && row.state !== "pending") await eraseSettled(tx, sql`id = ${id}`);
  return row !== undefined;
}

/** Blanks settled deliveries of a deleted session, and deletes their files. A failed one is not repeated. */
async function eraseSettled(tx: Tx, which: RawBuilder<SqlBool>): Promise<void> {
  await sql`delete from sent_files where id in (select file_id from deliveries where ${which})
    and not exists (select 1 from session_ids i where i.session_id = sent_files.session_id)`.execute(tx);
  await sql`update deliveries set text = '', error = null,
      dismissed_at = case when state = 'failed' then coalesce(dismissed_at, settled_at) else dismissed_at end
    where ${which} and state <> 'pending' and coalesce(code, '') <> ${BACKLOG_FULL}`.execute(tx);
}

/** Blanks the deliveries of a deleted session. Those that are pending still go out before. */
export async function eraseDeliveries(tx: Tx, sessionKey: string): Promise<void> {
  await tx
    .updateTable("deliveries")
    .set({ erase: 1 })
    .where("session_key", "=", sessionKey)
    .where("state", "=", sql.lit("pending"))
    .execute();
  await eraseSettled(tx, sql`session_key = ${sessionKey} and erase = 0`);
}

export interface Recovery {
  readonly at: number;
  /** Returns whether the channel can recognise a repeated text. */
  canRepeat(route: Route): boolean;
  /**
   * `the dead`: only attempts of processes that no longer run. If absent, all attempts, because no other
   * process exists.
   */
  readonly from?: "the dead" | undefined;
  /** Only deliveries of this class. If absent, all deliveries. */
  readonly of?: DeliveryClass | undefined;
  /**
   * `owner` is the calling process. `isUnderWay` returns whether this process is currently sending the row.
   * Other open attempts of this process were interrupted.
   */
  readonly own?: { readonly owner: string; isUnderWay(id: string): boolean };
}

/**
 * Settles interrupted attempts. If the channel can recognise a repeated text, the row becomes due again.
 * Otherwise it fails as `ambiguous`, and a person decides. Returns the failed rows. Attempts without an
 * owner, which old versions stored, count as interrupted.
 */
export async function recoverOpenAttempts(
  tx: Tx,
  { at, canRepeat, from, of, own }: Recovery,
): Promise<Delivery[]> {
  let query = tx.selectFrom("deliveries").selectAll().where("attempt_open", "=", sql.lit(1));
  if (of !== undefined) query = query.where("kind", of === "hooks" ? "=" : "<>", sql.lit("hook"));
  if (from !== undefined) {
    const isDead = sql<SqlBool>`coalesce(attempt_owner, '') not in ${livingProcesses()}`;
    query = query.where(sql<SqlBool>`(${isDead} or attempt_owner = ${own?.owner ?? ""})`);
  }
  const rows = await heldIfFree(tx, query.orderBy("seq")).execute();
  const failed: Delivery[] = [];
  for (const row of rows) {
    // Checks the row as it was read above, so an attempt that this process starts now is not affected.
    if (row.attempt_owner === own?.owner && own.isUnderWay(row.id)) continue;
    const delivery = DELIVERIES.read(row);
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

/** Selects failed rows that nobody has dismissed. */
const openFailures = (db: Db) =>
  DELIVERIES.rows(db).where("state", "=", sql.lit("failed")).where("dismissed_at", "is", null);

const changeFailed = (tx: Tx, id: string, values: Updateable<DeliveryTable>) => {
  const failed = tx.updateTable("deliveries").where("id", "=", id).where("state", "=", "failed");
  return changesRows(tx, failed.where("dismissed_at", "is", null).set(values));
};

/**
 * Makes a failed row that nobody has dismissed pending again, in its old position. Returns false if the row
 * is in another state.
 */
export function requeueDelivery(tx: Tx, id: string, at: number): Promise<boolean> {
  const fresh = { code: null, error: null, attempts: 0, settled_at: null };
  const due = { next_attempt_at: at, give_up_at: at + GIVE_UP_MS };
  return changeFailed(tx, id, { state: "pending", ...fresh, ...due });
}

/** Dismisses a failed row. Returns false if the row is in another state or already dismissed. */
export const dismissDelivery = (tx: Tx, id: string, at: number) => changeFailed(tx, id, { dismissed_at: at });

/** Returns failed deliveries that are not dismissed, newest first. */
export function failedDeliveries(db: Db, limit: number): Promise<Delivery[]> {
  return DELIVERIES.all(openFailures(db).orderBy("seq", "desc").limit(limit));
}

interface DeliveryFilter {
  readonly state?: DeliveryState;
  readonly sessionKey?: string;
  /** `nextCursor` of the previous page. For any other value the page is empty. */
  readonly cursor?: string;
  readonly limit: number;
}

/** Lists the outbox, newest first. */
export async function listDeliveries(
  db: Db,
  filter: DeliveryFilter,
): Promise<{ rows: Delivery[]; nextCursor?: string }> {
  const before = filter.cursor === undefined ? undefined : Number(filter.cursor);
  if (before !== undefined && !Number.isSafeInteger(before)) return { rows: [] };
  let query = DELIVERIES.rows(db);
  if (filter.state !== undefined) query = query.where("state", "=", sql.lit(filter.state));
  if (filter.sessionKey !== undefined) query = query.where("session_key", "=", filter.sessionKey);
  if (before !== undefined) query = query.where("seq", "<", before);
  const found = await query
    .orderBy("seq", "desc")
    .limit(filter.limit + 1)
    .execute();
  const rows = found.slice(0, filter.limit).map(DELIVERIES.read);
  const last = rows[rows.length - 1];
  return found.length > filter.limit && last !== undefined
    ? { rows, nextCursor: String(last.seq) }
    : { rows };
}

/** Returns the texts for people that these runs produced, newest first. */
export async function deliveriesOfRuns(
  db: Db,
  runIds: readonly string[],
  limit: number,
): Promise<Delivery[]> {
  if (runIds.length === 0) return [];
  const texts = DELIVERIES.rows(db).where("run_id", "in", runIds).where("kind", "!=", sql.lit("hook"));
  return DELIVERIES.all(texts.orderBy("seq", "desc").limit(limit));
}

/** Counts pending texts, and failed texts that are not dismissed. */
export async function countDeliveries(db: Db): Promise<{ pending: number; failed: number }> {
  // Two queries, because there may be many pending rows, and each query can use its own index.
  const pending = await countRows(DELIVERIES.rows(db).where("state", "=", sql.lit("pending")));
  return { pending, failed: await countRows(openFailures(db)) };
}

/** Returns whether any of these runs has a text that is still pending. */
export async function hasPendingDelivery(db: Db, runIds: readonly string[]): Promise<boolean> {
  if (runIds.length === 0) return false;
  const row = await db
    .selectFrom("deliveries")
    .select("id")
    .where(isAmong(db, "run_id", runIds))
    // No index has this column, so the rows are found by their runs, however many others are pending.
    .where("settled_at", "is", null)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes rows whose ids begin with `prefix` and that were settled before this time. */
export function forgetSettled(tx: Tx, prefix: string, beforeMs: number): Promise<boolean> {
  const isNamed = sql`id >= ${prefix} and id < ${`${prefix}~`}`;
  const which = sql`${isNamed} and state <> 'pending' and settled_at < ${beforeMs}`;
  return deletePiece(tx, "deliveries", ["seq"], which);
}
