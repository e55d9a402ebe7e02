// Owns holdings: exclusive tasks that only one process may do at a time, such as polling a bot account. An
// owner keeps its holding while it is alive; afterwards the next process to try gets it.

import { held } from "../locks.ts";
import type { Tx } from "../sql.ts";
import { livingProcesses } from "./processes.ts";

/** Takes a free holding, or keeps it. False: another living process has it. */
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

/** Releases a holding; another owner's holding stays. */
export async function letGo(tx: Tx, name: string, owner: string): Promise<void> {
  await tx.deleteFrom("holdings").where("name", "=", name).where("owner", "=", owner).execute();
}
