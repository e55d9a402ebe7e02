// Owns the claims of runs: which process holds a run, what this owner may change, and how runs of dead
// processes return to their queues.
// Each change by an owner names the owner and the attempt. If it changes no row, the owner has lost the lane
// (I1).
// CL2: a run that returns to its queue keeps its position in the lane.

import { type ExpressionBuilder, sql } from "kysely";
import { pauseAfterDeath } from "../../../core/rules/crash-policy.ts";
import type { QueueHead } from "../../../core/rules/run-queue.ts";
import type { Run } from "../../../core/shapes/run.ts";
import { held, heldIfFree, holdFreeSessions } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import type { Tables } from "../../schema/tables.ts";
import { changesRows, type Db, isInList, kindOf, listOf, type Tx } from "../../sql.ts";
import { together } from "../../transaction.ts";
import { livingProcesses } from "../processes.ts";
import { type Fence, HOLDING, QUEUED, RUNS } from "./runs.ts";
import { releaseSlot } from "./slots.ts";

type Lane = { readonly sessionKey: string };

/** A run that may start, or continue: it is the first of its queue. */
export interface ReadyRun extends QueueHead {
  readonly runId: string;
  readonly sessionKey: string;
}

const HEADS = prepared(
  (db, { busy, passed }: Record<"busy" | "passed", ReturnType<typeof listOf>>) => sql<
    Omit<ReadyRun, "isResuming"> & { readonly state: string }
  >`
    with recursive name (queue) as (
      select (select queue from runs where ready_at is not null order by queue limit 1)
      union all
      select (select n.queue from runs n where n.ready_at is not null and n.queue > name.queue
        order by n.queue limit 1) from name where name.queue is not null
    )
    select r.run_id as "runId", r.session_key as "sessionKey", r.queue, r.ready_at as "readyAt", r.state
    from name join runs r on r.run_id = (
      select f.run_id from runs f where f.ready_at is not null and f.queue = name.queue
        and (f.state = 'waiting' or not ${isInList(db, "f.session_key", busy)})
        and not ${isInList(db, "f.session_key", passed)}
      order by f.ready_at, f.run_id limit 1)`,
);

/**
 * Returns the first ready run of each queue. A run is ready if it is the head of an idle lane, or if it holds
 * its lane and waits for a slot. Leaves out the lanes in `passed`, and heads of the lanes in `busy` that have
 * not started. The query hops from queue to queue, so long queues do not slow it down.
 */
export async function readyHeads(
  db: Db,
  { busy, passed }: { readonly busy: readonly string[]; readonly passed: readonly string[] },
): Promise<ReadyRun[]> {
  const { rows } = await HEADS(db, { busy: listOf(db, busy), passed: listOf(db, passed) });
  return rows.map(({ state, ...head }) => ({ ...head, isResuming: state === "waiting" }));
}

const NEXT_READY = prepared((tx, { sessionKey, at }: Lane & { readonly at: number }) =>
  tx
    .updateTable("runs")
    .set({ ready_at: at })
    .where("ready_at", "is", null)
    .where("run_id", "=", (eb) =>
      eb
        .selectFrom("runs as first")
        .select("first.run_id")
        .where("first.session_key", "=", sessionKey)
        .where("first.state", "=", QUEUED)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom("runs as holding")
                .select("holding.run_id")
                .where("holding.session_key", "=", sessionKey)
                .where("holding.state", "in", HOLDING),
            ),
          ),
        )
        .orderBy("first.lane_seq")
        .limit(1),
    ),
);

/**
 * Makes the head of a lane ready, if no run holds the lane. Call it in each transaction that ends a run, or
 * that takes one out of its lane.
 */
export async function readyNext(tx: Tx, sessionKey: string, at: number): Promise<void> {
  await NEXT_READY(tx, { sessionKey, at });
}

const IN_QUEUE = prepared((db, { sessionKey }: Lane) =>
  RUNS.rows(db).where("session_key", "=", sessionKey).where("state", "=", QUEUED).orderBy("lane_seq"),
);

/** Returns the queued runs of a lane in order, even if a run holds the lane. */
export async function queuedIn(db: Db, sessionKey: string): Promise<Run[]> {
  return (await IN_QUEUE(db, { sessionKey })).rows.map(RUNS.read);
}

