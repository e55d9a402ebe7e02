// Owns the claims of runs: which process holds a run, what this owner may change, and how runs of dead
// processes return to their queues.
// Each change by an owner names the owner and the attempt. If it changes no row, the owner has lost the lane
// (I1).
// CL2: a run that returns to its queue keeps its position in the lane. A crash is counted only if the run was
//      executing, not if it was waiting.

import { sql } from "kysely";
import type { Run } from "../../../core/shapes/run.ts";
import { held, heldIfFree, holdFreeSessions } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import { type Db, kindOf, type Tx } from "../../sql.ts";
import { livingProcesses } from "../processes.ts";
import { type Fence, HOLDING, QUEUED, toRun } from "./runs.ts";

type Lane = { readonly sessionKey: string };

const ANY_QUEUED = prepared((db, { sessionKey }: Lane) =>
  db
    .selectFrom("runs")
    .select("run_id")
    .where("session_key", "=", sessionKey)
    .where("state", "=", QUEUED)
    .limit(1),
);

/** Returns whether a lane has a run that has not started. */
export async function hasQueued(db: Db, sessionKey: string): Promise<boolean> {
  return (await ANY_QUEUED(db, { sessionKey })).rows.length > 0;
}

/** Returns the next run of a lane. Undefined if there is none, or if a run already holds the lane. */
export async function nextInLane(db: Db, sessionKey: string): Promise<Run | undefined> {
  const [row] = (await FIRST_OF_IDLE(db, { sessionKey })).rows;
  return row && toRun(row);
}

// A single statement: between two statements a run could return to the queue, and the run behind it would
// start first (I3). Each state has a query of its own. With three states in one condition, the database would
// sort the result, which takes ten times as long.
const FIRST_OF_IDLE = prepared((db, { sessionKey }: Lane) =>
  db
    .selectFrom("runs")
    .selectAll()
    .where("session_key", "=", sessionKey)
    .where("state", "=", QUEUED)
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
    .orderBy("lane_seq")
    .limit(1),
);

const IN_QUEUE = prepared((db, { sessionKey }: Lane) =>
  db
    .selectFrom("runs")
    .selectAll()
    .where("session_key", "=", sessionKey)
    .where("state", "=", QUEUED)
    .orderBy("lane_seq"),
);

/** Returns the queued runs of a lane in order, even if a run holds the lane. */
export async function queuedIn(db: Db, sessionKey: string): Promise<Run[]> {
  return (await IN_QUEUE(db, { sessionKey })).rows.map(toRun);
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
  readonly pool: string | null;
};

const CLAIM = prepared((tx, { runId, owner, attempt, startedAt, pool }: ClaimValues) =>
  tx
    .updateTable("runs")
    .set({ state: "running", owner, attempt, started_at: startedAt, pool })
    .where("run_id", "=", runId)
    .where("state", "=", QUEUED),
);

/**
 * Stores a claim (`claimedBy`). The caller must hold the lock of the lane, and must have read the run as
 * queued. `pool` names the slots in which the run executes.
 */
export async function claimRun(
  tx: Tx,
  { runId, owner, attempt, startedAt }: ReturnType<typeof claimedBy>,
  pool: string | undefined,
): Promise<void> {
  const claim = { runId, owner, attempt, startedAt: startedAt ?? null, pool: pool ?? null };
  if ((await CLAIM(tx, claim)).numAffectedRows !== 1n) throw new Error(`run ${runId} is not queued`);
}

/** Number of answered tool calls of a run. Answers with an unknown outcome do not count. */
const ANSWERED = sql<number>`(select count(*) from messages where messages.run_id = runs.run_id
  and role = 'toolResult' and entry_json not like '%outcome_unknown%')`;

/** Column values for a run that returns to its lane's queue. They record the run's progress. */
const PARKED = {
  owner: null,
  crashes_in_row: sql<number>`case when ${ANSWERED} > calls_answered then 0 else crashes_in_row end`,
  calls_answered: ANSWERED,
};

