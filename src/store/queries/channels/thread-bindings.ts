// Owns the table of thread bindings: threads and chats of channels whose messages go to a separate session.
// The thread's route is the primary key, so a thread is bound to at most one session. A transaction that ends
// or moves a binding locks its row first.

import { sql } from "kysely";
import type { Route } from "../../../core/shapes/route.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Db, Tx } from "../../sql.ts";
import { patternCondition } from "../sessions/session-scope.ts";
import { routeKeyOf } from "./deliveries.ts";

/**
 * `route`: of the thread, in the same form as `replyTo` of its messages. `created`: the thread was created
 * for the binding. `bound`: the chat existed before.
 */
export type ThreadBinding = RecordOf<
  "thread_bindings",
  { readonly route: Route; readonly kind: "created" | "bound" },
  "route_key"
>;

const BINDINGS = recordsOf<ThreadBinding & { readonly routeKey: string }, ThreadBinding>()(
  "thread_bindings",
  {
    key: ["route_key"],
    columns: ["route_json", "session_key", "kind", "created_at", "used_at", "idle_ms", "max_age_ms"],
  },
  ({ routeKey: _, ...binding }) => binding,
);

/** Stores a binding. Returns false if the thread is already bound; that binding does not change. */
export const insertBinding = (tx: Tx, binding: ThreadBinding) =>
  BINDINGS.add(tx, { ...binding, routeKey: routeKeyOf(binding.route) });

const keyOf = (place: Route | string) => ({
  routeKey: typeof place === "string" ? place : routeKeyOf(place),
});

/** Returns the binding of a thread, by its route or route key. */
export const getBinding = (db: Db, place: Route | string): Promise<ThreadBinding | undefined> =>
  BINDINGS.find(db, keyOf(place));

/** Like `getBinding`, but locks the row until the transaction ends. */
export const holdBinding = (tx: Tx, place: Route | string): Promise<ThreadBinding | undefined> =>
  BINDINGS.hold(tx, keyOf(place));

/** Records the time of a new message. */
export const touchBinding = (tx: Tx, { route }: ThreadBinding, usedAt: number) =>
  BINDINGS.change(tx, keyOf(route), { usedAt });

export const limitBinding = (
  tx: Tx,
  { route, idleMs, maxAgeMs }: Pick<ThreadBinding, "route" | "idleMs" | "maxAgeMs">,
) => BINDINGS.change(tx, keyOf(route), { idleMs, maxAgeMs });

/** Deletes a binding. Returns false if the binding was already deleted. */
export const deleteBinding = (tx: Tx, { route }: ThreadBinding) => BINDINGS.remove(tx, keyOf(route));

/** Returns the bindings of a session, oldest first. */
export const bindingsOfSession = (db: Db, sessionKey: string): Promise<ThreadBinding[]> =>
  BINDINGS.all(BINDINGS.rows(db, { sessionKey }).orderBy("created_at").orderBy("route_key"));

/** Lists bindings, newest first. With patterns, only those whose session keys match one of them. */
export function listBindings(
  db: Db,
  { limit, patterns }: { readonly limit: number; readonly patterns?: readonly string[] | undefined },
): Promise<ThreadBinding[]> {
  const query = BINDINGS.rows(db).orderBy("created_at", "desc").orderBy("route_key").limit(limit);
  return BINDINGS.all(
    patterns === undefined ? query : query.where(patternCondition(db, sql.ref("session_key"), patterns)),
  );
}
