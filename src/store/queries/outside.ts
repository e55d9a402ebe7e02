// Owns the marks of sessions and chains that have outside content (core/rules/prompt/outside.ts).

import { sql } from "kysely";
import { prepared } from "../prepared.ts";
import type { Db, Tx } from "../sql.ts";

export interface OutsidePlace {
  readonly key: string;
  readonly sessionId: string;
  /** Absent: only the session is meant. */
  readonly chainId?: string | undefined;
}

const SOURCE = prepared(
  (_, { key, sessionId, chainId }: { key: string; sessionId: string; chainId: string }) => sql<{
    outside: string;
  }>`select outside from sessions where key = ${key} and session_id = ${sessionId} and outside is not null
    union all select outside from chains where chain_id = ${chainId} and outside is not null limit 1`,
);

/** Returns the source of outside content in a session or a chain, or undefined if there is none. */
export async function readOutside(db: Db, place: OutsidePlace): Promise<string | undefined> {
  return (await SOURCE(db, { ...place, chainId: place.chainId ?? "" })).rows[0]?.outside;
}

/** Returns the source of outside content in one of these transcripts. */
export async function outsideAmong(db: Db, sessionIds: readonly string[]): Promise<string | undefined> {
  if (sessionIds.length === 0) return undefined;
  const query = db
    .selectFrom("sessions")
    .select("outside")
    .where("session_id", "in", [...sessionIds]);
  return (await query.where("outside", "is not", null).executeTakeFirst())?.outside ?? undefined;
}

/** Marks a session and a chain that have no mark yet. */
export async function markOutside(tx: Tx, place: OutsidePlace, source: string): Promise<void> {
  const session = tx.updateTable("sessions").set({ outside: source }).where("outside", "is", null);
  await session.where("key", "=", place.key).where("session_id", "=", place.sessionId).execute();
  if (place.chainId === undefined) return;
  const chain = tx.updateTable("chains").set({ outside: source }).where("outside", "is", null);
  await chain.where("chain_id", "=", place.chainId).execute();
}
