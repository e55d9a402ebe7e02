// Owns the table of addresses that A2A clients want to have notified when a task ends.

import { sql } from "kysely";
import type { Db, Tx } from "../../sql.ts";
import { deletePiece } from "../delete-piece.ts";

export interface PushConfig {
  readonly id: string;
  readonly runId: string;
  readonly url: string;
  /** Sent back with each notification. Empty: none. */
  readonly token: string;
  /** Scheme of the `Authorization` header, like `Bearer`. Empty: none. */
  readonly scheme: string;
  readonly credentials: string;
  readonly createdAt: number;
}

const COLUMNS = [
  "id",
  "run_id as runId",
  "url",
  "token",
  "scheme",
  "credentials",
  "created_at as createdAt",
] as const;

/** Stores an address. One with the same id of the same run is replaced. */
export async function putPushConfig(tx: Tx, config: PushConfig): Promise<void> {
  const { id, runId: run_id, url, token, scheme, credentials, createdAt: created_at } = config;
  const columns = { url, token, scheme, credentials };
  await tx
    .insertInto("push_configs")
    .values({ id, run_id, ...columns, created_at })
    .onConflict((conflict) => conflict.columns(["run_id", "id"]).doUpdateSet(columns))
    .execute();
}

/** Returns the addresses of a run, the oldest first. */
export function pushConfigsOf(db: Db, runId: string): Promise<PushConfig[]> {
  const query = db.selectFrom("push_configs").select(COLUMNS).where("run_id", "=", runId);
  return query.orderBy("created_at").orderBy("id").execute();
}

export function getPushConfig(db: Db, runId: string, id: string): Promise<PushConfig | undefined> {
  const query = db.selectFrom("push_configs").select(COLUMNS).where("run_id", "=", runId);
  return query.where("id", "=", id).executeTakeFirst();
}

export async function deletePushConfig(tx: Tx, runId: string, id: string): Promise<void> {
  await tx.deleteFrom("push_configs").where("run_id", "=", runId).where("id", "=", id).execute();
}

/** Deletes the addresses that were stored before this time, unless their run has not ended. */
export function forgetPushConfigs(tx: Tx, before: number): Promise<boolean> {
  const which = sql`created_at < ${before} and not exists (
    select 1 from runs where runs.run_id = push_configs.run_id and ended_at is null)`;
  return deletePiece(tx, "push_configs", ["run_id", "id"], which);
}
