// Owns the session table, which has one row per session, and the table of all transcript ids that a session
// ever had. A patch changes only the fields that it contains. A reset keeps settings and route. The runs of a
// session are numbered. The next number is in the session's row, and the lock of this row makes runs commit
// in the order of their numbers (I3). `orphaned` means that the session's spawner does not exist; each insert
// and delete of a session updates it. session-lists.ts lists sessions.

import { sql } from "kysely";
import { forkOrigins } from "../../../core/fork-key.ts";
import { jsonOf, objectOf } from "../../../core/json.ts";
import { optional } from "../../../core/optional.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import type { Route } from "../../../core/shapes/route.ts";
import type { Session, SessionState } from "../../../core/shapes/session.ts";
import { held } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import { type Changes, recordsOf } from "../../records.ts";
import type { Table } from "../../schema/definition.ts";
import { TABLES } from "../../schema/tables.ts";
import { changesRows, type Db, isAmong, type Tx } from "../../sql.ts";
import { eraseDeliveries } from "../channels/deliveries.ts";
import { eraseAnswers } from "../idempotency.ts";
import { erasePayloads } from "../live-payloads.ts";
import { deleteSessionRules } from "../permission-rules.ts";
import { forgetInstructions } from "../runs/revisions.ts";
import { ACTIVE, eraseInputs } from "../runs/runs.ts";
import { handOver, moveMessages, trimInherited } from "../transcripts/inherited.ts";

/**
 * Maximum number of spawners to follow. It is larger than any allowed spawn depth, and stops at a cycle in
 * damaged data.
 */
const ANCESTORS_MAX = 64;

/** Changes of a session. `null` removes a field; an absent field does not change. */
export type SessionPatch = Changes<
  Omit<Session, "key" | "sessionId" | "agentId" | "kind" | "createdAt" | "spawnDepth" | "external">
>;

const SESSIONS = recordsOf<Session>()("sessions", {
  key: ["key"],
  columns: [
    "session_id",
    "agent_id",
    "kind",
    "created_at",
    "updated_at",
    "spawn_depth",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cost",
    "label",
    "display_name",
    "first_words",
    "failed_run",
    "archived_at",
    "spawned_by",
    "model",
    "thinking_level",
    "verbose_level",
    "send_policy",
    "instructions",
    "group_channel",
    "spawn_json",
    "labels_json",
  ],
  flags: ["external", "system_sent", "aborted_last_run"],
  names: {
    context_tokens: "contextUsed",
    last_channel: "lastRoute.channel",
    last_to: "lastRoute.to",
    last_account_id: "lastRoute.accountId",
    last_thread_id: "lastRoute.threadId",
  },
});

export const toSession = SESSIONS.read;

/** Inserts a session and its first transcript id. The caller must have checked that the key is not in use. */
export async function insertSession(tx: Tx, session: Session): Promise<void> {
  const { key, spawnedBy } = session;
  const orphaned =
    spawnedBy === undefined
      ? 0
      : sql<number>`case when exists (select 1 from sessions where key = ${spawnedBy}) then 0 else 1 end`;
  await tx
    .insertInto("sessions")
    .values({ ...SESSIONS.write(session), orphaned })
    .execute();
  // Children of an earlier session with this key now have a spawner again.
  const orphans = tx.updateTable("sessions").where((eb) => eb.and({ spawned_by: key, orphaned: 1 }));
  await orphans.set({ orphaned: 0 }).execute();
  await rememberSessionId(tx, session.sessionId, session.key, session.createdAt);
}

async function rememberSessionId(tx: Tx, sessionId: string, key: string, at: number): Promise<void> {
  await tx
    .insertInto("session_ids")
    .values({ session_id: sessionId, session_key: key, created_at: at })
    .execute();
}

export const getSession = (db: Db, key: string) => SESSIONS.find(db, { key });

/** Returns the sessions that have these transcripts, each as it was with that transcript. */
export async function sessionsWith(db: Db, sessionIds: readonly string[]): Promise<Session[]> {
  if (sessionIds.length === 0) return [];
  const ids = db
    .selectFrom("session_ids")
    .selectAll()
    .where("session_id", "in", [...sessionIds]);
  const found: Session[] = [];
  for (const { session_id: sessionId, session_key: key, labels_json: json } of await ids.execute()) {
    const session = await getSession(db, key);
    if (session === undefined) continue;
    const labels = json === null ? session.labels : (objectOf(jsonOf(json)) as Labels);
    found.push({ ...session, sessionId, ...optional({ labels }) });
  }
  return found;
}

