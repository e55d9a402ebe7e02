// Owns the wait table: the waits of runs and other callers for runs and jobs, with deadlines and outcomes.
// WS1: open rows are the edges of the wait graph (I7). They and their deadlines survive a crash.
// The transaction that ends the target sets `answered`. `ended` means that the waiter stopped waiting first.
// Exactly one of the two happens, so an outcome is reported only once.
// A client does not survive a crash as a run does. When the run that it waits for ends, its wait becomes
// `ready`. It becomes `answered` only after the outcome was written to the client's connection. Otherwise it
// becomes `lost`, and the client's session is notified. The results of jobs go to that session anyway.

import { type ExpressionBuilder, type Selectable, sql } from "kysely";
import { optional } from "../../../core/optional.ts";
import type { Labels } from "../../../core/shapes/labels.ts";
import { idParts } from "../../id-parts.ts";
import { prepared } from "../../prepared.ts";
import { type RecordOf, recordsOf } from "../../records.ts";
import type { Tables, WaitTable } from "../../schema/tables.ts";
import { changesRows, type Db, isAmong, type Tx } from "../../sql.ts";
import { readLabelsJson } from "../labels.ts";
import { livingProcesses } from "../processes.ts";

/** A literal instead of a parameter, so that queries can use a partial index (see runs.ts). */
const OPEN = sql.lit("open");
const READY = sql.lit("ready");
const LOST = sql.lit("lost");
const RUN = sql.lit("run");
const JOB = sql.lit("job");

type Stored = RecordOf<
  "waits",
  {
    readonly kind: "run" | "job";
    readonly state: "open" | "ready" | "answered" | "ended" | "lost";
    readonly targetId: string;
  },
  "target_run_id"
>;

/**
 * One target of a tool call that waits: a run, or a job by its flow. `waiterRunId` is empty for a caller
 * that is not a run. The wait of such a caller is an edge only if the caller is the client of an external
 * session. `waiterSessionKey` is the session of the waiting run, or of a client whose transport confirms
 * that answers were written, and empty for any other caller.
 */
export type Wait = Omit<Stored, "ofCall" | "owner">;

const WAITS = recordsOf<Stored, Wait>()(
  "waits",
  {
    key: ["call_id"],
    columns: [
      "of_call",
      "kind",
      "waiter_run_id",
      "waiter_session_key",
      "target_session_key",
      "state",
      "deadline_at",
      "owner",
    ],
    names: { target_run_id: "targetId" },
  },
  ({ ofCall, owner: _, ...wait }) => ({ ...wait, callId: ofCall ?? wait.callId }),
);

/** Returns whether the target ended in time. */
export const isAnswered = ({ state }: Wait): boolean => state === "answered" || state === "ready";

/** Inserts a wait. `owner` is the process of a waiting caller that is not a run. */
export function insertWait(tx: Tx, wait: Wait, owner?: string): Promise<void> {
  const { kind, callId, targetId } = wait;
  const ofJob = kind === "job" ? { callId: `${callId} ${targetId}`, ofCall: callId } : {};
  return WAITS.insert(tx, { ...wait, ...ofJob, ...optional({ owner }) });
}

const isOfCall = (eb: ExpressionBuilder<Tables, "waits">, callId: string) =>
  eb.or([eb("waits.call_id", "=", callId), eb("waits.of_call", "=", callId)]);

const OF_CALL = prepared((db, { callId }: { readonly callId: string }) =>
  WAITS.rows(db)
    .leftJoin("runs", "runs.run_id", "target_run_id")
    .leftJoin("flows", "flows.flow_id", "target_run_id")
    .leftJoin("chains", (join) =>
      join.on("chains.chain_id", "=", (eb) => eb.fn.coalesce("runs.chain_id", "flows.chain_id")),
    )
    .select("chains.labels_json as labels_of_chain")
    .where((eb) => isOfCall(eb, callId)),
);

/** A wait with the labels of its chain, which are those of the answer, too. */
export interface WaitInChain extends Wait {
  readonly labels?: Labels;
}

/** Returns the wait of a tool call, one row per target. Empty if the call does not wait. */
export async function waitsOfCall(db: Db, callId: string): Promise<WaitInChain[]> {
  // Sorted here: for a sorted query PostgreSQL may read the whole primary key.
  const { rows } = await OF_CALL(db, { callId });
  return rows
    .toSorted((a, b) => (a.call_id < b.call_id ? -1 : 1))
    .map((row) => ({ ...WAITS.read(row), ...optional({ labels: readLabelsJson(row.labels_of_chain) }) }));
}

