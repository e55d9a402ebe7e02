// Says what the stores of earlier versions have, so that they are converted once. Only version 0.1 and the
// last one before the tables had one definition are known; the versions between them were never released.

import { POSTGRES_TEXT, type StoreKind } from "./definition.ts";
import { queueKeySql, timerKindSql } from "./outbox-schema.ts";

/**
 * The releases that changed the schema, oldest first, each with the version of its schema. One that was not
 * published exists only as checkouts.
 */
const RELEASES = [
  { release: "0.1.0", published: false, sqlite: 37, postgres: 35 },
  { release: "0.2.0", published: true, sqlite: 55, postgres: 55 },
] as const;
const VERSION_0_1: Readonly<Record<StoreKind, number>> = RELEASES[0];
const { sqlite: CURRENT, release: RELEASE } = RELEASES[1];
/**
 * Version of the schema in both databases: `user_version` of a file, `schema_version` on a server. A change
 * of a table increases it. A store of the version before then gets what it lacks.
 */
export const SCHEMA_VERSION: number = CURRENT;
const LAST_BEFORE: Readonly<Record<StoreKind, number>> = { sqlite: 47, postgres: 45 };
/** The first version with one definition, after all numbers before, so that old programs refuse it. */
export const FIRST_DEFINED = 50;

/** Stores before this version have one source of outside content in a column of its own. */
const MARKED_BEFORE = 53;

/** Returns whether a store of this version, which is older than this program's, can be converted. */
export function isConvertible(kind: StoreKind, version: number): boolean {
  return version >= FIRST_DEFINED || version === VERSION_0_1[kind] || version === LAST_BEFORE[kind];
}

/** Returns whether a release is later than another one, both like `0.2.0`. */
export function isLater(release: string, than: string): boolean {
  const [a = [], b = []] = [release, than].map((text) => text.split(".").map(Number));
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}

/** Returns the first release whose schema has this version. A version that was never released has none. */
export function releaseOf(kind: StoreKind, version: number): string | undefined {
  return RELEASES.find((one) => one[kind] === version)?.release;
}

/** Returns whether a release can be installed. */
export function isPublished(release: string | undefined): boolean {
  return RELEASES.some((one) => one.release === release && one.published);
}

/** Statements that store the version, and for the programs of earlier releases the name of the release. */
export const NOTE_VERSION: Readonly<Record<StoreKind, string>> = {
  sqlite: `create table if not exists schema_release (release text not null) strict;
    delete from schema_release; insert into schema_release values ('${RELEASE}');
    pragma user_version = ${CURRENT};`,
  postgres: `alter table schema_version add column if not exists release ${POSTGRES_TEXT};
    update schema_version set version = ${CURRENT}, release = '${RELEASE}';`,
};

/** Compares the schema of a store from a later release with this program's. `release`: as the store says. */
export function describeNewer(version: number, release: unknown): string {
  const isNamed = typeof release === "string" && /^[\w.+-]{1,40}$/.test(release);
  const named = isNamed ? ` of release ${release}` : "";
  const known = `version ${CURRENT} of release ${RELEASE}`;
  return `it has schema version ${version}${named}; this program has ${known}`;
}

/** Tables and columns that those versions have and this one lacks. */
export const GONE = {
  tables: ["job_waits"],
  columns: {
    runs: ["pool", "resuming", "crashes_in_row", "calls_answered"],
    sessions: ["outside"],
    chains: ["outside"],
    cron_jobs: ["outside"],
  },
};

/** The labels of a chain in which a guest wrote. */
const A_GUEST = JSON.stringify({ outside: [{ source: "guest unknown", since: 0 }] });

/** The rows of a lane that are before a queued run, or hold the lane. */
const BEFORE = `select 1 from runs e where e.session_key = runs.session_key
  and (e.state in ('running', 'waiting') or e.state = 'queued' and e.lane_seq < runs.lane_seq)`;

/**
 * Returns the statements that fill the new columns and tables of a store of version 0.1: the sources of
 * outside content, the timers of the outbox, the queues of unfinished runs, of which the oldest of each idle
 * lane is ready, the usage of each day, and the waits for jobs, which the end of a run did not end there.
 */
export function fillSql(kind: StoreKind, version: number): string {
  if (version >= FIRST_DEFINED && version < MARKED_BEFORE) {
    const quoted = kind === "sqlite" ? "json_quote(outside)" : "to_json(outside)::text";
    const labels = `'{"outside":[{"source":' || ${quoted} || ',"since":0}]}'`;
    const tables = ["sessions", "chains", "cron_jobs"];
    return tables
      .map((name) => `update ${name} set labels_json = ${labels} where outside is not null;`)
      .join("\n");
  }
  if (version !== VERSION_0_1[kind]) return "";
  return `
update chains set labels_json = '${A_GUEST}' where guest = 1;
update sessions set labels_json = '${A_GUEST}' where session_id in (
  select r.session_id from runs r join chains c on c.chain_id = r.chain_id where c.guest = 1);
insert into deadlines (kind, key, due_at)
  select ${timerKindSql("d.", kind === "sqlite" ? "" : "::json")}, ${queueKeySql("d.")}, d.next_attempt_at
  from deliveries d where d.settled_at is null and not exists (select 1 from deliveries e
    where e.settled_at is null and ${queueKeySql("e.")} = ${queueKeySql("d.")} and e.seq < d.seq)
  on conflict do nothing;
update runs set queue = case when kind = 'append' then '-'
    when session_key like 'agent:%:subagent:%' then '2' || agent_id
    when flow_id is null then '0' || agent_id else '1' || agent_id end
  where ended_at is null;
update runs set ready_at = accepted_at where state = 'queued' and not exists (${BEFORE});
insert into agent_days (agent_id, day, part, tokens, cost)
  select agent_id, at - at % 86400000, 0, sum(total_tokens), sum(cost) from ledger group by 1, 2;
insert into waits (call_id, of_call, kind, waiter_run_id, waiter_session_key, target_run_id,
    target_session_key, state, deadline_at, owner)
  select call_id || ' ' || flow_id, call_id, 'job', waiter_run_id, waiter_session_key, flow_id,
    target_session_key, case when state = 'open' and exists (select 1 from runs r
      where r.run_id = waiter_run_id and r.ended_at is not null) then 'ended' else state end,
    deadline_at, owner from job_waits;`;
}
