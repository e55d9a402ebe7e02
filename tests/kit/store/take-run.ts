// Gives a run to another process in the store, as if that process had taken over the run of a paused one.

import { sql } from "kysely";
import type { Store } from "../../../src/store/sql.ts";

export async function takeRun(store: Store, runId: string): Promise<void> {
  await store.transaction(async (tx) => {
    const taken = { owner: "another process", attempt: sql<number>`attempt + 1` };
    await tx.updateTable("runs").set(taken).where("run_id", "=", runId).execute();
  });
}