/** Like `getSession`, but locks the row until the transaction ends. */
export const holdSession = (tx: Tx, key: string) => SESSIONS.hold(tx, { key });

/**
 * Returns the session to which a transcript belongs, or belonged before a reset, with its current transcript
 * id.
 */
export async function findSessionId(
  db: Db,
  sessionId: string,
): Promise<{ key: string; currentSessionId: string } | undefined> {
  return await db
    .selectFrom("session_ids")
    .innerJoin("sessions", "sessions.key", "session_ids.session_key")
    .select(["sessions.key as key", "sessions.session_id as currentSessionId"])
    .where("session_ids.session_id", "=", sessionId)
    .executeTakeFirst();
}

/** Applies a patch; ignores a session that does not exist. */
export async function updateSession(tx: Tx, key: string, patch: SessionPatch): Promise<void> {
  if (Object.values(patch).some((value) => value !== undefined)) await SESSIONS.change(tx, { key }, patch);
}

/** Usage of a run, and the state in which the run leaves its session. */
interface SessionUsage {
  readonly at: number;
  readonly aborted: boolean;
  /**
   * The run's id if the run is a turn that failed. Empty if the run is a turn that did not fail. Undefined if
   * the run is not a turn.
   */
  readonly failedRun: string | undefined;
  readonly systemSent: boolean;
  readonly input: number;
  readonly output: number;
  readonly total: number;
  readonly contextUsed: number | undefined;
  /** USD. */
  readonly cost: number;
}

/** Values of `SessionUsage` for a statement. Null leaves a column unchanged. */
type UsageValues = Record<"at" | "aborted" | "input" | "output" | "total" | "cost", number> &
  Record<"sessionKey" | "sessionId", string> &
  Record<"systemSent" | "contextUsed", number | null> & { readonly failedRun: string | null };

const USAGE = prepared((tx, usage: UsageValues) =>
  tx
    .updateTable("sessions")
    .set((eb) => ({
      updated_at: usage.at,
      aborted_last_run: usage.aborted,
      failed_run: sql<string | null>`nullif(coalesce(${usage.failedRun}, failed_run), '')`,
      input_tokens: eb("input_tokens", "+", usage.input),
      output_tokens: eb("output_tokens", "+", usage.output),
      total_tokens: eb("total_tokens", "+", usage.total),
      cost: eb("cost", "+", usage.cost),
      system_sent: sql<number>`coalesce(${usage.systemSent}, system_sent)`,
      context_tokens: sql<number>`coalesce(${usage.contextUsed}, context_tokens)`,
    }))
    .where("key", "=", usage.sessionKey)
    .where("session_id", "=", usage.sessionId),
);

/** Adds the usage of a run to its session, unless the session was reset in the meantime. */
export async function addSessionUsage(
  tx: Tx,
  { sessionKey, sessionId }: { sessionKey: string; sessionId: string },
  usage: SessionUsage,
): Promise<void> {
  const { failedRun, systemSent, contextUsed } = usage;
  await USAGE(tx, {
    ...usage,
    sessionKey,
    sessionId,
    aborted: usage.aborted ? 1 : 0,
    failedRun: failedRun ?? null,
    systemSent: systemSent ? 1 : null,
    contextUsed: contextUsed ?? null,
  });
}

const HELD_SESSION = prepared((tx, { key }: { key: string }) =>
  held(tx as Tx, tx.selectFrom("sessions").selectAll().where("key", "=", key)),
);

const HELD_WITH_WRITER = prepared((tx, { key, writerKey }: { key: string; writerKey: string }) =>
  tx
    .with("lane", () => held(tx as Tx, tx.selectFrom("sessions").selectAll().where("key", "=", key)))
    .selectFrom("lane")
    .selectAll()
    .unionAll(tx.selectFrom("sessions").selectAll().where("key", "=", writerKey)),
);

/** A locked session with the number of the next run in its lane, counted from 1. */
interface LockedLane {
  readonly session: Session;
  readonly laneSeq: number;
  /** The session of the given key, not locked. */
  readonly writer: Session | undefined;
}

/** Locks a session. `writerKey`: another session that is read, too. */
export async function holdLane(tx: Tx, key: string, writerKey?: string): Promise<LockedLane | undefined> {
  const { rows } = await (writerKey === undefined || writerKey === key
    ? HELD_SESSION(tx, { key })
    : HELD_WITH_WRITER(tx, { key, writerKey }));
  const row = rows.find((one) => one.key === key);
  const writer = rows.find((one) => one.key !== key);
  return row && { session: toSession(row), laneSeq: row.next_lane_seq, writer: writer && toSession(writer) };
}