/** Column values for a run whose process has died. */
const CRASHED = {
  ...PARKED,
  crashes: sql<number>`crashes + case when state = 'running' then 1 else 0 end`,
  crashes_in_row: sql<number>`case when ${ANSWERED} > calls_answered then 0
    when state = 'running' then crashes_in_row + 1 else crashes_in_row end`,
};

/**
 * Changes the state of a held run to running, waiting, or queued. A queued run keeps its position in the
 * lane.
 */
export async function moveHeld(tx: Tx, fence: Fence, to: "running" | "waiting" | "queued"): Promise<boolean> {
  const done = await tx
    .updateTable("runs")
    .set({ state: to, resuming: 0, ...(to === "queued" ? PARKED : {}) })
    .where("run_id", "=", fence.runId)
    .where("owner", "=", fence.owner)
    .where("attempt", "=", fence.attempt)
    .where("state", "in", HOLDING)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Locks a run that is about to end. Call this before reading its messages. */
export async function holdRun(tx: Tx, runId: string): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await held(tx, tx.selectFrom("runs").select("run_id").where("run_id", "=", runId)).execute();
}

/** Selects the run if this owner holds it in this attempt. */
export function heldRun(db: Db, { runId, owner, attempt }: Fence) {
  return db
    .selectFrom("runs")
    .where("run_id", "=", runId)
    .where("owner", "=", owner)
    .where("attempt", "=", attempt)
    .where("state", "in", HOLDING);
}

const HELD = prepared((tx, fence: Fence) => held(tx as Tx, heldRun(tx, fence).select("state")));

/** Returns whether the owner still holds the lane. Call this in the transaction that writes for the run. */
export async function isHeld(tx: Tx, fence: Fence): Promise<boolean> {
  return (await heldState(tx, fence)) !== undefined;
}

/**
 * Returns the state of a held run, `running` or `waiting`. Undefined: this owner does not hold it in this
 * attempt.
 */
export async function heldState(tx: Tx, fence: Fence): Promise<string | undefined> {
  return (await HELD(tx, fence)).rows[0]?.state;
}

/**
 * Puts held runs back at the head of their lanes after a crash. Returns these runs, the ones with the fewest
 * crashes first. With `of`, only runs of dead processes are put back, and rows or sessions that another
 * transaction has locked are skipped until the next call.
 */
export async function requeueHeld(tx: Tx, of?: "the dead"): Promise<Run[]> {
  let query = tx.selectFrom("runs").select(["run_id", "session_key"]).where("state", "in", HOLDING);
  if (of !== undefined) query = query.where("owner", "not in", livingProcesses());
  // Locks the sessions first, as a claim does, so that nobody reads the lanes in the meantime.
  const lanes = await holdFreeSessions(
    tx,
    (await query.execute()).map((row) => row.session_key),
  );
  if (lanes.length === 0) return [];
  const inLanes = query.where("session_key", "in", lanes).orderBy("run_id");
  const orphans = await heldIfFree(tx, inLanes).execute();
  if (orphans.length === 0) return [];
  const ids = orphans.map((row) => row.run_id);
  const rows = await tx
    .updateTable("runs")
    .set({ state: "queued", resuming: 0, ...CRASHED })
    .where("run_id", "in", ids)
    .returningAll()
    .execute();
  return rows.map(toRun).sort((a, b) => a.crashes - b.crashes);
}

/** Returns whether a dead process still holds a run, or the wait of a caller. */
export async function hasOrphans(db: Db): Promise<boolean> {
  const living = livingProcesses();
  const run = db
    .selectFrom("runs")
    .select("run_id")
    .where("state", "in", HOLDING)
    .where("owner", "not in", living);
  const wait = db
    .selectFrom("waits")
    .select("call_id")
    .where("waiter_run_id", "=", sql.lit(""))
    .where("state", "in", [sql.lit("open"), sql.lit("ready")])
    .where(sql`coalesce(owner, '')`, "not in", living);
  const jobWait = db
    .selectFrom("job_waits")
    .select("call_id")
    .where("waiter_run_id", "=", sql.lit(""))
    .where("state", "=", sql.lit("open"))
    .where("owner", "not in", living);
  const row = await db
    .selectNoFrom(({ exists, or }) => or([exists(run), exists(wait), exists(jobWait)]).as("found"))
    .executeTakeFirst();
  return Boolean(row?.found);
}

