// Owns the slots of the whole deployment: how many runs may execute at once in all processes. A run uses a
// slot while its row has the state `running`; there is no other counter.
// Counting and taking a slot are one atomic step (advisory lock `slots`), so two processes cannot take the
// last slot.

import { sql } from "kysely";
import { namesIn, type Pool, roomIn, type SlotLimits } from "../../../core/rules/pools.ts";
import { takeAdvisoryLock } from "../../locks.ts";
import { prepared } from "../../prepared.ts";
import type { Db, Tx } from "../../sql.ts";
import { together } from "../../transaction.ts";
import { heldState, moveHeld } from "./claims.ts";
import type { Fence } from "./runs.ts";

interface SlotUse {
  running: number;
  /** Number of waiting runs that need a slot to resume. */
  resuming: number;
}

const USED = prepared((tx) =>
  tx
    .selectFrom("runs")
    .select(["pool", "state", (eb) => eb.fn.countAll<number>().as("n")])
    .where((eb) =>
      eb.or([
        eb("state", "=", sql.lit("running")),
        eb.and([eb("state", "=", sql.lit("waiting")), eb("resuming", "=", sql.lit(1))]),
      ]),
    )
    .groupBy(["pool", "state"]),
);

/** Counts the used slots. Without a lock, other processes may take a slot before the count is used. */
async function countUse(db: Db): Promise<Map<string | null, SlotUse>> {
  const { rows } = await USED(db, {});
  const use = new Map<string | null, SlotUse>();
  for (const row of rows) {
    const entry = use.get(row.pool) ?? { running: 0, resuming: 0 };
    use.set(row.pool, entry);
    entry[row.state === "running" ? "running" : "resuming"] += Number(row.n);
  }
  return use;
}

/** Counts the used slots. Other processes cannot take a slot until this transaction ends. */
async function slotUse(tx: Tx): Promise<Map<string | null, SlotUse>> {
  // Takes the lock first, so that the count is still correct when it is used.
  const [, use] = await together(takeAdvisoryLock(tx, "slots"), countUse(tx));
  return use;
}

function room(
  use: ReadonlyMap<string | null, SlotUse>,
  pool: Pool,
  limits: SlotLimits,
  all: boolean,
): number {
  const count = (one: SlotUse): number => one.running + (all ? one.resuming : 0);
  const counted = [...use].map(([of, one]) => ({ names: namesIn(of ?? undefined), taken: count(one) }));
  return roomIn(pool, limits, (name) =>
    counted
      .filter(({ names }) => name === undefined || names.includes(name))
      .reduce((sum, { taken }) => sum + taken, 0),
  );
}

/** Returns whether a new run may take a slot. Runs that want to resume take precedence. */
export async function mayStart(tx: Tx, pool: Pool, limits: SlotLimits): Promise<boolean> {
  return room(await slotUse(tx), pool, limits, true) > 0;
}

/**
 * Resumes a waiting run if a slot is free. Otherwise marks the run as resuming, so that no new run takes a
 * slot before it. Returns `lost` if the caller no longer holds the run.
 */
export async function resumeHeld(
  tx: Tx,
  fence: Fence,
  pool: Pool,
  limits: SlotLimits,
): Promise<"running" | "full" | "lost"> {
  const state = await heldState(tx, fence);
  if (state === undefined) return "lost";
  // The run already has its slot, but the caller never received the answer. If the slot were counted again,
  // the run would wait for its own slot.
  if (state === "running") return "running";
  if (room(await slotUse(tx), pool, limits, false) > 0) {
    await moveHeld(tx, fence, "running");
    return "running";
  }
  await tx.updateTable("runs").set({ resuming: 1 }).where("run_id", "=", fence.runId).execute();
  return "full";
}

/** Returns the number of slots that new runs could take, and the names of the pools that have none. */
export async function freeSlots(
  db: Db,
  limits: SlotLimits,
): Promise<{ readonly free: number; readonly full: readonly string[] }> {
  const use = await countUse(db);
  const roomOf = (pool: Pool): number => room(use, pool, limits, true);
  return { free: roomOf(undefined), full: Object.keys(limits.pools).filter((name) => roomOf(name) === 0) };
}