/** Marks a queued run as taken over by another run. */
export async function noteTaken(tx: Tx, { runId, input }: Run): Promise<void> {
  await tx
    .updateTable("runs")
    .set({ input_json: JSON.stringify(input) })
    .where("run_id", "=", runId)
    .where("state", "=", QUEUED)
    .execute();
}

/**
 * Returns a queued run as it is after a claim. Keeps the time of its first start, so that downtime counts
 * towards the timeout.
 */
export function claimedBy(run: Run, owner: string, at: number): Run & { readonly owner: string } {
  return { ...run, state: "running", owner, attempt: run.attempt + 1, startedAt: run.startedAt ?? at };
}

type ClaimValues = { readonly [K in "runId" | "owner"]: string } & {
  readonly attempt: number;
  readonly startedAt: number | null;
};

const CLAIM = prepared((tx, { runId, owner, attempt, startedAt }: ClaimValues) =>
  tx
    .updateTable("runs")
    .set({ state: "running", owner, attempt, started_at: startedAt, ready_at: null, planned_stop: 0 })
    .where("run_id", "=", runId)
    .where("state", "=", QUEUED),
);

/** Stores a claim (`claimedBy`). The caller must hold the lock of the lane, and must have read the run. */
export async function claimRun(
  tx: Tx,
  { runId, owner, attempt, startedAt }: ReturnType<typeof claimedBy>,
): Promise<void> {
  const claim = { runId, owner, attempt, startedAt: startedAt ?? null };
  if ((await CLAIM(tx, claim)).numAffectedRows !== 1n) throw new Error(`run ${runId} is not queued`);
}

const RESUME = prepared((tx, { runId }: { runId: string }) =>
  tx
    .updateTable("runs")
    .set({ state: "running", ready_at: null })
    .where("run_id", "=", runId)
    .where("state", "=", sql.lit("waiting"))
    .where("ready_at", "is not", null),
);

/** Lets a ready run continue, in the process that holds it. Returns false if it no longer waits for that. */
export async function resumeRun(tx: Tx, runId: string): Promise<boolean> {
  return ((await RESUME(tx, { runId })).numAffectedRows ?? 0n) > 0n;
}

/** Counts the runs that execute, by queue. */
export async function countRunning(db: Db): Promise<ReadonlyMap<string, number>> {
  const { rows } = await RUNNING(db, {});
  return new Map(rows.map((row) => [row.queue, row.n]));
}

const RUNNING = prepared((db) =>
  db
    .selectFrom("runs")
    .select(["queue", (eb) => eb.fn.countAll<number>().as("n")])
    .where("state", "=", sql.lit("running"))
    .groupBy("queue"),
);

/** A resuming run goes before the runs of its queue that have not started. */
const RESUMES_FIRST = 0;

const isFenced =
  ({ runId, owner, attempt }: Fence) =>
  (eb: ExpressionBuilder<Tables, "runs">) =>
    eb.and({ run_id: runId, owner, attempt });

/** Changes a held run back to its queue, as the head of its lane, or to `waiting`. Frees its slot. */
export async function moveHeld(tx: Tx, fence: Fence, to: "waiting" | "queued", at: number): Promise<boolean> {
  const moved = to === "queued" ? { state: to, owner: null, ready_at: at } : { state: to, ready_at: null };
  const move = tx.updateTable("runs").set(moved).where(isFenced(fence)).where("state", "in", HOLDING);
  const isMoved = await changesRows(tx, move);
  if (isMoved) await releaseSlot(tx, fence.runId);
  return isMoved;
}

/** Lets a waiting run ask for a slot. Returns whether it still waits and its owner holds it. */
export function askForSlot(tx: Tx, fence: Fence): Promise<boolean> {
  const waiting = tx.updateTable("runs").where(isFenced(fence)).where("state", "=", sql.lit("waiting"));
  return changesRows(tx, waiting.set({ ready_at: RESUMES_FIRST }));
}

/** Records that this process is about to stop, so that its death counts against none of its runs. */
export async function notePlannedStop(tx: Tx, owner: string): Promise<void> {
  await tx
    .updateTable("runs")
    .set({ planned_stop: 1 })
    .where("owner", "=", owner)
    .where("state", "in", HOLDING)
    .execute();
}

/** Locks a run that is about to end. Call this before reading its messages. */
export async function holdRun(tx: Tx, runId: string): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await held(tx, tx.selectFrom("runs").select("run_id").where("run_id", "=", runId)).execute();
}