/** Returns the waits of these tool calls for runs. Calls without a wait are missing. */
export async function waitsOfCalls(db: Db, callIds: readonly string[]): Promise<Wait[]> {
  if (callIds.length === 0) return [];
  return WAITS.all(WAITS.rows(db).where("call_id", "in", callIds));
}

/** Returns the waits of these runs for jobs, in a stable order. */
export async function jobWaitsOfRuns(db: Db, runIds: readonly string[]): Promise<Wait[]> {
  const waits: Wait[] = [];
  for (const some of idParts(runIds)) {
    const ofJobs = WAITS.rows(db).where("kind", "=", JOB).where("waiter_run_id", "in", some);
    waits.push(...(await WAITS.all(ofJobs.orderBy("call_id"))));
  }
  return waits;
}

/** The client of an external session is blocked while it waits, as a waiting run blocks its lane. */
const WAITER_IS_HELD_UP = sql<boolean>`(waiter_run_id != '' or exists (
  select 1 from sessions where external = 1 and sessions.key = waits.waiter_session_key))`;

/**
 * Returns the edges of the wait graph that begin at `sessionKeys`: the waits of their runs and external
 * clients at `now`. A wait whose deadline has passed blocks nobody.
 */
export async function openEdges(db: Db, sessionKeys: readonly string[], now: number): Promise<Wait[]> {
  if (sessionKeys.length === 0) return [];
  const edges = WAITS.rows(db).where("state", "=", OPEN).where("waiter_session_key", "in", sessionKeys);
  return WAITS.all(edges.where(WAITER_IS_HELD_UP).where("deadline_at", ">", now));
}

/** Returns until when a run or an external client waits for this run. Undefined: none of them does. */
export async function awaitedUntil(db: Db, targetRunId: string): Promise<number | undefined> {
  const row = await db
    .selectFrom("waits")
    .select((eb) => eb.fn.max("deadline_at").as("until"))
    .where("target_run_id", "=", targetRunId)
    .where("state", "=", OPEN)
    .where(WAITER_IS_HELD_UP)
    .executeTakeFirst();
  return row?.until ?? undefined;
}

/** Returns the sessions of peers for which runs wait in this chain at `now`. */
export async function awaitedPeers(db: Db, chainId: string, now: number): Promise<string[]> {
  const rows = await db
    .selectFrom("runs")
    .innerJoin("waits", "waits.target_run_id", "runs.run_id")
    .select("target_session_key")
    .distinct()
    .where("chain_id", "=", chainId)
    .where("waits.state", "=", OPEN)
    .where("deadline_at", ">", now)
    .where("target_session_key", ">", "peer:")
    .where("target_session_key", "<", "peer;")
    .execute();
  return rows.map((row) => row.target_session_key);
}

const ANSWERED = prepared((tx, { targetId, endedAt }: { targetId: string; endedAt: number }) =>
  tx
    .updateTable("waits")
    .set((eb) => ({
      state: eb
        .case()
        .when("deadline_at", "<", endedAt)
        .then(sql.lit("ended"))
        .when(
          eb.and([
            eb("kind", "=", RUN),
            eb("waiter_run_id", "=", sql.lit("")),
            eb("waiter_session_key", "!=", sql.lit("")),
          ]),
        )
        .then(READY)
        .else(sql.lit("answered"))
        .end(),
    }))
    .where("target_run_id", "=", targetId)
    .where("state", "=", OPEN)
    .returning("state"),
);

/**
 * Marks the open waits for an ended run or job as answered, or as ended if their deadline had passed. Returns
 * true if a waiter gets the outcome.
 */
export async function answerWaits(tx: Tx, targetId: string, endedAt: number): Promise<boolean> {
  const { rows } = await ANSWERED(tx, { targetId, endedAt });
  return rows.some((row) => row.state !== "ended");
}

/** Returns the ids of those of the given runs, jobs and permission requests that have ended. */
export async function settledAmong(db: Db, ids: readonly string[]): Promise<string[]> {
  const settled: string[] = [];
  for (const some of idParts(ids)) {
    const runs = db.selectFrom("runs").select("run_id as id").where("ended_at", "is not", null);
    const flows = db.selectFrom("flows").select("flow_id as id").where("state", "=", sql.lit("ended"));
    const permissions = db.selectFrom("permissions").select("id").where("decision", "is not", null);
    const rows = await runs
      .where(isAmong(db, "run_id", some))
      .unionAll(flows.where(isAmong(db, "flow_id", some)))
      .unionAll(permissions.where(isAmong(db, "id", some)))
      .execute();
    settled.push(...rows.map((row) => row.id));
  }
  return settled;
}

