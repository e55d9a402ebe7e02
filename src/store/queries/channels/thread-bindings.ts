// Owns the table of thread bindings: threads and chats of channels whose messages go to a separate session.
// The thread's route is the primary key, so a thread is bound to at most one session. A transaction that ends
// or moves a binding locks its row first.

import { type Selectable, sql } from "kysely";
import type { Route } from "../../../core/shapes/route.ts";
import { held } from "../../locks.ts";
import type { ThreadBindingTable } from "../../schema/tables.ts";
import type { Db, Tx } from "../../sql.ts";
import { patternCondition } from "../sessions/session-scope.ts";
import { routeKeyOf } from "./deliveries.ts";

export interface ThreadBinding {
  /** Route of the thread, in the same form as `replyTo` of its messages. */
  readonly route: Route;
  readonly sessionKey: string;
  /** `created`: the thread was created for the binding. `bound`: the chat existed before. */
  readonly kind: "created" | "bound";
  readonly createdAt: number;
  /** Time when the last message arrived. */
  readonly usedAt: number;
  /** Time after the last message at which the binding ends; 0: never. */
  readonly idleMs: number;
  /** Maximum age of the binding; 0: unlimited. */
  readonly maxAgeMs: number;
}

function toBinding(row: Selectable<ThreadBindingTable>): ThreadBinding {
  return {
    route: JSON.parse(row.route_json) as Route,
    sessionKey: row.session_key,
    kind: row.kind as ThreadBinding["kind"],
    createdAt: row.created_at,
    usedAt: row.used_at,
    idleMs: row.idle_ms,
    maxAgeMs: row.max_age_ms,
  };
}

/** Stores a binding. Returns false if the thread is already bound; that binding does not change. */
export async function insertBinding(tx: Tx, binding: ThreadBinding): Promise<boolean> {
  const done = await tx
    .insertInto("thread_bindings")
    .values({
      route_key: routeKeyOf(binding.route),
      route_json: JSON.stringify(binding.route),
      session_key: binding.sessionKey,
      kind: binding.kind,
      created_at: binding.createdAt,
      used_at: binding.usedAt,
      idle_ms: binding.idleMs,
      max_age_ms: binding.maxAgeMs,
    })
    .onConflict((conflict) => conflict.column("route_key").doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

function bindingOfPlace(db: Db, routeKey: string) {
  return db.selectFrom("thread_bindings").selectAll().where("route_key", "=", routeKey);
}

/** Returns the binding of a thread, by its route or route key. */
export async function getBinding(db: Db, place: Route | string): Promise<ThreadBinding | undefined> {
  const routeKey = typeof place === "string" ? place : routeKeyOf(place);
  const row = await bindingOfPlace(db, routeKey).executeTakeFirst();
  return row && toBinding(row);
}

/** Like `getBinding`, but locks the row until the transaction ends. */
export async function holdBinding(tx: Tx, place: Route | string): Promise<ThreadBinding | undefined> {
  const routeKey = typeof place === "string" ? place : routeKeyOf(place);
  const row = await held(tx, bindingOfPlace(tx, routeKey)).executeTakeFirst();
  return row && toBinding(row);
}

/** Records the time of a new message. */
export async function touchBinding(tx: Tx, { route }: ThreadBinding, at: number): Promise<void> {
  await tx
    .updateTable("thread_bindings")
    .set({ used_at: at })
    .where("route_key", "=", routeKeyOf(route))
    .execute();
}

export async function limitBinding(
  tx: Tx,
  { route, idleMs, maxAgeMs }: Pick<ThreadBinding, "route" | "idleMs" | "maxAgeMs">,
): Promise<void> {
  await tx
    .updateTable("thread_bindings")
    .set({ idle_ms: idleMs, max_age_ms: maxAgeMs })
    .where("route_key", "=", routeKeyOf(route))
    .execute();
}

/** Deletes a binding. Returns false if the binding was already deleted. */
export async function deleteBinding(tx: Tx, { route }: ThreadBinding): Promise<boolean> {
  const done = await tx
    .deleteFrom("thread_bindings")
    .where("route_key", "=", routeKeyOf(route))
    .executeTakeFirst();
  return done.numDeletedRows > 0n;
}

/** Returns the bindings of a session, oldest first. */
export async function bindingsOfSession(db: Db, sessionKey: string): Promise<ThreadBinding[]> {
  const rows = await db
    .selectFrom("thread_bindings")
    .selectAll()
    .where("session_key", "=", sessionKey)
    .orderBy("created_at")
    .orderBy("route_key")
    .execute();
  return rows.map(toBinding);
}

/** Lists bindings, newest first. With patterns, only those whose session keys match one of them. */
export async function listBindings(
  db: Db,
  { limit, patterns }: { readonly limit: number; readonly patterns?: readonly string[] | undefined },
): Promise<ThreadBinding[]> {
  let query = db
    .selectFrom("thread_bindings")
    .selectAll()
    .orderBy("created_at", "desc")
    .orderBy("route_key")
    .limit(limit);
  if (patterns !== undefined) query = query.where(patternCondition(db, sql.ref("session_key"), patterns));
  return (await query.execute()).map(toBinding);
}
