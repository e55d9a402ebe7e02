// Owns the slots of a whole deployment: how many runs execute at once, in all its processes.
// SO1: a slot is a run's row in the state `running`, and nothing else: there is no second account of it.
// SO2: counting and taking are one step (the turnstile `slots`), so that no two processes take the last one.

import { sql } from "kysely";
import { namesIn, type Pool, roomIn, type SlotLimits } from "../core/pools.ts";
import { heldState, moveHeld } from "./claims.ts";
import { takeAdvisoryLock } from "./locks.ts";
import type { Fence } from "./runs.ts";
import type { Db, Tx } from "./sql.ts";
import { together } from "./transaction.ts";

interface SlotUse {
  running: number;
  /** Waiting runs that want a slot again. */
  resuming: number;
}

/** Counts slots, and keeps every other process from taking one until this transaction ends. */
async function slotUse(tx: Tx): Promise<Map<string | null, SlotUse>> {
  const counting = tx
    .selectFrom("runs")
    .select(["pool", "state", (eb) => eb.fn.countAll<number>().as("n")])
    .where((eb) =>
      eb.or([
        eb("state", "=", sql.lit("running")),
        eb.and([eb("state", "=", sql.lit("waiting")), eb("resuming", "=", sql.lit(1))]),
      ]),
    )
    .groupBy(["pool", "state"]);
  // In this order: what is counted is what the turnstile lets be seen.
  const [, rows] = await together(takeAdvisoryLock(tx, "slots"), counting.execute());
  const use = new Map<string | null, SlotUse>();
  for (const row of rows) {
    const entry = use.get(row.pool) ?? { running: 0, resuming: 0 };
    use.set(row.pool, entry);
    entry[row.state === "running" ? "running" : "resuming"] += Number(row.n);
  }
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

/** Whether the deployment has a slot for a run that starts. Those that resume go first. */
export async function mayStart(tx: Tx, pool: Pool, limits: SlotLimits): Promise<boolean> {
  return room(await slotUse(tx), pool, limits, true) > 0;
}

/**
 * A waiting run goes on, if the deployment has a slot for it; else it is marked as wanting one. `lost`: it is
 * not the caller's any more.
 */
export async function resumeHeld(
  tx: Tx,
  fence: Fence,
  pool: Pool,
  limits: SlotLimits,
): Promise<"running" | "full" | "lost"> {
  const state = await heldState(tx, fence);
  if (state === undefined) return "lost";
  // It was granted before, and the answer was lost: counted as another run's, it would wait for itself.
  if (state === "running") return "running";
  if (room(await slotUse(tx), pool, limits, false) > 0) {
    await moveHeld(tx, fence, "running");
    return "running";
  }
  await tx.updateTable("runs").set({ resuming: 1 }).where("run_id", "=", fence.runId).execute();
  return "full";
}

/** How many runs execute at this moment, in the whole deployment. */
export async function countRunning(db: Db): Promise<number> {
  const row = await db
    .selectFrom("runs")
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .where("state", "=", sql.lit("running"))
    .executeTakeFirstOrThrow();
  return Number(row.n);
}