const LANE_PLACE = prepared((tx, { key, at }: { key: string; at: number }) =>
  tx
    .updateTable("sessions")
    .set((eb) => ({ next_lane_seq: eb("next_lane_seq", "+", 1), updated_at: at }))
    .where("key", "=", key),
);

/** Increases the next number of a locked lane by one, and sets the time of the session's last use to `at`. */
export async function takeLanePlace(tx: Tx, key: string, at: number): Promise<void> {
  await LANE_PLACE(tx, { key, at });
}

/**
 * Resets a session: it gets a new, empty transcript under the same key. Settings, label and route stay;
 * counters start at zero.
 */
export async function replaceSessionId(tx: Tx, key: string, sessionId: string, at: number): Promise<void> {
  const counters = { inputTokens: 0, outputTokens: 0, totalTokens: 0, contextUsed: 0, cost: 0 };
  const flags = { systemSent: false, abortedLastRun: false };
  const texts = { firstWords: null, failedRun: null, labels: null };
  // Keeps the labels of a transcript that a reset ends, for those who read it later.
  const of = tx.selectFrom("sessions").where("key", "=", key);
  await tx
    .updateTable("session_ids")
    .set({ labels_json: of.select("labels_json") })
    .where("session_id", "=", of.select("session_id"))
    .execute();
  await SESSIONS.change(tx, { key }, { sessionId, updatedAt: at, ...counters, ...flags, ...texts });
  await deleteSessionRules(tx, key);
  await rememberSessionId(tx, sessionId, key, at);
}

/**
 * Deletes a session's row and, with `transcripts`, all its messages that no fork shares and its texts in all
 * other tables. Bookkeeping without texts and usage remain. Returns the ids of the transcripts whose JSONL
 * copies the caller must drop. The caller holds the sessions of `holdForDeletion`.
 */
export async function deleteSessionRows(
  tx: Tx,
  key: string,
  what: { transcripts: boolean },
): Promise<string[]> {
  const session = tx.deleteFrom("sessions").where("key", "=", key).returning("created_at");
  const since = (await session.executeTakeFirst())?.created_at ?? 0;
  await deleteSessionRules(tx, key);
  await removeEnded(tx, key);
  await tx.updateTable("sessions").set({ orphaned: 1 }).where("spawned_by", "=", key).execute();
  if (!what.transcripts) return [];
  const given = await handOver(tx, key);
  const rows = await tx
    .deleteFrom("session_ids")
    .where("session_key", "=", key)
    .returning(["session_id", "forked_from"])
    .execute();
  const ids = rows.map((row) => row.session_id);
  await eraseTexts(tx, { key, sessionIds: ids, since });
  const shared = rows.flatMap(({ forked_from }) => forked_from ?? []);
  const handed = given.map(({ sessionId }) => sessionId);
  const trimmed = await trimInherited(tx, [...handed, ...shared]);
  await moveMessages(tx, given);
  return [...new Set([...ids, ...handed, ...trimmed])];
}

/**
 * Returns whether a transcript that is not in the store was deleted from it. The runs of a deleted session
 * remain, and show that the store once contained the transcript.
 */
export async function wasDeleted(db: Db, key: string, sessionId: string): Promise<boolean> {
  // A session that inherited the transcript is a fork of the one that had the runs.
  const keys = [key, ...forkOrigins(key)];
  const run = await db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "in", keys)
    .where("session_id", "=", sessionId)
    .limit(1)
    .executeTakeFirst();
  return run !== undefined;
}