/** A run that a process holds. */
export interface HeldRun extends Fence {
  readonly sessionKey: string;
  readonly chainId: string;
}

/** Returns the runs that a process holds. */
export async function heldBy(db: Db, owner: string): Promise<HeldRun[]> {
  const rows = await db
    .selectFrom("runs")
    .select(["run_id", "attempt", "session_key", "chain_id"])
    .where("owner", "=", owner)
    .where("state", "in", HOLDING)
    .execute();
  return rows.map((row) => ({
    runId: row.run_id,
    owner,
    attempt: row.attempt,
    sessionKey: row.session_key,
    chainId: row.chain_id,
  }));
}

/**
 * Returns the lanes with queued runs. Lanes whose runs crashed least come first. Among these, the lane with
 * the oldest run comes first.
 */
export async function lanesWithWork(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom("runs")
    .select(["session_key", (eb) => eb.fn.min("accepted_at").as("oldest")])
    .where("state", "=", QUEUED)
    .groupBy("session_key")
    .orderBy((eb) => eb.fn.max("crashes"))
    .orderBy("oldest")
    .execute();
  return rows.map((row) => row.session_key);
}

/**
 * Returns lanes with queued runs and no active run, in the order in which they get slots. Agents take turns,
 * beginning with those that hold the fewest slots. Of one agent, the lane with the oldest run comes first.
 * Lanes with crashed runs come last. `appends` limits the result to lanes that begin with an append, which
 * needs no turn. Lanes whose runs need a slot of a pool in `full` are left out.
 */
export async function idleLanes(
  db: Db,
  wanted: { readonly limit: number; readonly appends: boolean; readonly full?: readonly string[] },
): Promise<string[]> {
  let waiting = db
    .selectFrom("runs as waiting")
    .select([
      "waiting.session_key",
      "waiting.agent_id",
      (eb) => eb.fn.min("waiting.accepted_at").as("oldest"),
      (eb) => eb.fn.max("waiting.crashes").as("crashes"),
    ])
    .where("waiting.state", "=", QUEUED)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("runs as holding")
            .select("holding.run_id")
            .whereRef("holding.session_key", "=", "waiting.session_key")
            .where("holding.state", "in", HOLDING),
        ),
      ),
    );
  if (wanted.appends) {
    waiting = waiting
      .where("waiting.kind", "=", "append")
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom("runs as earlier")
              .select("earlier.run_id")
              .whereRef("earlier.session_key", "=", "waiting.session_key")
              .where("earlier.state", "=", QUEUED)
              .whereRef("earlier.lane_seq", "<", "waiting.lane_seq"),
          ),
        ),
      );
  }
  for (const name of wanted.full ?? []) {
    // A run may be in several pools, see `Pool`.
    const isOutside = sql<boolean>`'+' || waiting.pool || '+' not like ${`%+${name}+%`}`;
    waiting = waiting.where((eb) => eb.or([eb("waiting.pool", "is", null), isOutside]));
  }
  const held = db
    .selectFrom("runs")
    .select(["agent_id", (eb) => eb.fn.countAll<number>().as("slots")])
    .where("state", "=", sql.lit("running"))
    .groupBy("agent_id");
  const rows = await db
    .with("idle", () => waiting.groupBy(["waiting.session_key", "waiting.agent_id"]))
    .with("held", () => held)
    .selectFrom("idle")
    .leftJoin("held", "held.agent_id", "idle.agent_id")
    .select([
      "idle.session_key",
      "idle.oldest",
      sql<number>`row_number() over (partition by idle.agent_id order by idle.oldest)
        + coalesce(held.slots, 0)`.as("turn"),
    ])
    .orderBy("idle.crashes")
    .orderBy("turn")
    .orderBy("idle.oldest")
    .limit(wanted.limit)
    .execute();
  return rows.map((row) => row.session_key);
}
