// Owns the table of addresses that A2A clients want to have notified when a task ends.

import { type RecordOf, recordsOf } from "../../../store/records.ts";
import type { Db, Tx } from "../../../store/sql.ts";

/** An empty `token`, or `scheme` of the `Authorization` header: there is none. */
export type PushConfig = RecordOf<"push_configs">;

const CONFIGS = recordsOf<PushConfig>()("push_configs", {
  key: ["run_id", "id"],
  columns: ["url", "token", "scheme", "credentials", "created_at"],
});

/** Stores an address. One with the same id of the same run is replaced. */
export const putPushConfig = (tx: Tx, config: PushConfig) => CONFIGS.put(tx, config);

/** Returns the addresses of a run, the oldest first. */
export const pushConfigsOf = (db: Db, runId: string) =>
  CONFIGS.all(CONFIGS.rows(db, { runId }).orderBy("created_at").orderBy("id"));

export const getPushConfig = (db: Db, runId: string, id: string) => CONFIGS.find(db, { runId, id });

export const deletePushConfig = (tx: Tx, runId: string, id: string) => CONFIGS.remove(tx, { runId, id });