/** Returns the ancestors of a session: its spawner, the spawner's spawner, and so on, the nearest first. */
export async function ancestorsOf(db: Db, key: string): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    with recursive up (key, depth) as (
      select spawned_by, 1 from sessions where key = ${key} and spawned_by is not null
      union
      select s.spawned_by, up.depth + 1 from up join sessions s on s.key = up.key
        where s.spawned_by is not null and up.depth < ${sql.lit(ANCESTORS_MAX)}
    )
    select key from up order by depth`.execute(db);
  return rows.map((row) => row.key);
}

/**
 * Returns descendants of a session that have unfinished runs, open flows or bound chats, the nearest
 * generation first.
 */
export async function busyDescendantsOf(db: Db, key: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ key: string }>`
    with recursive down (key, depth) as (
      select key, 1 from sessions where spawned_by = ${key}
      union
      select s.key, down.depth + 1 from down join sessions s on s.spawned_by = down.key
        where down.depth < ${sql.lit(ANCESTORS_MAX)}
    )
    select down.key from down
      where exists (select 1 from runs
          where session_key = down.key and state in ('queued', 'running', 'waiting'))
        or exists (select 1 from flows where requester_key = down.key and state = 'open')
        or exists (select 1 from flows where target_key = down.key and state = 'open')
        or exists (select 1 from thread_bindings where session_key = down.key)
      order by down.depth, down.key limit ${sql.lit(limit)}`.execute(db);
  return rows.map((row) => row.key);
}

interface Activity {
  readonly state: SessionState;
  readonly queuedRuns: number;
}

/** Returns the activity of these sessions, with an entry for each key. */
export async function activityOf(db: Db, keys: readonly string[]): Promise<Map<string, Activity>> {
  const found = new Map<string, Activity>(keys.map((key) => [key, { state: "idle", queuedRuns: 0 }]));
  if (keys.length === 0) return found;
  const rows = await db
    .selectFrom("runs")
    .select(["session_key", "state", (eb) => eb.fn.countAll<number>().as("n")])
    .where(isAmong(db, "session_key", keys))
    .where("state", "in", ACTIVE)
    .groupBy(["session_key", "state"])
    .execute();
  for (const row of rows) {
    const before = found.get(row.session_key) ?? { state: "idle", queuedRuns: 0 };
    const queued = row.state === "queued";
    const holds = before.state === "running" || before.state === "waiting";
    found.set(row.session_key, {
      state: queued && holds ? before.state : (row.state as SessionState),
      queuedRuns: queued ? row.n : before.queuedRuns,
    });
  }
  return found;
}

/** Names a session that has neither label nor name. Returns false if it has one, or another transcript. */
export function nameUnnamed(
  tx: Tx,
  { sessionKey: key, sessionId, name }: Record<"sessionKey" | "sessionId" | "name", string>,
): Promise<boolean> {
  const unnamed = tx
    .updateTable("sessions")
    .where((eb) => eb.and({ key, session_id: sessionId, label: null, display_name: null }))
    .where("archived_at", "is", null);
  return changesRows(tx, unnamed.set({ display_name: name }));
}

/** Maximum number of sessions of one chat. */
const OF_CHAT_MAX = 50;

/**
 * Returns the sessions with one of these keys, and those that last used this chat, from any account and in
 * any thread. The most recently used come first; archived ones are left out.
 */
export function sessionsOfChat(
  db: Db,
  { channel, to }: Pick<Route, "channel" | "to">,
  keys: readonly string[],
): Promise<Session[]> {
  const sessions = SESSIONS.rows(db).where((eb) => {
    const ofChat = eb.and({ last_channel: channel, last_to: to });
    return keys.length === 0 ? ofChat : eb.or([eb("key", "in", keys), ofChat]);
  });
  return SESSIONS.all(
    sessions.where("archived_at", "is", null).orderBy("updated_at", "desc").limit(OF_CHAT_MAX),
  );
}

interface Erased {
  readonly key: string;
  readonly sessionIds: readonly string[];
  readonly since: number;
}

const ALWAYS = sql`1 = 1`;

/** Removes the rows that end with a session, even if its transcripts stay. */
export async function removeEnded(tx: Tx, key: string): Promise<void> {
  for (const [table, { rules }] of Object.entries<Table>(TABLES)) {
    if (rules.endsWith === undefined) continue;
    const [before = "", after = ""] = rules.endsWith.split("?");
    await sql`delete from ${sql.table(table)} where ${sql.raw(before)}${key}${sql.raw(after)}`.execute(tx);
  }
}

async function eraseTexts(tx: Tx, { key, sessionIds, since }: Erased): Promise<void> {
  for (const [table, { rules }] of Object.entries<Table>(TABLES)) {
    if (rules.removed !== undefined) {
      const { of, when = ALWAYS } = rules.removed;
      for (const name of of === "session_id" ? sessionIds : [key]) {
        await sql`delete from ${sql.table(table)} where ${sql.ref(of)} = ${name} and ${when}`.execute(tx);
      }
    }
    for (const { of, when = ALWAYS, columns } of rules.blanked ?? []) {
      const values = Object.entries(columns).map(([name, value]) => sql`${sql.ref(name)} = ${value}`);
      await sql`update ${sql.table(table)} set ${sql.join(values)}
        where ${sql.ref(of)} = ${key} and ${when}`.execute(tx);
    }
  }
  await eraseInputs(tx, key);
  await forgetInstructions(tx, key);
  await eraseDeliveries(tx, key);
  await eraseAnswers(tx, key, since);
  await erasePayloads(tx, key);
}