/**
 * Ends the open waits of a tool call because the waiter stopped waiting. Returns false if all targets had
 * already ended; their outcomes then count.
 */
export function giveUpWaits(tx: Tx, callId: string): Promise<boolean> {
  const open = tx
    .updateTable("waits")
    .where((eb) => isOfCall(eb, callId))
    .where("state", "=", OPEN);
  return changesRows(tx, open.set({ state: "ended" }));
}

const GIVEN_UP = prepared((tx, { waiterRunId }: { waiterRunId: string }) =>
  tx
    .updateTable("waits")
    .set({ state: "ended" })
    .where("waiter_run_id", "=", waiterRunId)
    .where("state", "=", OPEN),
);

/** Ends all waits of an ended run. */
export async function giveUpWaitsOf(tx: Tx, waiterRunId: string): Promise<void> {
  await GIVEN_UP(tx, { waiterRunId });
}

/** Records that the outcome was written to the waiting client's connection. */
export async function confirmAnswer(tx: Tx, callId: string): Promise<void> {
  await WAITS.change(tx, { callId, state: "ready" }, { state: "answered" });
}

/**
 * Ends waits of callers that are not runs. A `ready` wait becomes `lost`; its outcome is then sent to the
 * client's session.
 */
const endCallerWaits = (tx: Tx) =>
  tx
    .updateTable("waits")
    .set((eb) => ({ state: eb.case().when("state", "=", READY).then(LOST).else(sql.lit("ended")).end() }))
    .where("state", "in", [OPEN, READY])
    .returning("target_run_id");

const targetsOf = (rows: readonly Pick<Selectable<WaitTable>, "target_run_id">[]): string[] =>
  rows.map((row) => row.target_run_id);

/**
 * Ends the wait of a disconnected client, whether answered or not. Returns the runs and jobs that it waited
 * for. Empty if the wait was over.
 */
export async function loseAnswer(tx: Tx, callId: string): Promise<string[]> {
  const query = endCallerWaits(tx).where((eb) => isOfCall(eb, callId));
  const lose = async () => targetsOf(await query.execute());
  const targets = await lose();
  if (targets.length > 0) return targets;
  await untilInserted(tx, callId);
  return lose();
}

/**
 * Waits for a transaction that has inserted the wait of this call, but is not committed yet: the gateway may
 * have lost its connection during the commit. An update skips such a row; an insert of the same key waits.
 */
async function untilInserted(tx: Tx, callId: string): Promise<void> {
  const nobody = { waiter_run_id: "", waiter_session_key: "", target_run_id: "", target_session_key: "" };
  const row = { ...nobody, call_id: callId, state: "ended", deadline_at: 0 };
  await tx
    .insertInto("waits")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await tx
    .deleteFrom("waits")
    .where("call_id", "=", callId)
    .where("target_run_id", "=", sql.lit(""))
    .execute();
}

/**
 * Ends waits of callers that are not runs. With `of`, only those whose process is dead or unknown; otherwise
 * all, because no other process exists. Returns the runs and jobs that the callers waited for.
 */
export async function giveUpCallerWaits(tx: Tx, of?: "the dead"): Promise<string[]> {
  const query = endCallerWaits(tx).where("waiter_run_id", "=", sql.lit(""));
  if (of === undefined) return targetsOf(await query.execute());
  const isDead = query.where(sql`coalesce(owner, '')`, "not in", livingProcesses());
  return targetsOf(await isDead.execute());
}

/** Counts the tool calls that wait. Starts from the few runs that can wait, because most rows are settled. */
export async function countOpenWaits(db: Db): Promise<number> {
  const waiters = sql<string>`(select '' union all
    select run_id from runs where state in ('running', 'waiting'))`;
  const row = await db
    .selectFrom("waits")
    .select(sql<number>`count(distinct coalesce(of_call, call_id))`.as("n"))
    .where("state", "=", sql.lit("open"))
    .where("waiter_run_id", "in", waiters)
    .executeTakeFirstOrThrow();
  return row.n;
}
