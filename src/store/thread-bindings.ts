// Owns the table of thread bindings: places of channels whose messages go to a session of their own.
// TB1: a place is bound to one session at most: its route is the table's key.
// TB2: whoever ends or moves a binding holds its row: of two, one finds that it is gone.

import { type Selectable, sql } from "kysely";
import type { Route } from "../core/route.ts";
import type { ThreadBindingTable } from "./channel-tables.ts";
import { routeKeyOf } from "./deliveries.ts";
import { held } from "./locks.ts";
import { patternCondition } from "./session-scope.ts";
import type { Db, Tx } from "./sql.ts";

export interface ThreadBinding {
  /** As messages that come from the place name it in `replyTo`. */
  readonly route: Route;
  readonly sessionKey: string;
  /** `created`: a thread that was made for it. `bound`: a chat that was there before. */
  readonly kind: "created" | "bound";
  readonly createdAt: number;
  /** When a message last came. */
  readonly usedAt: number;
  /** It ends this long after the last message; 0: never. */
  readonly idleMs: number;
  /** It ends at this age; 0: never. */
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

/** Binds a place. False: it is bound already, and stays as it was. */
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

/** The binding of a place, by its route or the key of that. */
export async function getBinding(db: Db, place: Route | string): Promise<ThreadBinding | undefined> {
  const routeKey = typeof place === "string" ? place : routeKeyOf(place);
  const row = await bindingOfPlace(db, routeKey).executeTakeFirst();
  return row && toBinding(row);
}

/** Like `getBinding`, for whoever decides by it: it stays as it is until the transaction ends. */
export async function holdBinding(tx: Tx, place: Route | string): Promise<ThreadBinding | undefined> {
  const routeKey = typeof place === "string" ? place : routeKeyOf(place);
  const row = await held(tx, bindingOfPlace(tx, routeKey)).executeTakeFirst();
  return row && toBinding(row);
}

/** A message came from the place. */
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

/** False: somebody else ended it. */
export async function deleteBinding(tx: Tx, { route }: ThreadBinding): Promise<boolean> {
  const done = await tx
    .deleteFrom("thread_bindings")
    .where("route_key", "=", routeKeyOf(route))
    .executeTakeFirst();
  return done.numDeletedRows > 0n;
}

/** The places of a session, oldest first. */
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

/** Those whose sessions fit one of the patterns, newest first; without patterns all of them. */
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
