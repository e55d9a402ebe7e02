// Owns exclusive tasks, called holdings. Only one process at a time may do such a task, for example poll a
// bot account. A process keeps its holdings while it is alive. After that, each holding goes to the next
// process that asks.

import { held } from "../locks.ts";
import type { Tx } from "../sql.ts";
import { livingProcesses } from "./processes.ts";

/**
 * Takes a free holding, or confirms that this owner has it. Returns false if another living process has it.
 */
export async function hold(tx: Tx, name: string, owner: string, nowMs: number): Promise<boolean> {
  const now = Math.round(nowMs);
  await tx
    .insertInto("holdings")
    .values({ name, owner, since: now })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const row = await held(
    tx,
    tx.selectFrom("holdings").selectAll().where("name", "=", name),
  ).executeTakeFirst();
  if (row === undefined) return false;
  if (row.owner === owner) return true;
  const taken = await tx
    .updateTable("holdings")
    .set({ owner, since: now })
    .where("name", "=", name)
    .where("owner", "not in", livingProcesses())
    .executeTakeFirst();
  return taken.numUpdatedRows > 0n;
}

/** Releases a holding, unless it belongs to another owner. */
export async function letGo(tx: Tx, name: string, owner: string): Promise<void> {
  await tx.deleteFrom("holdings").where("name", "=", name).where("owner", "=", owner).execute();
}
