// Owns live events that are too large for the wire between processes. They are news: nobody misses one that
// is gone.

import type { Db, Tx } from "./sql.ts";

const KEPT_MS = 60_000;

/** Keeps a text for a moment. Returns its number. */
export async function keepPayload(tx: Tx, body: string, at: number): Promise<number> {
  const row = await tx
    .insertInto("live_payloads")
    .values({ body, created_at: Math.round(at) })
    .returning("id")
    .executeTakeFirstOrThrow();
  return row.id;
}

export async function readPayload(db: Db, id: number): Promise<string | undefined> {
  const row = await db.selectFrom("live_payloads").select("body").where("id", "=", id).executeTakeFirst();
  return row?.body;
}

/** Forgets what nobody waits for any more. */
export async function dropPayloads(tx: Tx, at: number): Promise<void> {
  await tx
    .deleteFrom("live_payloads")
    .where("created_at", "<", Math.round(at) - KEPT_MS)
    .execute();
}
