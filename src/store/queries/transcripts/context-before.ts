// Reads the model's context as it was before an entry of a transcript.

import { type Entry, isCompaction } from "../../../core/shapes/message.ts";
import type { Db } from "../../sql.ts";
import { partsOf } from "./forks.ts";
import { ENTRY_COLUMNS, readEntry } from "./stored-entry.ts";

/** Maximum number of entries. Older ones are left out. */
const ENTRIES_MAX = 5_000;

/**
 * Returns the entries that the model saw before the entry at `seq`: the last compaction before it, if there
 * is one, and the entries that it kept.
 */
export async function contextBefore(db: Db, sessionId: string, seq: number): Promise<Entry[]> {
  const newestFirst: Entry[] = [];
  for (const part of (await partsOf(db, sessionId)).toReversed()) {
    const rows = await db
      .selectFrom("messages")
      .select(ENTRY_COLUMNS)
      .where("session_id", "=", part.sessionId)
      .where("seq", "<", part.upTo === undefined ? seq : part.upTo + 1)
      .orderBy("seq", "desc")
      .limit(ENTRIES_MAX)
      .execute();
    newestFirst.push(...rows.map(readEntry));
    if (newestFirst.length >= ENTRIES_MAX) break;
  }
  const entries = newestFirst.slice(0, ENTRIES_MAX).reverse();
  const compaction = entries.findLast(isCompaction);
  if (compaction === undefined) return entries;
  const kept = entries.findIndex(({ id }) => id === compaction.firstKeptId);
  const messages = entries.slice(Math.max(0, kept)).filter((entry) => !isCompaction(entry));
  return [compaction, ...messages];
}
