// Owns exclusive tasks, called holdings. Only one process at a time may do such a task, for example poll a
// bot account. A process keeps its holdings while it is alive. After that, each holding goes to the next
// process that asks.

import { type RecordOf, recordsOf } from "../records.ts";
import { changesRows, type Tx } from "../sql.ts";
import { livingProcesses } from "./processes.ts";

const HOLDINGS = recordsOf<RecordOf<"holdings">>()("holdings", {
  key: ["name"],
  columns: ["owner", "since"],
});

/**
 * Takes a free holding, or confirms that this owner has it. Returns false if another living process has it.
 */
export async function hold(tx: Tx, name: string, owner: string, nowMs: number): Promise<boolean> {
  const since = Math.round(nowMs);
  await HOLDINGS.add(tx, { name, owner, since });
  const holding = await HOLDINGS.hold(tx, { name });
  if (holding === undefined) return false;
  if (holding.owner === owner) return true;
  const unowned = tx.updateTable("holdings").where("name", "=", name);
  return changesRows(tx, unowned.where("owner", "not in", livingProcesses()).set({ owner, since }));
}

/** Releases a holding, unless it belongs to another owner. */
export const letGo = (tx: Tx, name: string, owner: string) => HOLDINGS.remove(tx, { name, owner });
