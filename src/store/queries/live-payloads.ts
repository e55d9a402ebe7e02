// Stores live events that are too large for a message between processes. Losing such an event does no harm.

import { sql } from "kysely";
import { type Db, kindOf, type Tx } from "../sql.ts";
import { deletePiece } from "./delete-piece.ts";

const KEPT_MS = 60_000;

/** Stores a payload for a short time. Returns its id. */
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

/** Deletes payloads that no process needs any more. */
export function dropPayloads(tx: Tx, at: number): Promise<boolean> {
  return deletePiece(tx, "live_payloads", ["id"], sql`created_at < ${Math.round(at) - KEPT_MS}`);
}

/** Deletes the payloads about a session. Only processes that share a database write any. */
export async function erasePayloads(tx: Tx, sessionKey: string): Promise<void> {
  if (kindOf(tx) === "sqlite") return;
  await sql`delete from live_payloads where strpos(body, ${sessionKey}) > 0`.execute(tx);
}
