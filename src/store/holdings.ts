// Owns who does what only one process at a time may do, such as polling one bot account.
// HO1: a holding is its owner's while the owner is alive; after that whoever asks next gets it.

import { held } from "./locks.ts";
import { livingProcesses } from "./processes.ts";
import type { Tx } from "./sql.ts";

/** Takes a holding that is free, or keeps it. False: a living process has it. */
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

/** Gives a holding back; one that is not the owner's stays. */
export async function letGo(tx: Tx, name: string, owner: string): Promise<void> {
  await tx.deleteFrom("holdings").where("name", "=", name).where("owner", "=", owner).execute();
}
