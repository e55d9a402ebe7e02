// Owns the locks by which the transactions of a shared database serialise. The embedded store runs its
// transactions one after the other and takes none.
// LK1: whoever decides by a session, its lane or what hangs on it holds the session's row; by a run, the
//      run's.
// LK2: the order is sessions (by key), runs, flows, chains, waits, slots, budgets. Where a unit can't keep
//      it, the database finds the deadlock and the unit is run again (`StoreConflict`).

import { type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import { kindOf, type Tx } from "./sql.ts";
import type { Tables } from "./tables.ts";

/** The row that a query reads stays as it is until the transaction ends. */
export function held<T extends keyof Tables, O>(
  tx: Tx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return kindOf(tx) === "postgres" ? query.forUpdate() : query;
}

/** Like `held`; rows that somebody else holds are left out. */
export function heldIfFree<T extends keyof Tables, O>(
  tx: Tx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return kindOf(tx) === "postgres" ? query.forUpdate().skipLocked() : query;
}

/** Holds these sessions, those that exist. */
export async function holdSessions(tx: Tx, keys: readonly string[]): Promise<void> {
  if (kindOf(tx) === "sqlite" || keys.length === 0) return;
  const wanted = sql.join([...new Set(keys)]);
  await sql`select key from sessions where key in (${wanted}) order by key for update`.execute(tx);
}

/**
 * Holds those of these sessions that nobody else holds. Returns their keys; on the embedded store, all of
 * them.
 */
export async function holdFreeSessions(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  if (kindOf(tx) === "sqlite" || keys.length === 0) return keys;
  const wanted = sql.join([...new Set(keys)]);
  const { rows } = await sql<{ key: string }>`select key from sessions where key in (${wanted})
    order by key for update skip locked`.execute(tx);
  return rows.map((row) => row.key);
}

/** The recursive table `above`: who spawned this session, who spawned that one, and so on. */
function above(sessionKey: string): RawBuilder<unknown> {
  return sql`above (key) as (
      select s.spawned_by from sessions s where s.key = ${sessionKey} and s.spawned_by is not null
      union
      select s.spawned_by from above join sessions s on s.key = above.key where s.spawned_by is not null
    )`;
}

/** Holds what the end of a run is about: its session, those above it, and the parties of its flow. */
export async function holdForEnd(tx: Tx, run: { sessionKey: string; flowId?: string }): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  const { sessionKey, flowId = "" } = run;
  await sql`with recursive ${above(sessionKey)}
    select key from sessions where key in (
      select ${sessionKey}::text collate "C"
      union all select key from above
      union all select f.requester_key from flows f where f.flow_id = ${flowId}
      union all select f.target_key from flows f where f.flow_id = ${flowId}
    ) order by key for update`.execute(tx);
}

/** Holds what the abort of a session's work is about: also all below it, and whom it converses with. */
export async function holdForAbort(tx: Tx, sessionKey: string): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await sql`with recursive ${above(sessionKey)}, below (key) as (
      select s.key from sessions s where s.spawned_by = ${sessionKey}
      union
      select s.key from below join sessions s on s.spawned_by = below.key
    )
    select key from sessions where key in (
      select ${sessionKey}::text collate "C"
      union all select key from above
      union all select key from below
      union all select f.requester_key from flows f where f.target_key = ${sessionKey} and f.state = 'open'
      union all select f.target_key from flows f where f.requester_key = ${sessionKey} and f.state = 'open'
    ) order by key for update`.execute(tx);
}

/** Advisory locks: only one transaction of the whole deployment holds each at a time. */
type AdvisoryLock = "waits" | "slots" | "budgets";
const ADVISORY_LOCKS: Record<AdvisoryLock, number> = {
  waits: 0x70617201,
  slots: 0x70617202,
  budgets: 0x70617203,
};

/** Waits for an advisory lock and holds it until the transaction ends. The embedded store needs none. */
export async function takeAdvisoryLock(tx: Tx, name: AdvisoryLock): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  const lockNumber = sql.lit(ADVISORY_LOCKS[name]);
  await sql`select pg_advisory_xact_lock(${lockNumber}, hashtext(current_schema()::text))`.execute(tx);
}
