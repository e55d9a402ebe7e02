// Removes the words of deleted rows from the full-text indexes of the embedded store. SQLite overwrites
// deleted rows with zeros (`pragma secure_delete`), but an index keeps the words of a deleted text until its
// segments are merged. A merge is done in slices, each in its own transaction, so that it blocks nobody.

import { sql } from "kysely";
import type { Tx } from "../../sql.ts";

const INDEXES = ["session_names", "message_texts", "message_parts"] as const;
/** Pages that a slice writes: about 10 ms of work. */
const SLICE_PAGES = 64;

/** An index whose merge has begun. */
type Begun = (typeof INDEXES)[number];

const changesIn = async (tx: Tx): Promise<number> =>
  Number((await sql<{ n: number }>`select total_changes() as n`.execute(tx)).rows[0]?.n ?? 0);

/**
 * Merges a slice of the first index that is not clean. `state` is what the slice before returned, or
 * undefined for the first slice of a pass. Returns undefined when all indexes are clean of rows that were
 * deleted before the pass.
 */
export async function scrubSlice(tx: Tx, state: Begun | undefined): Promise<Begun | undefined> {
  const from = state === undefined ? 0 : INDEXES.indexOf(state);
  for (const index of INDEXES.slice(from)) {
    // A negative number begins to merge all segments, a positive one continues.
    const pages = index === state ? SLICE_PAGES : -SLICE_PAGES;
    const before = await changesIn(tx);
    const table = sql.table(index);
    await sql`insert into ${table} (${sql.ref(index)}, rank) values ('merge', ${pages})`.execute(tx);
    // The statement itself counts as one change.
    if ((await changesIn(tx)) - before > 1) return index;
  }
  return undefined;
}
