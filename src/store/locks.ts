// Locks rows, so that concurrent transactions of a shared database run as if one after the other. The
// embedded store runs one transaction at a time and needs no locks.
// A transaction whose decision depends on a session, its lane or its runs first locks the session's row. If
// it depends on a single run, it locks the run's row. The order is sessions (by key), runs, flows, chains,
// waits, slots, budgets, limits. If a transaction cannot keep this order, the database may detect a deadlock;
// the transaction is then retried (`StoreConflict`).

import { type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from "kysely";
import type { Run } from "../core/shapes/run.ts";
import { prepared } from "./prepared.ts";
import type { Tables } from "./schema/tables.ts";
import { kindOf, type Tx } from "./sql.ts";

/** Locks the rows of a query until the transaction ends. */
export function held<T extends keyof Tables, O>(
  tx: Tx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return kindOf(tx) === "postgres" ? query.forUpdate() : query;
}

/** Like `held`, but skips rows that another transaction has locked. */
export function heldIfFree<T extends keyof Tables, O>(
  tx: Tx,
  query: SelectQueryBuilder<Tables, T, O>,
): SelectQueryBuilder<Tables, T, O> {
  return kindOf(tx) === "postgres" ? query.forUpdate().skipLocked() : query;
}

/** Locks these sessions, if they exist. */
export async function holdSessions(tx: Tx, keys: readonly string[]): Promise<void> {
  if (kindOf(tx) === "sqlite" || keys.length === 0) return;
  const wanted = sql.join([...new Set(keys)]);
  await sql`select key from sessions where key in (${wanted}) order by key for update`.execute(tx);
}

/**
 * Locks each given session that no other transaction has locked, and returns the keys of the sessions that it
 * locked. The embedded store needs no locks and returns all keys.
 */
export async function holdFreeSessions(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  if (kindOf(tx) === "sqlite" || keys.length === 0) return keys;
  const wanted = sql.join([...new Set(keys)]);
  const { rows } = await sql<{ key: string }>`select key from sessions where key in (${wanted})
    order by key for update skip locked`.execute(tx);
  return rows.map((row) => row.key);
}

/**
 * Builds the recursive table `above`, which holds the keys of the session's spawner, of the spawner's
 * spawner, and so on up to the root.
 */
function above(sessionKey: string): RawBuilder<unknown> {
  return sql`above (key) as (
      select s.spawned_by from sessions s where s.key = ${sessionKey} and s.spawned_by is not null
      union
      select s.spawned_by from above join sessions s on s.key = above.key where s.spawned_by is not null
    )`;
}

const HOLD_FOR_END = prepared(
  (
    _,
    { sessionKey, flowId }: { sessionKey: string; flowId: string },
  ) => sql`with recursive ${above(sessionKey)}
    select key from sessions where key in (
      select ${sessionKey}::text collate "C"
      union all select key from above
      union all select f.requester_key from flows f where f.flow_id = ${flowId}
      union all select f.target_key from flows f where f.flow_id = ${flowId}
    ) order by key for update`,
);

/**
 * Locks the sessions that the end of a run may change: the run's session, that session's ancestors, and both
 * sessions of the run's flow.
 */
export async function holdForEnd(
  tx: Tx,
  { sessionKey, flow }: Pick<Run, "sessionKey" | "flow">,
): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await HOLD_FOR_END(tx, { sessionKey, flowId: flow?.flowId ?? "" });
}

/** Builds a query that locks the sessions of `holdForAbort` and these. */
const holdAround = (sessionKey: string, others: RawBuilder<unknown>) => sql<{ key: string }>`
  with recursive ${above(sessionKey)}, below (key) as (
      select f.target_key from flows f where f.requester_key = ${sessionKey} and f.state = 'open'
      union
      select f.target_key from below join flows f on f.requester_key = below.key
        where f.kind = 'spawn' and f.state = 'open'
    ), forked (id, key) as (
      select c.session_id, c.session_key from session_ids p join session_ids c on c.forked_from = p.session_id
        where p.session_key = ${sessionKey}
      union
      select c.session_id, c.session_key from forked join session_ids c on c.forked_from = forked.id
    )
    select key from sessions where key in (
      select ${sessionKey}::text collate "C"
      union all select key from above
      union all select key from below
      union all select f.requester_key from flows f where f.target_key = ${sessionKey} and f.state = 'open'
      ${others}
    ) order by key for update`;

/**
 * Locks the sessions that an abort in a session may change: the session itself, its ancestors, those with an
 * open flow to or from it, and the sub-agents of these whose jobs are unfinished. Finished sub-agents are not
 * read, because there may be any number of them.
 */
export async function holdForAbort(tx: Tx, sessionKey: string): Promise<void> {
  if (kindOf(tx) === "postgres") await holdAround(sessionKey, sql``).execute(tx);
}

/**
 * Locks the sessions that the deletion of a session may change: those of `holdForAbort`, all forks that share
 * its messages and may inherit them, and the sessions whose messages it shares, because the last of their
 * forks deletes inherited messages. `more`: further sessions.
 */
export async function holdForDeletion(tx: Tx, sessionKey: string, more: readonly string[]): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  const others = sql`union all select key from forked union all select unnest(${more}::text[])
      union all select p.session_key from session_ids c join session_ids p on p.session_id = c.forked_from
        where c.session_key = ${sessionKey}`;
  for (let held = 0, known = -1; held > known; ) {
    known = held;
    // A fork that was made during the wait for a lock is found by the next query.
    held = (await holdAround(sessionKey, others).execute(tx)).rows.length;
  }
}

/**
 * Advisory locks. In the whole deployment only one transaction at a time can hold each of them. Each chain
 * and each agent has a lock `budgets` of its own.
 */
type AdvisoryLock = "waits" | "budgets" | "limits" | "instructions" | "deadlines";
const ADVISORY_LOCKS: Record<AdvisoryLock, number> = {
  waits: 0x70617201,
  budgets: 0x70617203,
  // Held by a transaction that counts rows, to add one only below a limit.
  limits: 0x70617204,
  // Held while instruction files are compared with their confirmed contents.
  instructions: 0x70617205,
  // Held while a due deadline is handled.
  deadlines: 0x70617206,
};

/** Returns the two numbers of an advisory lock, as arguments of a function of PostgreSQL. */
function lockNumbers(name: AdvisoryLock, owner: string | RawBuilder<string>): RawBuilder<unknown> {
  return sql`${sql.lit(ADVISORY_LOCKS[name])}, hashtext(current_schema() || (${owner})::text)`;
}

/**
 * Waits for an advisory lock and holds it until the transaction ends. Does nothing on the embedded store.
 * `owner`: for `budgets`, the chain or agent.
 */
export async function takeAdvisoryLock(tx: Tx, name: AdvisoryLock, owner = ""): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await sql`select pg_advisory_xact_lock(${lockNumbers(name, owner)})`.execute(tx);
}

/** Returns a condition that takes an advisory lock. It is false if another transaction holds the lock. */
export function freeLock(tx: Tx, name: AdvisoryLock, owner: RawBuilder<string>): RawBuilder<SqlBool> {
  if (kindOf(tx) === "sqlite") return sql`true`;
  return sql`pg_try_advisory_xact_lock(${lockNumbers(name, owner)})`;
}
