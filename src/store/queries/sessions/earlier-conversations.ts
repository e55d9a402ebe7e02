// Lists the earlier conversations of a session: those that ended with a reset.

import { sql } from "kysely";
import type { Db } from "../../sql.ts";
import { IS_INHERITED } from "../transcripts/inherited.ts";

/** A conversation that ended with a reset. */
export interface EarlierConversation {
  readonly sessionId: string;
  readonly startedAt: number;
  /** Time of its last message. */
  readonly endedAt: number;
  readonly messages: number;
}

/**
 * Lists the conversations before the current one, newest first. Skips empty conversations and inherited
 * transcripts (transcripts/inherited.ts).
 */
export async function earlierConversations(
  db: Db,
  session: { readonly key: string; readonly sessionId: string },
  limit: number,
): Promise<EarlierConversation[]> {
  const rows = await db
    .selectFrom("session_ids")
    .innerJoin("messages", "messages.session_id", "session_ids.session_id")
    .select([
      "session_ids.session_id as sessionId",
      "session_ids.created_at as startedAt",
      sql<number>`max(messages.created_at)`.as("endedAt"),
      sql<number>`count(*)`.as("messages"),
      sql<number>`max(messages.seq)`.as("lastSeq"),
    ])
    .where("session_ids.session_key", "=", session.key)
    .where("session_ids.session_id", "!=", session.sessionId)
    .where("messages.role", "!=", "compaction")
    .where(sql<boolean>`not ${IS_INHERITED}`)
    .groupBy(["session_ids.session_id", "session_ids.created_at"])
    .orderBy("lastSeq", "desc")
    .limit(limit)
    .execute();
  return rows.map(({ lastSeq: _, ...conversation }) => conversation);
}

/** Returns whether this transcript ever belonged to the session. An inherited one did not. */
export async function hadTranscript(db: Db, key: string, sessionId: string): Promise<boolean> {
  const row = await db
    .selectFrom("session_ids")
    .select("session_id")
    .where("session_key", "=", key)
    .where("session_id", "=", sessionId)
    .where(sql<boolean>`not ${IS_INHERITED}`)
    .executeTakeFirst();
  return row !== undefined;
}