/** Selects the run if this owner holds it in this attempt. */
export const heldRun = (db: Db, fence: Fence) =>
  db.selectFrom("runs").where(isFenced(fence)).where("state", "in", HOLDING);

const HELD = prepared((tx, fence: Fence) => held(tx as Tx, heldRun(tx, fence).select("run_id")));

/** Returns whether the owner still holds the lane. Call this in the transaction that writes for the run. */
export async function isHeld(tx: Tx, fence: Fence): Promise<boolean> {
  return (await HELD(tx, fence)).rows.length > 0;
}

/**
 * Puts held runs back at the head of their lanes after the death of their process, and returns them. With
 * `of`, only runs of dead processes are put back, and rows or sessions that another transaction has locked
 * are skipped until the next call.
 */
export async function requeueHeld(tx: Tx, at: number, of?: "the dead"): Promise<Run[]> {
  let query = tx.selectFrom("runs").select(["run_id", "session_key"]).where("state", "in", HOLDING);
  if (of !== undefined) query = query.where("owner", "not in", livingProcesses());
  // Locks the sessions first, as a claim does, so that nobody reads the lanes in the meantime.
  const lanes = await holdFreeSessions(
    tx,
    (await query.execute()).map((row) => row.session_key),
  );
  if (lanes.length === 0) return [];
  const inLanes = query.where("session_key", "in", lanes).orderBy("run_id");
  const ids = (await heldIfFree(tx, inLanes).execute()).map((row) => row.run_id);
  if (ids.length === 0) return [];
  await countDeaths(tx, ids, at);
  const rows = await tx
    .updateTable("runs")
    .set((eb) => ({
      state: "queued",
      owner: null,
      planned_stop: 0,
      ready_at: eb.fn.coalesce("ready_at", sql.lit(at)),
    }))
    .where("run_id", "in", ids)
    .returningAll()
    .execute();
  await together(...ids.map((id) => releaseSlot(tx, id)));
  return rows.map(RUNS.read);
}

/** Counts the death of their process for these runs that executed, and sets when they may start again. */
async function countDeaths(tx: Tx, ids: readonly string[], at: number): Promise<void> {
  await tx.updateTable("runs").set({ ready_at: null }).where("run_id", "in", ids).execute();
  const rows = await tx
    .selectFrom("runs")
    .select(["run_id", "owner", "crashes", "deaths"])
    .where("run_id", "in", ids)
    .where("state", "=", sql.lit("running"))
    .where("planned_stop", "=", 0)
    .orderBy("deaths")
    .orderBy("run_id")
    .execute();
  const hit = Map.groupBy(rows, (row) => row.owner);
  for (const [, runs] of hit) {
    for (const [place, run] of runs.entries()) {
      const isAlone = runs.length === 1;
      const count = { crashes: run.crashes + Number(isAlone), deaths: run.deaths + 1 };
      const ready_at = at + pauseAfterDeath(count, isAlone ? undefined : place);
      await tx
        .updateTable("runs")
        .set({ ...count, ready_at })
        .where("run_id", "=", run.run_id)
        .execute();
    }
  }
}

/** Returns whether a dead process still holds a run, or the wait of a caller. */
export async function hasOrphans(db: Db): Promise<boolean> {
  const living = livingProcesses();
  const holding = db.selectFrom("runs").select("run_id").where("state", "in", HOLDING);
  const run = holding.where("owner", "not in", living);
  const wait = db
    .selectFrom("waits")
    .select("call_id")
    .where("waiter_run_id", "=", sql.lit(""))
    .where("state", "in", [sql.lit("open"), sql.lit("ready")])
    .where(sql`coalesce(owner, '')`, "not in", living);
  const row = await db
    .selectNoFrom(({ exists, or }) => or([exists(run), exists(wait)]).as("found"))
    .executeTakeFirst();
  return Boolean(row?.found);
}

/** A lane, and the run that holds it. */
export interface HeldLane extends Fence {
  readonly sessionKey: string;
}

/** Returns the runs that a process holds. `isRunning` is false while a run waits. */
export async function heldBy(db: Db, owner: string) {
  // The other columns hold whole messages.
  const rows = await db
    .selectFrom("runs")
    .select(["run_id as runId", "attempt", "session_key as sessionKey", "chain_id as chainId", "state"])
    .where("owner", "=", owner)
    .where("state", "in", HOLDING)
    .execute();
  return rows.map(({ state, ...run }) => ({ ...run, owner, isRunning: state === "running" }));
}
